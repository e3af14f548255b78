"""The services that are monitored, and the results of their checks, in tables of the application's own.

**Who writes what.** Imports and harvests write entities and services (``imports``); a service that an import no
longer names is retired, and keeps its results. Checks write results (``results``), in groups, each before its stage is
recorded as passed. Upkeep thins old results (``old_results``). Nothing else writes.

**What a crash leaves.** An import is one transaction. A result is written under the number of its job and the name of
its task; a stage that runs again after a crash writes the same row again, so no result is stored twice.

``schema`` the tables · ``database`` the open database of this process · ``model`` the classes · ``entities`` and
``services`` reading · ``imports`` CSV, JSON, and what catalogues have · ``results`` results and
history · ``old_results`` old results."""

from pathlib import Path

from spinney.tables import TableSet

TABLES = TableSet(
    name="monitor",
    prefix="mon",
    migrations=Path(__file__).parent / "migrations",
    head="0001",
    init="spinney monitor init",
)
