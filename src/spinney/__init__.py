"""Durable batch processing for people who run long pipelines on machines of their own.

``Spinney`` makes an application, ``Job`` is the handle that a stage gets, and the others are signals by which a stage
ends: ``raise Defer(60)``. The rest of the public API is in ``spinney.jobs``, ``spinney.errors``,
``spinney.operations``, ``spinney.command_line``, ``spinney.routes``, ``spinney.pages``, ``spinney.reports``,
``spinney.safe_http``, ``spinney.tables``, ``spinney.client``, ``spinney.config`` and ``spinney.testing``."""

# As in ``typing``, which is slow to import: a command handles Ctrl-C only after this module is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spinney.app import Spinney, load_app
    from spinney.define.job import Job
    from spinney.define.params.secrets import Secret
    from spinney.model.attempts.signals import Defer, Fail, Finish, Hold, NotApplicable, Warn
    from spinney.model.errors import SpinneyError
    from spinney.model.types import Backoff, LockSpec

__all__ = [
    "Backoff",
    "Defer",
    "Fail",
    "Finish",
    "Hold",
    "Job",
    "LockSpec",
    "NotApplicable",
    "Secret",
    "Spinney",
    "SpinneyError",
    "Warn",
    "load_app",
]

_HOMES = {
    "spinney.app": ("Spinney", "load_app"),
    "spinney.define.job": ("Job",),
    "spinney.model.errors": ("SpinneyError",),
    "spinney.model.attempts.signals": ("Defer", "Fail", "Finish", "Hold", "NotApplicable", "Warn"),
    "spinney.model.types": ("Backoff", "LockSpec"),
    "spinney.define.params.secrets": ("Secret",),
}


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used: a command that lists jobs, or completes a word, need not wait for the
    import of what turns functions into job types."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
