"""The two interfaces between the statements of this store and a database: ``Database`` and its transaction, ``Tx``.

Statements are written once, in the SQL that SQLite 3.39 and PostgreSQL 14 have in common, with ``?`` (or ``?1``) for
parameters. Where the dialects differ:

* a list is one JSON text: ``json_each(?) j`` for numbers, ``json_each(?) /* text */ j`` for strings. PostgreSQL has no
  such function, so ``postgres_dialect`` replaces this one, together with the marks of the parameters;
* many rows are inserted by ``Tx.insert``, and updated or deleted by their keys by ``Tx.change``;
* a few hot statements are written twice (``Tx.postgresql``).

Apart from these few, no code above this package learns which database it works with. A transaction is a
context manager: it commits when the block ends and rolls back when the block raises.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import orjson

from spinney.model.errors import UsageError

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    from spinney.store.contract import Listener
    from spinney.store.sql.connection.schema_state import SchemaState

K = TypeVar("K")
V = TypeVar("V")
ScriptRenderer: TypeAlias = "Callable[[str, SchemaState | None, bool, Sequence[str]], str]"
"""``migrations.init_script.script``, which stands above this package."""

MOVES = (
    "select name, value from counters where name = 'registry' "
    "union all select name, value from counters where name = 'watermarks'"
)
"""The counters by which caches know whether they are up to date. Two look-ups, because SQLite builds a table of a list
(``in (…)``) each time, which costs more than both."""


class DamagedText(Exception):
    """A text in the database is not valid UTF-8, and this transaction reads every text exactly (``Tx.exact``)."""


@contextmanager
def closed_on_error(connection: "sqlite3.Connection | psycopg.Connection[Any]") -> Iterator[None]:
    """Close a connection whose first steps fail, so that nobody keeps it."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def list_text(values: Iterable[object]) -> str:
    """Return a list as a statement takes it: as the JSON text of which ``json_each`` makes rows."""
    return orjson.dumps(list(values)).decode()


