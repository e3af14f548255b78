"""What the modules of this store write their statements for: a transaction, and the database it is one of.

Statements are written once, for every dialect: with ``?`` (or ``?1``, ``?2``) for parameters, ``json_each(?) j``
for a JSON list of numbers, ``json_each(?) /* text */ j`` for one of strings, ``printf('%012d', …)``, and otherwise
in the SQL that SQLite 3.39 and PostgreSQL 14 have in common. Each dialect spells what differs (``sqlite``,
``postgres``).
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from spinney.model.errors import UsageError

if TYPE_CHECKING:
    from spinney.store.contract import Listener
    from spinney.store.sql.connection.schema_state import SchemaState

SCHEMA_VERSION = "0008"
MOVES = (
    "select name, value from counters where name = 'registry' "
    "union all select name, value from counters where name = 'watermarks'"
)
"""Two look-ups: for ``in (…)`` SQLite makes a table of its list each time, which costs more than both."""


def damaged(data: bytes) -> str:
    """What stands for bytes of the database that are no text: it is no JSON, whatever they hold."""
    return "\ufffd" + data.decode(errors="replace")


class Tx:
    """One transaction, or one snapshot. Rows are plain tuples."""

    __slots__ = (
        "_cursor",
        "_in_transaction",
        "_lenient",
        "_moves",
        "many",
        "must_last",
        "passed_on",
        "postgresql",
        "run",
    )

    def __init__(
        self,
        cursor: Any,
        *,
        run: Callable[..., Any],
        many: Callable[[str, Iterable[Sequence[Any]]], Any],
        in_transaction: Callable[[], bool],
        postgresql: bool = False,
        passed_on: Callable[[int], object] = lambda n: None,
        moves: Mapping[str, int] | None = None,
        lenient: Callable[[bool], object] | None = None,
    ) -> None:
        """``run`` and ``many`` (for each row of arguments) execute a statement on the cursor.
        ``postgresql``: for the few hot statements that are written once for each. ``passed_on(n)`` hears that so many
        jobs have left ``ready`` for ``leases``, which they will leave, too. ``moves``: see that method.
        ``lenient`` says whether texts that are none are read all the same, from now on."""
        self.postgresql, self.passed_on = postgresql, passed_on
        self._cursor, self._in_transaction, self._moves = cursor, in_transaction, moves
        self._lenient = lenient
        self.run, self.many = run, many
        self.must_last = False
        """It must outlast its server, if it has one, whatever ``Database.write`` was told."""

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        try:
            rows: list[Any] = self.run(sql, args).fetchall()
        except sqlite3.OperationalError as error:
            self._bear(error, sql)
            rows = self.run(sql, args).fetchall()
        return rows

    def _bear(self, error: sqlite3.OperationalError, sql: str) -> None:
        """Return when a query may be made again: it met a damaged text, which spoils nothing but itself."""
        if self._lenient is None or "decode to UTF-8" not in str(error) or " returning " in sql:
            raise error
        self._lenient(True)

    def exact(self) -> None:
        """From now on a damaged text raises: for who copies it."""
        if self._lenient is not None:
            self._lenient(False)
        self._lenient = None

    def all_at_once(self, columns: str, source: str, args: Sequence[Any] = ()) -> list[list[Any]]:
        """The rows of "select columns source", in the order in which they are found, of numbers and texts. From a file
        they come as one text: the driver gives the interpreter's lock away and waits for it at every row."""
        if self.postgresql:
            return self.all(f"select {columns} {source}", args)
        try:
            text = self.value(f"select json_group_array(json_array({columns})) {source}", args)
            rows: list[list[Any]] = orjson.loads(text)
        except (sqlite3.DataError, sqlite3.OperationalError, ValueError):
            # No text is longer than a billion bytes: a thousand jobs' long parameters may be. Or one is damaged.
            found = self.all(f"select {columns} {source}", args)
            return [[damaged(value) if isinstance(value, bytes) else value for value in row] for row in found]
        return rows

    def one(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        try:
            return self.run(sql, args).fetchone()
        except sqlite3.OperationalError as error:
            self._bear(error, sql)
            return self.run(sql, args).fetchone()

    def value(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.one(sql, args)
        return None if row is None else row[0]

    def changed(self) -> int:
        """How many rows the last statement changed."""
        changed: int = self._cursor.rowcount
        return changed

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What the block does is undone when it raises, and nothing else of the transaction."""
        self.run("savepoint part")
        try:
            yield
        except BaseException:
            # A full disk may have taken the whole transaction back; then there is nothing to go back to.
            if self._in_transaction():
                self.run("rollback to part")
                self.run("release part")
            raise
        self.run("release part")

    def moves(self) -> Mapping[str, int]:
        """The counters by which a cache knows whether it is up to date. On a server they come with the answer to the
        transaction's first statement, once: what the transaction itself moves is read anew."""
        moves, self._moves = self._moves, None
        return dict(self.all(MOVES)) if moves is None else moves

    def take(self, counter: str, n: int = 1) -> int:
        """Reserve ``n`` numbers of a counter; returns the first."""
        last: int
        if self.postgresql:
            last = self.value(
                "update counters set value = value + ? where name = ? returning value", (n, counter)
            )
        else:  # where ``returning`` makes a table for its row, which costs more than another statement
            self.run("update counters set value = value + ? where name = ?", (n, counter))
            last = self.value("select value from counters where name = ?", (counter,))
        return last - n + 1


class Database(ABC):
    """Connections to one database. Opened by first use; belongs to one thread at a time."""

    name: str
    """For sentences: its file, or its URL without the password."""
    connected = 0
    """Moves when a connection to a server has been made. What was read before is not to be believed then: a server
    that crashed has lost what was committed and not synced, and numbers are given anew."""

    @abstractmethod
    def write(self, *, durable: bool = True, awaited: bool = False) -> AbstractContextManager[Tx]:
        """One transaction in its turn: commits when the block ends, rolls back when it raises.

        ``durable=False`` is for what need not survive a loss of power (a claim, a heartbeat): it is
        committed, for everybody to see, but not synced; the next durable commit syncs it, too. What
        a loss of power takes is always the newest, so that the database goes back to an earlier state
        as a whole. Where the database is on another machine than those who use it, they outlive its loss:
        see ``Tx.must_last``.

        ``awaited``: somebody waits for what comes of it, so that upkeep which a commit may bring with it is left to
        others for as long as can be. What is not durable is taken to be.
        """

    @abstractmethod
    def look(self) -> AbstractContextManager[Tx]:
        """One snapshot, let go at the end of the block."""

    def look_long(self) -> AbstractContextManager[Tx]:
        """The same for as long as it takes, whatever the caller does between two statements."""
        return self.look()

    @abstractmethod
    def data_version(self) -> int:
        """Moves when another connection has committed."""

    def keep_out(self) -> bool:
        """See ``Store.keep_out``; False where it cannot be done."""
        return False

    def let_in(self) -> None:  # noqa: B027 - nobody is kept out
        """Let others write again that ``keep_out`` kept from it."""

    def notify(self, sender: str) -> None:  # noqa: B027 - nobody listens to a file
        """See ``Store.notify``."""

    def listen(self) -> "Listener | None":
        """See ``Store.listen``."""
        return None

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What it is, for people: product, version, place, durability."""

    @abstractmethod
    def upgrade(self, run: Callable[[Any], None]) -> None:
        """Make what is missing of the place, and call ``run`` with an SQLAlchemy connection, in one transaction
        and while nobody else writes; it may be called again after that was rolled back. Raises StoreUnusable for the
        database of another program."""

    @abstractmethod
    def schema_state(self) -> "SchemaState | None":
        """What the place holds, whether this code may work with it or not; None where no store has been made."""

    @abstractmethod
    def fill(self) -> AbstractContextManager[Tx]:
        """One transaction on a store that no node may use yet (it is marked as part of a copy), for as long as it
        takes; nobody else is in one at the same time."""

    def grant(self, roles: Sequence[str]) -> None:
        """See ``SqlStore.grant``."""
        raise UsageError(
            f"{self.name} is one file and has no roles; who may read and write the file works with it"
        )

    def script(self, roles: Sequence[str]) -> str:
        """See ``SqlStore.script``."""
        raise UsageError(f"{self.name} is one file, which 'spinney init' makes itself; leave out --sql")

    @abstractmethod
    def close(self) -> None:
        """Close what is open. It may be used again."""
