"""What the modules of this store write their statements for: a transaction, and the database it is one of.

Statements are written once, for every dialect: with ``?`` (or ``?1``, ``?2``) for parameters, ``json_each(?) j``
for a JSON list of numbers, ``json_each(?) /* text */ j`` for one of strings, ``printf('%012d', …)``, and otherwise
in the SQL that SQLite 3.39 and PostgreSQL 14 have in common. Each dialect spells what differs (``sqlite``,
``postgres``).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

SCHEMA_VERSION = "0003"


class Tx:
    """One transaction, or one snapshot. Rows are plain tuples."""

    __slots__ = ("_cursor", "_in_transaction", "many", "run")

    def __init__(
        self,
        cursor: Any,
        *,
        run: Callable[..., Any],
        many: Callable[[str, Iterable[Sequence[Any]]], Any],
        in_transaction: Callable[[], bool],
    ) -> None:
        """``run`` and ``many`` (for each row of arguments) execute a statement on the cursor."""
        self._cursor, self._in_transaction = cursor, in_transaction
        self.run, self.many = run, many

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = self.run(sql, args).fetchall()
        return found

    def one(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first row, or None."""
        return self.run(sql, args).fetchone()

    def value(self, sql: str, args: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.run(sql, args).fetchone()
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

    def take(self, counter: str, n: int = 1) -> int:
        """Reserve ``n`` numbers of a counter; returns the first."""
        last: int = self.run(
            "update counters set value = value + ? where name = ? returning value", (n, counter)
        ).fetchone()[0]
        return last - n + 1


class Database(ABC):
    """Connections to one database. Opened by first use; belongs to one thread at a time."""

    name: str
    """For sentences: its file, or its URL without the password."""

    @abstractmethod
    def write(self, *, durable: bool = True) -> AbstractContextManager[Tx]:
        """One transaction in its turn: commits when the block ends, rolls back when it raises.

        ``durable=False`` is for what need not survive a loss of power (a claim, a heartbeat): it is
        committed, for everybody to see, but not synced; the next durable commit syncs it, too. What
        a loss of power takes is always the newest, so that the database goes back to an earlier state
        as a whole.
        """

    @abstractmethod
    def look(self) -> AbstractContextManager[Tx]:
        """One snapshot, let go at the end of the block."""

    @abstractmethod
    def data_version(self) -> int:
        """Moves when another connection has committed."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What it is, for people: product, version, place, durability."""

    @abstractmethod
    def upgrade(self, run: Callable[[Any], None]) -> None:
        """Make what is missing of the place, and call ``run`` with an SQLAlchemy connection, in one transaction
        and while nobody else writes. Raises StoreUnusable for the database of another program."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open. It may be used again."""