def transposed(rows: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    """Return the ``width`` columns of these rows."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second items of these pairs by the first ones, both in the order in which they came."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def damaged(data: bytes) -> str:
    """Return what stands for bytes of the database that are not valid text. It is no JSON, whatever they are."""
    return "\ufffd" + data.decode(errors="replace")


@dataclass(frozen=True)
class RowChange:
    """An update or delete of single rows by their keys, to be run for many rows of arguments; see ``Tx.change``.

    The arguments of a row are those of ``set``, then those of ``where``; each mark is a plain ``?``, and none stands
    inside a string.
    """

    table: str
    where: str
    """Conditions on this table, among them its key."""
    set: str = ""
    """The assignments of an update; empty: it is a delete."""

    @cached_property
    def statement(self) -> str:
        """Return the SQL statement that updates or deletes one row."""
        verb = f"update {self.table} set {self.set}" if self.set else f"delete from {self.table}"
        return f"{verb} where {self.where}"


class Tx(ABC):
    """One transaction, or one snapshot. Rows are plain tuples."""

    __slots__ = ("_cursor", "must_last")

    postgresql: ClassVar[bool]
    """Whether the dialect is that of PostgreSQL, for the few hot statements that are written once for each dialect."""
    run: Callable[..., Any]
    """Execute a statement with its arguments, and return the cursor."""
    many: Callable[[str, Sequence[Sequence[Any]]], Any]
    """Execute a statement once for each row of arguments."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self.must_last = False
        """The commit must survive the loss of the database server, whatever ``Database.write`` was called with."""

    @abstractmethod
    def in_transaction(self) -> bool:
        """Return whether the transaction is still open: a full disk may have rolled it back."""

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        """Return all rows that the statement selects or returns."""
        rows: list[Any] = self.run(sql, args).fetchall()
        return rows

    def one(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """Return the first row, or None."""
        return self.run(sql, args).fetchone()

    def value(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row, or None."""
        row = self.one(sql, args)
        return None if row is None else row[0]

    def column(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        """Return the first column of all rows."""
        return [row[0] for row in self.all(sql, args)]

    def exists(self, sql: str, args: Sequence[Any] = ()) -> bool:
        """Return whether there is a row."""
        return self.one(sql, args) is not None

    def columns(self, names: Sequence[str], source: str, args: Sequence[Any] = ()) -> list[Sequence[Any]]:
        """Return the columns of the rows of "select names source", whose values are numbers and texts, in the order in
        which the database finds the rows. It is for statements that return thousands of rows: on SQLite each column
        comes as one text, which is quicker."""
        return transposed(self.all(f"select {', '.join(names)} {source}", args), len(names))

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert these rows. ``columns``: their names, separated by ", "."""
        marks = ", ".join("?" * (columns.count(",") + 1))
        self.many(f"insert into {table} ({columns}) values ({marks})", rows)

    def change(self, change: RowChange, rows: Sequence[Sequence[Any]]) -> None:
        """Do this change for each row of arguments; rows that match nothing change nothing. On a server many
        rows are one statement."""
        self.many(change.statement, rows)

    def delete_listed(self, table: str, column: str, listed: str) -> None:
        """Delete the rows with one of these numbers in a column. ``listed``: see ``list_text``."""
        self.run(f"delete from {table} where {column} in (select j.value from json_each(?) j)", (listed,))

    def delete_some(self, table: str, key: str, where: str, args: Sequence[Any], most: int) -> bool:
        """Delete at most ``most`` of the rows that match, so that a transaction stays short; return whether there may
        be more. ``key``: the columns of the key. SQLite, as it is usually built, has no limit in a delete."""
        self.run(
            f"delete from {table} where ({key}) in (select {key} from {table} where {where} limit ?)",
            (*args, most),
        )
        return self.changed() == most

    def changed(self) -> int:
        """Return how many rows the last statement changed, over all rows of ``many``."""
        changed: int = self._cursor.rowcount
        return changed

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block did when it raises, and nothing else of the transaction."""
        self.run("savepoint part")
        try:
            yield
        except BaseException:
            if self.in_transaction():
                self.run("rollback to part")
                self.run("release part")
            raise
        self.run("release part")

    def moves(self) -> Mapping[str, int]:
        """Return the counters by which a cache knows whether it is up to date."""
        return dict(self.all(MOVES))

    @abstractmethod
    def take(self, counter: str, n: int = 1) -> int:
        """Reserve ``n`` numbers of a counter, and return the first. A rollback takes them back; no other
        transaction can get the same numbers meanwhile, since there is one writer at a time."""

    def passed_on(self, n: int) -> None:  # noqa: B027 - only a server has to be vacuumed
        """Note that this many jobs have left ``ready`` for ``leases``, and will leave that, too."""

    def exact(self) -> None:  # noqa: B027 - a server holds no damaged text
        """From now on raise DamagedText for damaged text, instead of reading it all the same; for copies."""


class Database(ABC):
    """The connections to one database. They are opened by the first use, and belong to one thread at a time."""

    name: str
    """Its name in messages: the file, or the URL without the password."""
    has_row_locks: ClassVar[bool]
    """Whether writers of different rows need not wait for each other."""
    connected = 0
    """Counts the connections made to a server. After a new one, what was read before is void: a server that crashed has
    lost commits that were not synced, and assigns their numbers again."""

    @abstractmethod
    def write(
        self, *, durable: bool = True, awaited: bool = False, urgent: bool = False
    ) -> AbstractContextManager[Tx]:
        """Run one transaction when it is this process's turn: it commits when the block ends, and rolls back when the
        block raises.

        ``durable=False`` is for what need not survive a power failure (a claim, a heartbeat): it is committed, and
        visible to all, but not synced; the next durable commit syncs it, too. A power failure always takes the latest
        commits, so that the database returns to an earlier state as a whole. A server may fail while the nodes on other
        machines live on: see ``Tx.must_last``.

        ``awaited``: a caller waits for the result, so maintenance that a commit may cause is left to other commits for
        as long as possible. A transaction that is not durable counts as awaited.

        ``urgent`` is for one statement on one row that nobody else changes for long (a heartbeat). On a server it waits
        for no other writer, because the lock of its row suffices, and is no change that ``data_version`` reports. In a
        file, which has one writer, it waits for the transaction at work and goes ahead of the others.
        """

    @abstractmethod
    def look(self) -> AbstractContextManager[Tx]:
        """Read one snapshot, which is released at the end of the block."""

    def look_long(self) -> AbstractContextManager[Tx]:
        """Read one snapshot for as long as the block takes, even if the caller pauses between statements."""
        return self.look()

    @abstractmethod
    def data_version(self) -> int:
        """Return a number that changes when another connection has committed, for polling: it costs less than
        any query of the tables."""

    def keep_out(self) -> bool:
        """See ``Store.keep_out``; False where the database cannot do that."""
        return False

    def let_in(self) -> None:  # noqa: B027 - not needed for a server
        """End ``keep_out``: other processes may write again."""

    def notify(self, sender: str) -> None:  # noqa: B027 - nobody listens to a file
        """Notify all processes that ``listen``; a file has none."""

    def listen(self) -> "Listener | None":
        """Return what receives the notifications of others; None where there are none, as of a file."""
        return None

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Describe the database for people: product, version, place, durability."""

    def create(self, statements: Sequence[tuple[str, Sequence[object]]]) -> bool:
        """Create a store by these statements of SQLite and their parameters, in one transaction; return False, and
        change nothing, where the database has tables already or is no SQLite file."""
        return False

    @abstractmethod
    def upgrade(self, run: Callable[[Any], None]) -> None:
        """Create the file or schema if it is missing, and call ``run`` with an SQLAlchemy connection, in one
        transaction while no other process writes. ``run`` may be called again after a rollback. Raises StoreUnusable
        for the database of another program."""

    @abstractmethod
    def schema_state(self) -> "SchemaState | None":
        """Return the state of the schema, whether this code may work with it or not; None where there is no store."""

    @abstractmethod
    def fill(self) -> AbstractContextManager[Tx]:
        """Run one transaction, of any length, on a store that no node may use yet because it is marked as part of a
        copy. There is only one such transaction at a time."""

    def grant(self, roles: Sequence[str]) -> None:
        """Let these roles of a database server work with the store. Raises UsageError for a file."""
        raise UsageError(
            f"{self.name} is one file and has no roles; every user who may read and write the file can work with it"
        )

    def script(self, roles: Sequence[str], render: ScriptRenderer) -> str:
        """Return the statements that make the store, as ``render`` writes them, for an administrator to run. Raises
        UsageError for a file."""
        raise UsageError(f"{self.name} is one file, which 'spinney init' makes itself; leave out --sql")

    @abstractmethod
    def close(self) -> None:
        """Close all connections. The next use opens them again."""
