"""Monitor: network services checked around the clock, by programs in any language.

For people who answer for the health of many services: who owns what, what is broken since when, and who was told. A
sequence (``monitor.sequence``) is a request to check services; it makes a job for each (``monitor.check``), whose
stages are the tasks: files in a folder, run in the order of their names.

    spinney monitor init
    spinney monitor import services.csv
    spinney monitor run

- ``application``: job types, queues, schedules. ``check_stages``, ``sequences``, ``upkeep``: their stages.
- ``settings``. ``inventory``: services and results, in tables of the application's own. ``catalogue``: harvests.
  ``tasks``: the tasks' folder, and how a task is run. ``checks``: checks that come with Spinney.
- ``languages``: the sentences of mails and public pages.
- ``requests``: what people ask for, on a store. ``cli``, ``pages``, ``routes``, ``line_protocol``: how they ask."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.apps.monitor.application import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Load ``app`` with all its stages on first use, so that importing one package does not import the others."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spinney.apps.monitor import check_stages, sequences, upkeep  # noqa: F401 - these give the application its stages
    from spinney.apps.monitor.application import app

    return app
