"""The database of a set of tables: connections, transactions, and errors with helpful messages.

A transaction that writes begins as one: on SQLite it takes the only write lock at once (one that reads first and
writes later could be refused in the middle), on PostgreSQL each statement sees what was committed before it (READ
COMMITTED), so that a transaction that waited for a row's lock sees the changes of its holder. An application that locks
several rows takes them in one order, so that there are no deadlocks.

SQLite keeps a write-ahead log and syncs it at every commit (synchronous = FULL). A connection to a file that was
replaced or removed would continue on the file that it opened, where nobody else finds what it writes; so each
transaction compares the two.
"""

import fcntl
import math
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol
from weakref import finalize

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from spinney.tables import upgrades
from spinney.tables.declaration import TableDeclaration
from spinney.tables.errors import TablesAway, TablesUnusable

_BUSY_S = 60.0
_CACHE_KIB = 65_536
_LOG_INDEX_BYTES = 1 << 16
"""The index of SQLite's log needs half of it when a database is opened."""
_WRITES = "spinney_writes"
"""An execution option: the transaction will write."""


class Database:
    """The database of one set of tables, ``name`` for people; any thread may use it, but not across a fork.

    Transactions raise TablesAway while the database does not answer, and TablesUnusable when it cannot be used as it
    is."""

    def __init__(self, tables: TableDeclaration, engine: Engine, name: str, backend: "Backend") -> None:
        self._tables, self._engine, self._backend = tables, engine, backend
        self.name, self.dialect = name, engine.dialect.name
        self._is_checked = False
        # Nobody has to call `close`: the journal of a file is written into it when the last process closes it.
        finalize(self, engine.dispose)

    def __repr__(self) -> str:
        return f"Database({self.name})"

    def init(self) -> None:
        """Make the tables, or upgrade them. Several processes may do so at once; current tables are left alone."""
        self._backend.make()
        with self.read() as connection:
            if upgrades.revision(self._tables, connection) == self._tables.head:
                return
        with self.write() as connection:
            self._backend.lock_for_setup(connection)
            upgrades.upgrade(self._tables, self.name, connection)

    def checked(self) -> "Database":
        """Return this database, once it is sure that its tables have the revision that this code works with. Raises
        TablesUnusable where they have not."""
        if not self._is_checked:
            with self.read() as connection:
                upgrades.require(self._tables, self.name, connection)
            self._is_checked = True
        return self

    def write(self) -> AbstractContextManager[Connection]:
        """Run one transaction; its writes are durable when the block has been left."""
        return self._transaction(writes=True)

    def read(self) -> AbstractContextManager[Connection]:
        """Run one read-only transaction on one snapshot of the tables."""
        return self._transaction(writes=False)

    def insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """Return an INSERT that supports ``on_conflict``."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    def close(self) -> None:
        """Close all connections that no thread uses; those in use are closed when they are given back."""
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
            if type(sentence) is TablesUnusable:
                # A connection that was opened while the file could not be written could never write to it.
                self._engine.dispose()
            raise sentence from error


class Backend(Protocol):
    """The differences between the kinds of databases: what has to be made, how processes that make tables at
    once are kept apart, and what the driver's errors mean."""

    def make(self) -> None:
        """Make what must be there before one can connect."""

    def lock_for_setup(self, connection: Connection) -> None:
        """Wait until no other process makes the tables; called in the transaction that will make them."""

    def sentence(self, error: BaseException | None) -> Exception | None:
        """Return the error for a driver's error; None for one that is a bug of this program."""


def open_sqlite(tables: TableDeclaration, path: Path) -> Database:
    """Return the database in a SQLite file."""
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=QueuePool, **POOL)

    def begin(connection: Connection) -> None:
        _require_same_file(tables, path, connection)
        # PostgreSQL refuses writes of a reader, too.
        connection.exec_driver_sql(f"pragma query_only = {not writes(connection)}")
        connection.exec_driver_sql(f"begin {'immediate' if writes(connection) else 'deferred'}")

    event.listen(engine, "begin", begin)
    return Database(tables, engine, str(path), _Sqlite(tables, path))


POOL: dict[str, Any] = {"pool_size": 4, "max_overflow": -1, "hide_parameters": True}
"""The options of the pool: no thread waits for a connection, since one that reads may write through another."""


def writes(connection: Connection) -> bool:
    """Return whether the transaction that begins on this connection will write."""
    return bool(connection.get_execution_options().get(_WRITES))


# --- SQLite -----------------------------------------------------------------------------------


class _Sqlite:
    """The backend for one SQLite file. Its errors are told apart by their words, since the driver raises one
    class for most of them."""

    def __init__(self, tables: TableDeclaration, path: Path) -> None:
        self._tables, self._path = tables, path

    def make(self) -> None:
        """Make the file, readable by its owner only."""
        file = self._path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise TablesUnusable(
                f"cannot make the {self._tables.name} {file}: {error.strerror}; choose a folder you can write to"
            ) from error

    def lock_for_setup(self, connection: Connection) -> None:
        """Do nothing: BEGIN IMMEDIATE has taken the lock."""

    def sentence(self, error: BaseException | None) -> Exception | None:
        path, text, name = self._path, str(error).lower(), self._tables.name
        remedy = f"run '{self._tables.init}', or name another file"
        if "no such table" in text:
            return TablesUnusable(f"{path} holds no {name}; {remedy}")
        if "unable to open" in text or "readonly" in text:
            if not path.exists():
                return TablesUnusable(f"there is no {name} at {path}; {remedy}")
            return TablesUnusable(
                f"cannot write to the {name} {path}; check its owner, rights and disk, and that no transaction of "
                f"read() writes"
            )
        if "not a database" in text or "malformed" in text:
            return TablesUnusable(f"{path} is no database or is damaged; restore it from a backup")
        if "locked" in text or "busy" in text:
            return TablesAway(f"{path} was kept locked for {_BUSY_S:g} s; close what has it open, then go on")
        # SQLite reports an I/O error where it has no room for the index of its log.
        if "full" in text or ("disk i/o" in text and _free_bytes(path.parent) < _LOG_INDEX_BYTES):
            free = _free_bytes(path.parent)
            return TablesAway(
                f"the disk that holds {path} is full, with {free:,} bytes free; make room, then go on: nothing was "
                f"half-written"
            )
        if "disk i/o" in text:
            return TablesAway(f"the disk that holds {path} does not answer; check the disk, then go on")
        return None


class _FileConnection(sqlite3.Connection):
    """A connection that knows which file it has open."""

    file: os.stat_result | None = None


def _require_same_file(tables: TableDeclaration, path: Path, connection: Connection) -> None:
    """Raise TablesUnusable unless the path still leads to the file that the connection has open. The connection stays
    open, because it works again when its file is put back."""
    opened, present = getattr(connection.connection.dbapi_connection, "file", None), _stat(path)
    if opened is None or present is None or not os.path.samestat(opened, present):
        raise TablesUnusable(
            f"the {tables.name} {path} was replaced or removed while this process had it open; put the file back, or "
            f"start the node, server or program again"
        )


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _free_bytes(folder: Path) -> float:
    """Return the free bytes of the disk of a folder; infinity where the disk does not say."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return math.inf


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing file. Transactions are begun by an event (``open_sqlite``), and not
    by the driver, whose own would begin with the first statement that writes."""
    # Before it is opened: if it is replaced in between, the first transaction notices that.
    file = _stat(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        factory=_FileConnection,
    )
    connection.file = file
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
