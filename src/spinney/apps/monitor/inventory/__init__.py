"""The services that are monitored, and the results of their checks, are in tables of the application's own.

**Who writes what.** Imports and harvests write entities and services (``imports``); a service that an import no
longer names is retired, and keeps its results. Checks write results (``results``), in groups, each before its stage is
recorded as passed. Upkeep thins old results. Nothing else writes.

**What a crash leaves.** An import is one transaction. A result is written under the number of its job and the name of
its task; a stage that runs again after a crash writes the same row again, so no result is stored twice.

``schema``    the tables
``model``     the classes that the rest of the application reads
``entities``  owners of services, and what they were told
``services``  services: by number, by owner, by words
``imports``   services from CSV, JSON and catalogues, again and again
``results``   results and changes of status, of which old ones are thinned to the changes

The migrations are in ``migrations``. Importing this package loads no SQLAlchemy; the modules that read do, which are
its attributes and imported when they are first used: a server beside no monitor does without.

Specified by ``tests/apps/monitor/test_inventory.py``.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.tables import TableSet

if TYPE_CHECKING:
    from spinney.apps.monitor.inventory import entities as entities
    from spinney.apps.monitor.inventory import results as results
    from spinney.apps.monitor.inventory import services as services

TABLES = TableSet(
    name="monitor",
    prefix="mon",
    migrations=Path(__file__).parent / "migrations",
    head="0001",
    init="spinney monitor init",
)


def __getattr__(name: str) -> Any:
    """Import the modules that read on first use, since they load SQLAlchemy, which takes long and which a
    server without a monitor does not need."""
    if name in ("entities", "results", "services"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
