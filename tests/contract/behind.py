"""What this suite knows of the SQL store behind the contract.

The other modules say what any store does, and import what they need beyond the contract from here: statements that
damage rows or read them, the sizes of steps, and modules whose functions fail when a test wants it. Besides this module
only ``conftest``, ``everything`` and the doctor's tests know the SQL store.
"""

import re
from pathlib import Path
from typing import Any

from spinney.store import skip_scan
from spinney.store.parts import Store
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.claim.claims import RUN_MAX
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.read import access_paths, duration_samples
from spinney.store.sql.record.circuit_breaker import ACTOR as BREAKER
from spinney.store.sql.record.circuit_breaker import IDLE_US
from spinney.store.sql.recover import sweep_step
from spinney.store.sql.store import LOST_BEATS
from spinney.store.sql.submit import new_jobs, staging
from spinney.store.sql.transitions import cancel_moves, locks
from spinney.store.sql.transitions.cascades import PASSED_BY_MOST
from spinney.store.sql.transitions.failures import FORGET_STEP, KEPT_US

__all__ = [
    "BREAKER",
    "FORGET_STEP",
    "IDLE_US",
    "KEPT_US",
    "LOST_BEATS",
    "PASSED_BY_MOST",
    "RUN_MAX",
    "access_paths",
    "cancel_moves",
    "damage",
    "duration_samples",
    "effort_of_names",
    "locks",
    "new_jobs",
    "open_store",
    "refresh",
    "registry_changes",
    "rows",
    "sql_store",
    "sqlite_file",
    "staging",
    "sweep_step",
]


def sql_store(store: Store) -> SqlStore:
    assert isinstance(store, SqlStore)
    return store


def sqlite_file(store: Store) -> Path:
    """Return the file of a store in SQLite."""
    database = sql_store(store).database
    assert isinstance(database, SqliteDatabase)
    return database.path


def damage(store: Store, sql: str, *args: Any) -> None:
    """Change rows without the rules of the store. Fails when nothing is changed."""
    with sql_store(store).database.write() as tx:
        tx.run(sql, args)
        changed = tx.changed()
    assert changed, f"this did no damage: {sql}"


def refresh(store: Store) -> None:
    """Let every process read declarations and settings anew."""
    with sql_store(store).database.write() as tx:
        tx.take("registry")


def rows(store: Store, sql: str) -> list[Any]:
    with sql_store(store).database.look() as tx:
        return tx.all(sql)


def registry_changes(store: Store) -> int:
    """Return how often declarations and settings were changed."""
    with sql_store(store).database.look() as tx:
        return int(tx.value("select value from counters where name = 'registry'"))


def effort_of_names(store: Store, most: int | None) -> int:
    """Return how many steps of its virtual machine SQLite takes to list the collections, or how many rows PostgreSQL
    makes in the recursion. ``most``: the most collections."""
    sql = skip_scan.distinct("jobs", "collection", "collection is not null", most=most)
    database = sql_store(store).database
    with database.look() as tx:
        if not isinstance(database, SqliteDatabase):
            plan = "\n".join(row for (row,) in tx.all(f"explain (analyze, timing off, costs off) {sql}"))
            (rows_made,) = re.findall(r"Recursive Union \(actual rows=(\d+)", plan)
            return int(rows_made)
        connection = database._reader
        assert connection is not None
        steps: list[None] = []
        connection.set_progress_handler(lambda: steps.append(None), 1)
        tx.all(sql)
        connection.set_progress_handler(None, 1)
    return len(steps)
