"""What this suite knows of the SQL store behind the contract.

The other modules say what any store does, and import what they need beyond the contract from here: statements that
damage rows or read them, the sizes of steps, and modules whose functions fail when a test wants it. Besides this module
only ``conftest``, ``everything`` and the doctor's tests know the SQL store.
"""

from pathlib import Path
from typing import Any

from spinney.store.parts import Store
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.claim.claims import RUN_MAX
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.read import access_paths, duration_samples
from spinney.store.sql.record.circuit_breaker import ACTOR as BREAKER
from spinney.store.sql.record.circuit_breaker import IDLE_US
from spinney.store.sql.submit import new_jobs, staging
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.failures import FORGET_STEP, KEPT_US

__all__ = [
    "BREAKER",
    "FORGET_STEP",
    "IDLE_US",
    "KEPT_US",
    "RUN_MAX",
    "access_paths",
    "damage",
    "duration_samples",
    "locks",
    "new_jobs",
    "open_store",
    "refresh",
    "rows",
    "sql_store",
    "sqlite_file",
    "staging",
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
