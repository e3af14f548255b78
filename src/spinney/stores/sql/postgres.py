"""The store in a schema of a PostgreSQL database, 14 or later.

Writers go one after the other, as on SQLite: the first statement of every write transaction updates the row
``turn`` of ``counters``, and so waits until the transaction before has ended. READ COMMITTED then shows each
statement all that was committed before, so that whatever holds for one file with one writer holds here: limits,
locks and quotas are counted under that row, and nothing can deadlock. The number in it says to readers that
somebody has committed.

A row lock, so it works behind a pooler and goes with its holder: what stands still in a transaction (a stopped
process, a lost network) is ended by the server after a while.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from spinney.stores.sql.database import Database, Tx
from spinney.stores.sql.reaching import Way
from spinney.stores.sql.translating import at_once, copied, translated

MANY = 20
"""So many rows are worth a COPY, or one statement with arrays, instead of a statement for each."""


class PostgresDatabase(Database):
    """A schema of a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._way = Way(url)
        self.name, self.schema = self._way.name, self._way.schema
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None

    # --- writing and reading --------------------------------------------------------------

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Tx]:
        with self._way.explained():
            self._writer = writer = self._opened(self._writer)
            begin = "begin" if durable else "begin; set local synchronous_commit = off"
            writer.execute(begin)
            try:
                writer.execute("update counters set value = value + 1 where name = 'turn'")
                yield _tx(writer)
                writer.execute("commit")
            except BaseException:
                _roll_back(writer)
                raise

    @contextmanager
    def look(self) -> Iterator[Tx]:
        with self._way.explained():
            self._reader = reader = self._opened(self._reader)
            reader.execute("begin isolation level repeatable read read only")
            try:
                yield _tx(reader)
            finally:
                _roll_back(reader)

    def data_version(self) -> int:
        with self._way.explained():
            self._reader = reader = self._opened(self._reader)
            found = reader.execute("select value from counters where name = 'turn'").fetchone()
        return int(found[0]) if found is not None else 0

    # --- the store itself -----------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        with self.look() as tx:
            version, synchronous = tx.one(
                "select current_setting('server_version'), current_setting('synchronous_commit')"
            )
        return {
            "database": "PostgreSQL",
            "version": version,
            "url": self.name,
            "schema": self.schema,
            "durability": f"synchronous_commit={synchronous}",
        }

    def upgrade(self, run: Callable[[Any], None]) -> None:
        engine = create_engine("postgresql+psycopg://", creator=self._way.connect, poolclass=NullPool)
        try:
            with self._way.explained(), engine.begin() as connection:
                # Two that make one store at the same time: the second waits, and finds it made.
                connection.exec_driver_sql("select pg_advisory_xact_lock(hashtext(%s))", (f"spinney {self.schema}",))
                if connection.exec_driver_sql("select to_regnamespace(%s)", (self.schema,)).scalar() is None:
                    connection.exec_driver_sql(f'create schema "{self.schema}"')
                run(connection)
                connection.exec_driver_sql(
                    "insert into counters (name, value) values ('turn', 0) on conflict do nothing"
                )
        finally:
            engine.dispose()

    def close(self) -> None:
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()
        self._writer = self._reader = None

    # --- connections ----------------------------------------------------------------------

    def _opened(self, connection: "psycopg.Connection[Any] | None") -> "psycopg.Connection[Any]":
        if connection is not None and not connection.closed:
            return connection
        connection = self._way.connect()
        try:
            self._way.require_store(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _tx(connection: "psycopg.Connection[Any]") -> Tx:
    cursor = connection.cursor()

    def run(sql: str, args: Sequence[Any] = ()) -> Any:
        text, order = translated(sql)
        return cursor.execute(text, args if order is None else [args[n] for n in order])

    def many(sql: str, rows: Iterable[Sequence[Any]]) -> None:
        rows = rows if isinstance(rows, list) else list(rows)
        if len(rows) >= MANY and (copied_in(rows, sql) or done_at_once(rows, sql)):
            return
        text, order = translated(sql)
        cursor.executemany(text, rows if order is None else [[row[n] for n in order] for row in rows])

    def copied_in(rows: list[Sequence[Any]], sql: str) -> bool:
        copy = copied(sql)
        if copy is None:
            return False
        with cursor.copy(copy) as target:
            for row in rows:
                target.write_row(row)
        return True

    def done_at_once(rows: list[Sequence[Any]], sql: str) -> bool:
        columns = list(zip(*rows, strict=True))
        kinds = tuple(map(_kind, columns))
        whole = at_once(sql, kinds)
        if whole is None:
            return False
        cursor.execute(whole, [list(c) for c, kind in zip(columns, kinds, strict=True) if kind is not None])
        return True

    return Tx(cursor, run=run, many=many, in_transaction=lambda: _in_transaction(connection))


_KINDS = {bool: "smallint", int: "bigint", str: "text", float: "double precision"}


def _kind(column: Sequence[Any]) -> str | None:
    """The type of these values; None when all are null."""
    first = next((value for value in column if value is not None), None)
    if first is None:
        return None
    return next(name for kind, name in _KINDS.items() if isinstance(first, kind))


def _in_transaction(connection: "psycopg.Connection[Any]") -> bool:
    return not connection.closed and connection.info.transaction_status in (
        psycopg.pq.TransactionStatus.INTRANS,
        psycopg.pq.TransactionStatus.INERROR,
    )


def _roll_back(connection: "psycopg.Connection[Any]") -> None:
    """What cannot be rolled back because the connection is gone, the server rolls back."""
    try:
        if _in_transaction(connection):
            connection.execute("rollback")
    except psycopg.Error:
        connection.close()
