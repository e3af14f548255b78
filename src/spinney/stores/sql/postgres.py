"""The store in a schema of a PostgreSQL database, 14 or later.

Writers go one after the other, as on SQLite: the first statement of every write transaction updates the row
``turn`` of ``counters``, and so waits until the transaction before has ended. READ COMMITTED then shows each
statement all that was committed before, so that whatever holds for one file with one writer holds here: limits,
locks and quotas are counted under that row, and nothing can deadlock. The number in it says to readers that
somebody has committed.

A row lock, so it works behind a pooler and goes with its holder: what stands still in a transaction (a stopped
process, a lost network) is ended by the server after a while.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.places import without_password
from spinney.stores.sql.database import SCHEMA_VERSION, Database, Tx
from spinney.stores.sql.translating import at_once, copied, translated

DEFAULT_SCHEMA = "spinney"
LEAST_VERSION = 140000
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_CONNECT_S = 10
MANY = 20
"""So many rows are worth a COPY, or one statement with arrays, instead of a statement for each."""
_SETTINGS = {
    "lock_timeout": "10s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "10s",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    # Statements go from short lists to single rows: what compiling them would cost is never gained.
    "jit": "off",
}


class _Flag(Dumper):
    """Truth values are small numbers in this schema, as SQLite has them."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class PostgresDatabase(Database):
    """A schema of a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._conninfo, self.schema = parsed(url)
        self.name = without_password(url)
        self._writer: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None

    # --- writing and reading --------------------------------------------------------------

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Tx]:
        with self._explained():
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
        with self._explained():
            self._reader = reader = self._opened(self._reader)
            reader.execute("begin isolation level repeatable read read only")
            try:
                yield _tx(reader)
            finally:
                _roll_back(reader)

    def data_version(self) -> int:
        with self._explained():
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
        engine = create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool)
        try:
            with self._explained(), engine.begin() as connection:
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

    def _connect(self) -> "psycopg.Connection[Any]":
        connection = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=_CONNECT_S)
        if connection.info.server_version < LEAST_VERSION:
            connection.close()
            raise StoreUnusable(f"{self.name} is older than PostgreSQL 14; upgrade it, or name another store")
        # One type for all numbers, so that a statement is prepared once.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(bool, _Flag)
        for name, value in {**_SETTINGS, "search_path": f'"{self.schema}"'}.items():
            connection.execute("select set_config(%s, %s, false)", (name, value))
        return connection

    def _opened(self, connection: "psycopg.Connection[Any] | None") -> "psycopg.Connection[Any]":
        if connection is not None and not connection.closed:
            return connection
        connection = self._connect()
        try:
            self._require_store(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _require_store(self, connection: "psycopg.Connection[Any]") -> None:
        made = connection.execute("select to_regclass(%s)", (f'"{self.schema}".alembic_version',)).fetchone()
        if made is None or made[0] is None:
            raise StoreUnusable(
                f"{self.name} holds no Spinney in its schema {self.schema!r}; make one with 'spinney init'"
            )
        found = connection.execute("select version_num from alembic_version").fetchone()
        if found is None or found[0] != SCHEMA_VERSION:
            has = found[0] if found else "none"
            raise StoreUnusable(
                f"{self.name} has schema {has}, this Spinney needs {SCHEMA_VERSION}; run 'spinney init'"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """The driver's errors as one sentence that says what to do."""
        try:
            yield
        except DBAPIError as error:
            raise self._sentence(error.orig) from error
        except psycopg.Error as error:
            raise self._sentence(error) from error

    def _sentence(self, error: BaseException | None) -> Exception:
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreUnusable(
                f"the disk of {self.name} is full; make room there, then go on: nothing was half-written"
            )
        if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
            return StoreUnusable(
                f"{self.name} did not answer in time ({_said(error)}); look who keeps it (pg_stat_activity), then go on"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreUnusable(
                f"{self.name} refuses: {_said(error)}; have its owner run 'spinney init' or grant that"
            )
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnusable(
                f"{self.name} cannot be reached: {_said(error)}; start it, or name another store"
            )
        return error if isinstance(error, Exception) else StoreUnusable(f"{self.name}: {error}")


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())


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


# --- URLs -------------------------------------------------------------------------------------


def parsed(url: str) -> tuple[str, str]:
    """(what the driver connects by, the schema). ``postgresql://user@host/database?schema=name``, the rest as libpq
    has it. Raises UsageError."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(query).get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(
            f"{schema!r} cannot be the schema of a store; use small letters, digits and underscores, as schema=spinney"
        )
    others = urlencode([(name, value) for name, value in query if name != "schema"])
    conninfo = urlunsplit(parts._replace(query=others))
    try:
        psycopg.conninfo.conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        raise UsageError(
            f"{without_password(url)!r} is no URL of a PostgreSQL database ({_said(error)}); write it as "
            "postgresql://user@host/database"
        ) from error
    return conninfo, schema
