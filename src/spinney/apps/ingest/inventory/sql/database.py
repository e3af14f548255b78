"""The database of an inventory: connections, transactions, and errors with helpful messages.

A transaction that writes begins as one: on SQLite it takes the only write lock at once (one that reads first and
writes later could be refused in the middle), on PostgreSQL each statement sees what was committed before it (READ
COMMITTED), so that a transaction that waited for a row's lock sees the changes of its holder. Locks are taken in one
order (the object, then its local ids by name), so that there are no deadlocks.

SQLite keeps a write-ahead log and syncs it at every commit (synchronous = FULL).
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from spinney.apps.ingest.inventory.errors import InventoryAway, InventoryUnusable
from spinney.config import database_file, is_postgres
from spinney.errors import UsageError

INIT = "run 'spinney ingest init'"
_BUSY_S = 60.0
_CACHE_KIB = 65_536
_WRITES = "spinney_writes"
"""An execution option: the transaction will write."""


class Database:
    """The database of one inventory; any thread may use it."""

    def __init__(self, engine: Engine, name: str, backend: "Backend") -> None:
        self._engine, self.name, self._backend = engine, name, backend
        self.dialect = engine.dialect.name

    def __repr__(self) -> str:
        return f"Database({self.name})"

    def write(self) -> AbstractContextManager[Connection]:
        """Run one transaction; its writes are durable when the block has been left."""
        return self._transaction(writes=True)

    def read(self) -> AbstractContextManager[Connection]:
        """Run one read-only transaction on one snapshot of the inventory."""
        return self._transaction(writes=False)

    def insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """Return an INSERT that supports ``on_conflict``."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    def prepare(self, connection: Connection) -> None:
        """Wait until no other process makes the tables; called in the transaction that will make them."""
        self._backend.lock_for_setup(connection)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        with self._translated_errors(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: writes})
            with connection.begin():
                yield connection

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn the driver's errors into errors with one sentence that says what to do."""
        try:
            yield
        except DBAPIError as error:
            sentence = self._backend.sentence(error.orig)
            if sentence is None:
                raise
            raise sentence from error


class Backend(Protocol):
    """The differences between the kinds of databases."""

    def lock_for_setup(self, connection: Connection) -> None: ...

    def sentence(self, error: BaseException | None) -> Exception | None:
        """Return the error for a driver's error; None for one that is a bug of this program."""


def database(url: str) -> Database:
    """Return the database at ``sqlite:///file`` or ``postgresql://user@host/database``. Raises UsageError."""
    if is_postgres(url):
        try:
            from spinney.apps.ingest.inventory.sql.postgres import open_postgres  # its driver is an extra
        except ImportError as error:
            raise UsageError(
                "an inventory on PostgreSQL needs its driver; install it with: pip install 'spinney[postgresql]'"
            ) from error
        return open_postgres(url)
    path = database_file(url)
    if path is None:
        scheme = url.partition(":")[0]
        raise UsageError(
            f"an inventory is named by sqlite:///file or postgresql://user@host/database, not by '{scheme[:20]}:…'"
        )
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=QueuePool, **POOL)
    event.listen(
        engine, "begin", lambda c: c.exec_driver_sql(f"begin {'immediate' if writes(c) else 'deferred'}")
    )
    return Database(engine, str(path), _Sqlite(path))


POOL: dict[str, Any] = {"pool_size": 4, "max_overflow": -1, "hide_parameters": True}
"""The options of the pool: no thread waits for a connection, since one that reads may write through another."""


def writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(_WRITES))


# --- SQLite -----------------------------------------------------------------------------------


class _Sqlite:
    def __init__(self, path: Path) -> None:
        self._path = path

    def lock_for_setup(self, connection: Connection) -> None:
        """Do nothing: BEGIN IMMEDIATE has taken the lock."""

    def sentence(self, error: BaseException | None) -> Exception | None:
        path, text = self._path, str(error).lower()
        if "no such table" in text:
            return InventoryUnusable(f"{path} holds no inventory; {INIT}, or name another file")
        if "unable to open" in text or "readonly" in text:
            if not path.exists():
                return InventoryUnusable(f"there is no inventory at {path}; {INIT}, or name another file")
            return InventoryUnusable(f"cannot write to the inventory {path}; check its owner and rights")
        if "not a database" in text or "malformed" in text:
            return InventoryUnusable(f"{path} is no database or is damaged; restore it from a backup")
        if "locked" in text or "busy" in text:
            return InventoryAway(
                f"{path} was kept locked for {_BUSY_S:g} s; close what has it open, then go on"
            )
        if "full" in text:
            free = shutil.disk_usage(path.parent).free
            return InventoryAway(
                f"the disk that holds {path} is full, with {free:,} bytes free; make room, then go on: nothing was "
                f"half-written"
            )
        if "disk i/o" in text:
            return InventoryAway(f"the disk that holds {path} does not answer; check the disk, then go on")
        return None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        with _folder_lock(path.parent):
            connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
        connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Make other new connections wait. SQLite does not wait when several connections switch a database to WAL at once,
    or one switches it while another reads its mode: all but one fail with "locked", whatever the timeout.

    The folder is locked and not the file, because a process that closes a descriptor of its own of a SQLite file
    releases all locks that SQLite has on it in that process."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
