"""How the database of an inventory is reached: connections, transactions, errors as sentences.

A transaction that writes is begun as one: on SQLite it takes the only write lock at once (one that reads first and
writes later could be refused in the middle), on PostgreSQL each statement sees what was committed before it (READ
COMMITTED), so that whoever waited for a row's lock sees what its holder did. Locks are taken in one order (the object,
then its local ids by name), and so nothing can deadlock.

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
    """Of one inventory; any thread may use it."""

    def __init__(self, engine: Engine, name: str, way: "Way") -> None:
        self._engine, self.name, self._way = engine, name, way
        self.dialect = engine.dialect.name

    def __repr__(self) -> str:
        return f"Database({self.name})"

    def write(self) -> AbstractContextManager[Connection]:
        """One transaction; what it wrote is durable when the block has been left."""
        return self._begun(writes=True)

    def read(self) -> AbstractContextManager[Connection]:
        """One transaction that sees one state of the inventory throughout."""
        return self._begun(writes=False)

    def insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """An INSERT that can say what happens ``on_conflict``."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    def prepare(self, connection: Connection) -> None:
        """Wait until nobody else makes the tables; in the transaction that will."""
        self._way.alone(connection)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _begun(self, *, writes: bool) -> Iterator[Connection]:
        with self._explained(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: writes})
            with connection.begin():
                yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """The driver's errors as one sentence that says what to do."""
        try:
            yield
        except DBAPIError as error:
            sentence = self._way.sentence(error.orig)
            if sentence is None:
                raise
            raise sentence from error


class Way(Protocol):
    """What differs from one kind of database to the other."""

    def alone(self, connection: Connection) -> None: ...

    def sentence(self, error: BaseException | None) -> Exception | None:
        """None for what is a mistake of this program."""


def database(url: str) -> Database:
    """``sqlite:///file`` or ``postgresql://user@host/database``. Raises UsageError."""
    if is_postgres(url):
        try:
            from spinney.apps.ingest.inventory.sql.postgres import reached  # its driver is an extra
        except ImportError as error:
            raise UsageError(
                "an inventory on PostgreSQL needs its driver; install it with: pip install 'spinney[postgresql]'"
            ) from error
        return reached(url)
    path = database_file(url)
    if path is None:
        scheme = url.partition(":")[0]
        raise UsageError(
            f"an inventory is named by sqlite:///file or postgresql://user@host/database, not by '{scheme[:20]}:…'"
        )
    engine = create_engine("sqlite://", creator=lambda: _connected(path), poolclass=QueuePool, **POOL)
    event.listen(
        engine, "begin", lambda c: c.exec_driver_sql(f"begin {'immediate' if writes(c) else 'deferred'}")
    )
    return Database(engine, str(path), _Sqlite(path))


POOL: dict[str, Any] = {"pool_size": 4, "max_overflow": -1, "hide_parameters": True}
"""A connection a thread, and none is waited for: who holds one while reading may write through another."""


def writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(_WRITES))


# --- SQLite -----------------------------------------------------------------------------------


class _Sqlite:
    def __init__(self, path: Path) -> None:
        self._path = path

    def alone(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE has seen to that."""

    def sentence(self, error: BaseException | None) -> Exception | None:
        path, said = self._path, str(error).lower()
        if "no such table" in said:
            return InventoryUnusable(f"{path} holds no inventory; {INIT}, or name another file")
        if "unable to open" in said or "readonly" in said:
            if not path.exists():
                return InventoryUnusable(f"there is no inventory at {path}; {INIT}, or name another file")
            return InventoryUnusable(f"cannot write to the inventory {path}; check its owner and rights")
        if "not a database" in said or "malformed" in said:
            return InventoryUnusable(f"{path} is no database or is damaged; restore it from a backup")
        if "locked" in said or "busy" in said:
            return InventoryAway(
                f"{path} was kept locked for {_BUSY_S:g} s; close what has it open, then go on"
            )
        if "full" in said:
            free = shutil.disk_usage(path.parent).free
            return InventoryAway(
                f"the disk that holds {path} is full, with {free:,} bytes free; make room, then go on: nothing was "
                f"half-written"
            )
        if "disk i/o" in said:
            return InventoryAway(f"the disk that holds {path} does not answer; check the disk, then go on")
        return None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        with _alone_in(path.parent):
            connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
        connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other new connections waiting. SQLite does not wait for a database that several switch to WAL at once, or
    that one switches while another looks at its mode: each but one is told that it is locked, whatever the timeout.

    The folder is locked and not the file, because a process that closes a descriptor of its own of a SQLite file gives
    up all locks that SQLite has on it in that process."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
