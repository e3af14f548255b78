"""The store in one SQLite file.

A database has one writing connection, whose transactions pass the write queue, and one reading connection, both on
the driver itself (SQLAlchemy's layers halve the rate of the hot statements).

The file is in WAL mode, so that readers and the writer do not wait for each other. A durable commit syncs the
log (``synchronous = full``), any other leaves that to the next durable one (``normal``): after a power
failure the file may return to an earlier commit, and is consistent in any case
(https://sqlite.org/pragma.html#pragma_synchronous). Every connection, also one that creates, upgrades or
copies a store, writes and makes checkpoints only inside the queue.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from spinney.files.disk_space import is_read_only
from spinney.host.ownership import make_directory
from spinney.model.errors import StoreMissing, StoreUnusable
from spinney.model.values.paths import beside
from spinney.store.sql.connection.database import Database, Tx, closed_on_error
from spinney.store.sql.connection.lock_wait import PATIENCE_S, TELL_AFTER_S, LockWait
from spinney.store.sql.connection.schema_state import SchemaState, require_workable
from spinney.store.sql.connection.sqlite_file import (
    INDEX_IN_MEMORY,
    READ_WRITE,
    explained,
    explanation,
    is_locked,
    opening_mode,
    quoted,
    refuse_network,
    require_same_file,
    unwritable,
)
from spinney.store.sql.connection.sqlite_tx import SqliteTx, add_functions
from spinney.store.sql.connection.write_queue import WriteQueue

T = TypeVar("T")
_BUSY_S = 0.05
"""How long SQLite itself waits for a lock while a connection is opened; signals are not handled meanwhile. Later a
writer does not wait inside the write queue at all, because others wait behind it: with forty nodes on a locked file
each would get in only once in two seconds. ``LockWait`` waits outside."""
_READ_BUSY_S = 5.0
"""The same for a reader, which waits only for a program that locks the whole file."""
CACHE_KIB = 16_384
CHECKPOINT_PAGES, LATE_CHECKPOINT_PAGES = 1_000, 4_000
"""The size of the write-ahead log, in pages, from which a synced commit copies it into the file (2 to 5 ms); and the
size from which even a commit that somebody waits for does so, because no other has for long."""


_databases: "WeakSet[SqliteDatabase]" = WeakSet()
"""The databases of this process."""
_open_at_fork: set[Path] = set()
"""The files that the process had open from which this one was forked."""
_of_parent: list[object] = []
"""The connections that it had to them."""


class _KeptOut(Exception):
    """A node is to beat before others write (``WriteQueue.kept_out``)."""


class SqliteDatabase(Database):
    """A database in one SQLite file. It is opened by the first use. When the file is replaced or removed
    while it is open, every transaction raises StoreReplaced."""

    has_row_locks = False

    def __init__(
        self,
        path: Path,
        cache_kib: int = CACHE_KIB,
        patience_s: float | None = None,
        on_wait: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """``cache_kib``: how much of the file each connection caches. ``patience_s``: how long a transaction waits for
        another program that has the file locked; None: a limit for people. ``on_wait`` is called with a sentence about
        such a wait."""
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._on_wait, self.tell_after_s = on_wait, TELL_AFTER_S
        # Absolute, because the program may change its directory.
        self.path, self.name = path.absolute(), str(path)
        self._cache_kib = cache_kib
        self.run_folder = beside(path, ".run")
        self._writer: sqlite3.Connection | None = None
        self._write_queue: WriteQueue | None = None
        self._file: os.stat_result | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading_mode: str | None = None  # see ``opening_mode``
        self._durable, self._late = True, False
        """The current settings of the writing connection."""
        _databases.add(self)

    def note_fork(self) -> None:
        """Give up the connections of the process from which this one was forked, and refuse others to the same file.

        SQLite takes the locks of that process for this one's, so that it would write into a log which that process has
        deleted. The connections are not closed: that would release locks."""
        if self._writer or self._reader:
            _of_parent.append((self._writer, self._reader))
            _open_at_fork.add(self.path)
            self._writer = self._reader = None

    # --- writing --------------------------------------------------------------------------

    @contextmanager
    def write(self, *, durable: bool = True, awaited: bool = False, urgent: bool = False) -> Iterator[Tx]:
        """See ``Database.write``. The whole transaction is inside the write queue: a process that is killed
        in it leaves the queue by the kernel, and SQLite ignores what it had not committed."""
        writer, write_queue = self._open_writer()

        def begin() -> None:
            # Before its turn, for which others may wait.
            self._tune(writer, durable, late=awaited or not durable)
            write_queue.enter(urgent=urgent)
            try:
                if write_queue.kept_out():
                    raise _KeptOut
                writer.execute("begin immediate")
            except BaseException:
                write_queue.leave()  # others may be able to begin
                raise

        try:
            self._insist(begin)
            try:
                yield SqliteTx(writer)
                writer.execute("commit")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise explanation(self.path, error) from error
        finally:
            write_queue.leave()

    def _insist(self, call: Callable[[], T]) -> T:
        """Call this again until no other program has the file locked and no node keeps others out, and return its
        result."""
        patience = None
        while True:
            try:
                return call()
            except _KeptOut:
                pass
            except sqlite3.OperationalError as error:
                if not is_locked(error):
                    raise
            patience = patience or LockWait(self.path, self._patience_s, self.tell_after_s, self._on_wait)
            patience.step()

    def keep_out(self) -> bool:
        _, write_queue = self._open_writer()
        write_queue.keep_out()
        return True

    def let_in(self) -> None:
        if self._write_queue is not None:
            self._write_queue.let_in()

    def _tune(self, writer: sqlite3.Connection, durable: bool, *, late: bool) -> None:
        """Set whether the next commit is synced, and from which size of the log it makes a checkpoint. Both
        are settings of the connection, made only when they differ, and before the transaction: within one the
        first is refused."""
        if durable != self._durable:
            writer.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            self._durable = durable
        if late != self._late:
            pages = LATE_CHECKPOINT_PAGES if late else CHECKPOINT_PAGES
            writer.execute(f"pragma wal_autocheckpoint = {pages}")
            self._late = late

    def _open_writer(self) -> tuple[sqlite3.Connection, WriteQueue]:
        """Return the writing connection and its place in the queue; they are opened by the first call. SQLite
        itself waits for no lock on it, since ``LockWait`` does. Raises StoreUnusable, StoreLocked,
        StoreReplaced."""
        if self._writer is None or self._write_queue is None:
            writer = self._to_store()
            with closed_on_error(writer), explained(self.path):
                write_queue = self._write_queue = self._write_queue or WriteQueue(self.run_folder)

                def set_up() -> None:
                    with write_queue.passed():
                        self._set_up(writer)

                self._insist(set_up)
                writer.execute("pragma busy_timeout = 0")
            self._writer = writer
            self._durable, self._late = True, False
        require_same_file(self.path, self._file)
        return self._writer, self._write_queue

    # --- reading --------------------------------------------------------------------------

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """See ``Database.look``. A reader that stays in one for long keeps the log from being copied into the
        file, so that it grows; therefore a snapshot ends at once."""
        reader = self._open_reader()
        with explained(self.path):
            reader.execute("begin")
            try:
                yield SqliteTx(reader)
            finally:
                if reader.in_transaction:
                    reader.execute("rollback")

    def data_version(self) -> int:
        """See ``Database.data_version``. SQLite counts commits of all other connections, among them the
        writing one of this object (https://sqlite.org/pragma.html#pragma_data_version)."""
        reader = self._open_reader()
        with explained(self.path):
            return int(reader.execute("pragma data_version").fetchone()[0])

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader and READ_WRITE != self._reading_mode != opening_mode(self.path):
            self._reader.close()  # it would not see what others write now
            self._reader = None
        if self._reader is None:
            mode, reader = opening_mode(self.path), self._to_store(to_read=True)
            with closed_on_error(reader), explained(self.path):
                reader.execute(f"pragma busy_timeout = {round(_READ_BUSY_S * 1000)}")
                self._insist(lambda: self._set_up(reader))
            self._reader, self._reading_mode = reader, mode
        require_same_file(self.path, self._file)
        return self._reader

    # --- the store itself -----------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        return {
            "database": "SQLite",
            "version": sqlite3.sqlite_version,
            "file": str(self.path.absolute()),
            "durability": "synchronous=FULL",
        }

    def create(self, statements: Sequence[tuple[str, Sequence[object]]]) -> bool:
        """See ``Database.create``. If two processes create one store at once, the second finds it created."""

        def run() -> bool:
            with closing(self.connect(_BUSY_S)) as connection:
                connection.execute("begin immediate")
                if connection.execute("select exists(select 1 from sqlite_master)").fetchone()[0]:
                    return False
                for sql, values in statements:
                    connection.execute(sql, values)
                connection.execute("commit")
                return True

        return self._in_turn(run)

    def upgrade(self, run: Callable[[Any], None]) -> None:
        from spinney.store.sql.connection.engines import transaction  # slow to import, and rarely needed

        def alter() -> None:
            with transaction(
                "sqlite://", lambda: self.connect(_BUSY_S), begin="begin immediate"
            ) as connection:
                run(connection)

        self._in_turn(alter)

    def _in_turn(self, change: Callable[[], T]) -> T:
        """Make the file if it is missing, and call this while no other process writes."""
        self.make_file()
        with closing(WriteQueue(self.run_folder)) as write_queue, explained(self.path):

            def in_turn() -> T:
                with write_queue.passed():
                    return change()

            return self._insist(in_turn)

    def schema_state(self) -> SchemaState | None:
        refuse_network(self.path)
        if not self.path.exists():
            return None
        with explained(self.path), closing(self._insist(self._opened)) as connection:
            return self._insist(lambda: _schema_state(connection))

    @contextmanager
    def fill(self) -> Iterator[Tx]:
        self.make_file()
        with (
            closing(WriteQueue(self.run_folder)) as write_queue,
            write_queue.passed(),
            explained(self.path),
            closing(self.connect()) as connection,  # its end rolls back what is not committed
        ):
            connection.execute("begin immediate")
            yield SqliteTx(connection)
            connection.execute("commit")

    # --- the file -------------------------------------------------------------------------

    def make_file(self) -> None:
        """Make the file and its run-time folder, for their owner alone; an existing file is kept. Raises
        StoreUnusable."""
        refuse_network(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            make_directory(self.run_folder, like=self.path)
        except OSError as error:
            raise StoreUnusable(
                f"cannot make the store {self.path}: {error.strerror}; choose a folder you can write to"
            ) from error

    def _to_store(self, *, to_read: bool = False) -> sqlite3.Connection:
        """Return a connection to the store in this file, without settings, which would change a file of another
        program. Raises StoreUnusable, with what to do, when this code cannot work with what is there."""
        refuse_network(self.path)
        if self.path in _open_at_fork:
            raise StoreUnusable(
                f"{self.path} was open when this process was forked, and what it wrote could be lost; close the store "
                "before the fork (app.close(), or leave the block of open_control), or start the process with "
                "multiprocessing's 'spawn'"
            )
        if not self.path.exists():
            raise StoreMissing(
                f"there is no store at {self.path}; make one with 'spinney init' or name another"
            )
        if not (to_read and is_read_only(self.path.parent)):
            if not os.access(self.path, os.R_OK | os.W_OK) or not os.access(self.run_folder.parent, os.W_OK):
                raise unwritable(self.path)
            make_directory(self.run_folder, like=self.path)
        with explained(self.path):
            connection = self._insist(self._opened)
            with closed_on_error(connection):
                schema_state = self._insist(lambda: _schema_state(connection))
                if schema_state is None:
                    raise StoreMissing(f"{self.path} is no Spinney store; make one there with 'spinney init'")
                require_workable(str(self.path), schema_state)
        # Only now: on an overlay of file systems the first opening for writing makes a file of it.
        self._file = self._file or self.path.stat()
        return connection

    def connect(self, busy_s: float = _READ_BUSY_S) -> sqlite3.Connection:
        """Return a connection to the file, whatever it holds. ``busy_s``: how long SQLite itself waits for a lock."""
        connection = self._opened(busy_s)
        with closed_on_error(connection):
            self._set_up(connection)
        return connection

    def _opened(self, busy_s: float = _BUSY_S) -> sqlite3.Connection:
        mode = opening_mode(self.path)
        connection = sqlite3.connect(
            f"file:{quoted(self.path)}?{mode}",
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        if mode == INDEX_IN_MEMORY:
            connection.execute("pragma locking_mode = exclusive")
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"pragma cache_size = -{self._cache_kib}")
        connection.execute("pragma temp_store = memory")
        add_functions(connection)

    def close(self) -> None:
        """Close both connections and the lock files; the next use opens them again."""
        with ExitStack() as closed:
            # The last connection that is closed makes a checkpoint, so it has to be inside the write queue.
            if self._write_queue or READ_WRITE == self._reading_mode == opening_mode(self.path):
                write_queue = closed.enter_context(closing(self._write_queue or WriteQueue(self.run_folder)))
                closed.enter_context(write_queue.passed())
            for connection in filter(None, (self._reader, self._writer)):
                connection.close()
        self._reader = self._reading_mode = self._writer = self._write_queue = self._file = None


def _schema_state(connection: sqlite3.Connection) -> SchemaState | None:
    try:
        row = connection.execute("select version_num from alembic_version").fetchone()
        meta = dict(connection.execute("select name, value from meta"))
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    return SchemaState(schema=row[0] if row else "", meta=meta)


def _note_fork() -> None:
    for database in list(_databases):
        database.note_fork()


os.register_at_fork(after_in_child=_note_fork)
