"""Connections and transactions on a SQLite file.

A ``Database`` has one writing connection, whose transactions pass the turnstile and run on the
driver itself (SQLAlchemy's layers halve the rate of the hot statements), and one reading connection
through SQLAlchemy. Statements of both are written once, for every dialect, with ``?`` marks.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from spinney.model.errors import StoreUnusable
from spinney.stores.sql.turnstile import Turnstile

SCHEMA_VERSION = "0001"
_BUSY_S = 10
_CACHE_KIB = 16_384
_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "9p",
    "glusterfs",
    "ceph",
    "lustre",
    "ncpfs",
    "fuse.sshfs",
}


class Tx:
    """One write transaction. Rows are plain tuples."""

    __slots__ = ("_cursor", "many", "run")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._cursor = connection.cursor()
        self.run = self._cursor.execute
        self.many = self._cursor.executemany

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        return self.run(sql, args).fetchall()

    def one(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        return self.run(sql, args).fetchone()

    def value(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.run(sql, args).fetchone()
        return None if row is None else row[0]

    def changed(self) -> int:
        """How many rows the last statement changed."""
        return self._cursor.rowcount

    def take(self, counter: str, n: int = 1) -> int:
        """Reserve ``n`` numbers of a counter; returns the first."""
        last: int = self.run(
            "update counters set value = value + ? where name = ? returning value", (n, counter)
        ).fetchone()[0]
        return last - n + 1


class Database:
    """A SQLite file. Opened by first use; belongs to one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_folder = path.with_name(f"{path.name}.run")
        self._writer: sqlite3.Connection | None = None
        self._turnstile: Turnstile | None = None
        self._reader: Connection | None = None
        self._durable = True

    # --- writing --------------------------------------------------------------------------

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Tx]:
        """One transaction in its turn: commits when the block ends, rolls back when it raises.

        ``durable=False`` is for what need not survive a loss of power (a claim, a heartbeat): it is
        committed, for everybody to see, but not synced; the next durable commit syncs it, too. What
        a loss of power takes is always the newest, so that the database goes back to an earlier state
        as a whole.
        """
        writer, turnstile = self._open_writer()
        turnstile.enter()
        try:
            with explained(self.path):
                if durable != self._durable:
                    writer.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                    self._durable = durable
                writer.execute("begin immediate")
                try:
                    yield Tx(writer)
                    writer.execute("commit")
                except BaseException:
                    if writer.in_transaction:
                        writer.execute("rollback")
                    raise
        finally:
            turnstile.leave()

    def _open_writer(self) -> tuple[sqlite3.Connection, Turnstile]:
        if self._writer is None or self._turnstile is None:
            self.require_store()
            self._turnstile = Turnstile(self.run_folder)
            with self._turnstile.passed(), explained(self.path):
                self._writer = self.connect()
                self._durable = True
        return self._writer, self._turnstile

    # --- reading --------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot, let go at the end of the block."""
        if self._reader is None:
            self.require_store()
            engine = create_engine("sqlite://", creator=self.connect, poolclass=NullPool)
            event.listen(engine, "begin", lambda c: c.exec_driver_sql("begin"))
            with explained(self.path):
                self._reader = engine.connect()
        with explained(self.path), self._reader.begin():
            yield self._reader

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """One snapshot for statements that are written for transactions."""
        with self.read() as connection:
            raw = connection.connection.dbapi_connection
            assert isinstance(raw, sqlite3.Connection)
            yield Tx(raw)

    def data_version(self) -> int:
        """Moves when another connection has committed."""
        with self.read():
            pass
        assert self._reader is not None
        with explained(self.path):
            raw = self._reader.connection.dbapi_connection
            assert isinstance(raw, sqlite3.Connection)
            return int(raw.execute("pragma data_version").fetchone()[0])

    # --- the file -------------------------------------------------------------------------

    def make_file(self) -> None:
        """Make the file and its run-time folder, for their owner alone; an existing file is kept."""
        refuse_network(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self.run_folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"cannot make the store {self.path}: {error.strerror}; choose a folder you can write to"
            ) from error

    def require_store(self) -> None:
        """Raise StoreUnusable with the mend when there is no store in this file."""
        if not self.path.exists():
            raise StoreUnusable(
                f"there is no store at {self.path}; make one with 'spinney init' or name another"
            )
        if not os.access(self.path, os.R_OK | os.W_OK) or not os.access(self.path.parent, os.W_OK):
            raise StoreUnusable(f"cannot write to the store {self.path}; check its owner and rights")
        self.run_folder.mkdir(mode=0o700, exist_ok=True)
        with explained(self.path):
            probe = sqlite3.connect(f"file:{_quoted(self.path)}?mode=rw", uri=True, timeout=_BUSY_S)
            try:
                found = probe.execute("select version_num from alembic_version").fetchone()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                found = None
            finally:
                probe.close()
        if found is None:
            raise StoreUnusable(f"{self.path} holds no Spinney; make one there with 'spinney init'")
        if found[0] != SCHEMA_VERSION:
            raise StoreUnusable(
                f"{self.path} has schema {found[0]}, this Spinney needs {SCHEMA_VERSION}; run 'spinney init'"
            )

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{_quoted(self.path)}?mode=rw",
            uri=True,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
        connection.execute("pragma temp_store = memory")
        return connection

    def close(self) -> None:
        """The last connection to go checkpoints, so it goes through the turnstile."""
        turnstile = self._turnstile or (Turnstile(self.run_folder) if self._reader is not None else None)
        if turnstile is None:
            return
        with turnstile.passed():
            if self._reader is not None:
                self._reader.close()
                self._reader.engine.dispose()
            if self._writer is not None:
                self._writer.close()
        turnstile.close()
        self._reader = self._writer = self._turnstile = None


def refuse_network(path: Path) -> None:
    """Raise StoreUnusable when the file would lie on a network file system, whose locks lie."""
    target = path.absolute()
    best, kind = "", ""
    for mount in psutil.disk_partitions(all=True):
        inside = target.is_relative_to(mount.mountpoint)
        if inside and len(mount.mountpoint) >= len(best):
            best, kind = mount.mountpoint, mount.fstype
    if kind.lower() in _NETWORK:
        raise StoreUnusable(
            f"{path} lies on a network file system ({kind} at {best}), where SQLite loses data; "
            f"put the store on a local disk"
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """The driver's errors as one sentence that says what to do."""
    try:
        yield
    except DBAPIError as error:
        raise _sentence(path, error.orig) from error
    except sqlite3.Error as error:
        raise _sentence(path, error) from error


def _sentence(path: Path, error: BaseException | None) -> Exception:
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return error
    if "full" in text:
        return StoreUnusable(
            f"the disk that holds {path} is full; make room, then go on: nothing was half-written"
        )
    if "not a database" in text or "malformed" in text or "encrypted" in text:
        return StoreUnusable(
            f"{path} is no database or is damaged; restore it from a backup or name another store"
        )
    if "readonly" in text or "unable to open" in text:
        return StoreUnusable(f"cannot write to the store {path}; check its owner, rights and folder")
    if "locked" in text or "busy" in text:
        return StoreUnusable(
            f"{path} is locked by a program that does not take its turn; close other SQLite tools that have it open"
        )
    if "disk i/o" in text.lower():
        return StoreUnusable(
            f"the disk that holds {path} does not answer ({text}); check the disk, then go on"
        )
    return error if isinstance(error, Exception) else StoreUnusable(f"{path}: {text}; run 'spinney init'")


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
