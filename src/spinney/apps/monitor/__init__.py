"""Monitor checks network services around the clock, by programs in any language.

For people who answer for the health of many services: who owns what, what is broken since when, and who was told. A
sequence (``monitor.sequence``) is a request to check services; it makes a job for each (``monitor.check``), whose
stages are the tasks: files in a folder, run in the order of their names.

    spinney monitor init
    spinney monitor import services.csv
    spinney monitor run

``application``    job types, queues, schedules
``check_stages``   the stages of a check: the tasks, in their order
``sequences``      requests to check many services, each a job with a job for every service
``upkeep``         mails to owners, thinning of old results, harvests
``tasks``          the folder of tasks, and how a task is run
``checks``         checks that come with Spinney
``inventory``      services and results, in tables of the application's own
``database``       the open database of this process, whose tables ``inventory`` has
``catalogue``      services harvested from a catalogue (CSW)
``requests``       what people ask for beside reading: start and stop checks
``settings``       ``monitor.toml``
``cli``            the commands ``spinney monitor``
``routes``         the API: JSON, CSV, figures for Prometheus
``pages``          the pages of a server
``line_protocol``  the protocol of older clients
``languages``      the sentences of mails and public pages

**The way of a check.** A request (``requests.start``, from the command line, a page or the line protocol)
submits one ``monitor.sequence``. Its first stage, ``expand``, selects the services and spawns a
``monitor.check`` for each. The stages of a check run the tasks in order; each writes its result into the monitor's
tables and is then recorded as passed. When all checks have settled, ``summary`` counts them. Apart from that,
``monitor.mails`` looks once an hour for changes of status that an owner has not been told of.

**Processes.** ``spinney monitor run`` starts a node that runs these jobs, and serves the line protocol itself. Pages
and routes run in a Spinney server, and commands in processes of their own; all of them read the same tables.

**What a crash leaves.** A result is written before its stage is recorded, under the number of its job and the name of
its task: whatever is killed, no result is lost or stored twice. A service that is down is a result and not a failed
job; a job fails only where the monitor itself is at fault.

Specified by ``tests/apps/monitor``.
"""

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
