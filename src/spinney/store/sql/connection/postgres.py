"""The store in a schema of a PostgreSQL database, 14 or later.

There is one writer at a time, as on SQLite: the first statement of every write transaction updates the row ``turn`` of
``counters``, and so waits until the transaction before has ended. READ COMMITTED then shows each statement all that was
committed before, so that everything holds here that holds for a file with one writer: limits, locks and quotas are
counted under the lock of that row, and nothing can deadlock. Its number tells readers that something was committed.

A row lock works behind a pooler, and ends with its holder: the server ends a transaction in which nothing happens for a
while (because its process was stopped, or its network is lost).

A transaction is few exchanges: BEGIN, the settings, the lock of the row and the counters of the caches go to
the server together, and one answer comes back. What need not be durable is committed without waiting for the
disk (``synchronous_commit = off``); ``Tx.must_last`` takes that back, for a claim that has granted leases.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from spinney.model.errors import StoreUnusable
from spinney.model.fleet import POLL_S
from spinney.store.sql.connection import grants, online_ddl, vacuum_schedule
from spinney.store.sql.connection.database import (
    MOVES,
    Database,
    RowChange,
    ScriptRenderer,
    Tx,
    closed_on_error,
)
from spinney.store.sql.connection.notifications import PostgresListener, channel
from spinney.store.sql.connection.postgres_connection import Connection, Connector
from spinney.store.sql.connection.postgres_dialect import Column, array, at_once, translated
from spinney.store.sql.connection.schema_state import SchemaState

log = logging.getLogger(__name__)

MANY = 20
"""From this number of rows on, a COPY or one statement with arrays is used instead of a statement for each."""
_TURN = f"update counters set value = value + 1 where name = 'turn'; {MOVES}"
"""The counters are read after the row was locked: each statement sees what was committed before it."""
# In full, because behind a pooler the default of the session is not ours to set.
_BEGIN = "begin isolation level read committed"
_AT_ONCE_S = 0.5
"""A connection that the server has ended fails at once, and is opened again; after a longer wait the error is raised,
because callers have their own rules for retries."""
_DURABLY = "set local synchronous_commit to default"
"""The setting of the database: it may wait for other servers, too."""
_BEGIN_LIGHTLY = f"{_BEGIN}; set local synchronous_commit = off"


class PostgresDatabase(Database):
    """A schema of a PostgreSQL database, on a connection for writing and one for reading. A connection that
    was lost is opened again by the next transaction."""

    has_row_locks = True

    def __init__(self, url: str, patience_s: float | None = None) -> None:
        """Connect at first use. ``patience_s``: how long an outage is waited for, as ``Connector`` says."""
        self._connector = Connector(url, patience_s)
        self.name, self.schema = self._connector.name, self._connector.schema
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._vacuum_schedule = vacuum_schedule.VacuumSchedule()

    # --- writing and reading --------------------------------------------------------------

    @contextmanager
    def write(self, *, durable: bool = True, awaited: bool = False, urgent: bool = False) -> Iterator[Tx]:
        """See ``Database.write``. ``awaited`` changes nothing here, as no commit causes maintenance in a
        file. After the commit the hot tables are vacuumed when that is due."""
        with self._connector.explained():
            begin, turn = _BEGIN if durable else _BEGIN_LIGHTLY, "" if urgent else _TURN
            self._writer, answer = self._begun(
                self._writer,
                lambda c: "; ".join(filter(None, (begin, self._connector.each(c), turn))),
                planned_once=True,
            )
            writer = self._writer
            try:
                tx = PostgresTx(writer, self._vacuum_schedule, None if urgent else _last_rows(answer))
                yield tx
                self._commit(writer, "commit" if not tx.must_last else f"{_DURABLY}; commit")
            except BaseException:
                _roll_back(writer)
                raise
            if self._vacuum_schedule.due():
                self._vacuum(writer)

    def _commit(self, writer: Connection, commit: LiteralString) -> None:
        """Commit. Raises CommitUncertain when the connection is lost while the answer is waited for: the
        server may have committed before."""
        try:
            writer.execute(commit)
        except psycopg.Error as error:
            if writer.closed:  # otherwise the server has answered that it did not commit
                raise self._connector.commit_uncertain(error) from error
            raise

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """See ``Database.look``. REPEATABLE READ, so that all statements see one snapshot. It ends by a
        rollback, since nothing was changed."""
        with self._connector.explained():
            self._reader, _ = self._begun(
                self._reader,
                lambda c: f"begin isolation level repeatable read read only; {self._connector.each(c)}",
            )
            reader = self._reader
            try:
                yield PostgresTx(reader, self._vacuum_schedule)
            finally:
                _roll_back(reader)

    def _vacuum(self, writer: Connection) -> None:
        """Vacuum the hot tables, outside of any transaction, as VACUUM has to be; a failure does not affect
        the commit before."""
        self._connector.begins(writer)
        try:
            self._vacuum_schedule.run(lambda: writer.execute(vacuum_schedule.statement(self.schema)))
        except psycopg.Error as error:
            log.warning("cannot vacuum %s: %s", self.name, error)

    def data_version(self) -> int:
        """See ``Database.data_version``. It is the number of the row ``turn``, which every writer but an
        urgent one increments; 0 in a schema without that row."""
        with self._connector.explained():
            self._reader, _ = self._begun(self._reader, lambda _: "")
            row = self._reader.execute(
                f"select value from \"{self.schema}\".counters where name = 'turn'"
            ).fetchone()
        return int(row[0]) if row is not None else 0

    # --- the store itself -----------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        with self.look() as tx:
            version, synchronous = tx.one(
                "select current_setting('server_version'), current_setting('synchronous_commit')"
            )
            pooled = self._reader is not None and self._connector.pooled(self._reader)
        return {
            "database": "PostgreSQL",
            "version": version,
            "url": self.name,
            "schema": self.schema,
            "durability": f"synchronous_commit={synchronous}",
            "wake_ups": f"pooled: polling every {POLL_S:g} s" if pooled else "notifications",
        }

    # --- waking ---------------------------------------------------------------------------

    def notify(self, sender: str) -> None:
        """See ``Store.notify``. The driver's errors are logged only, because what was to be told is
        committed."""
        try:
            # Usually this follows a commit, so it uses the connection of that.
            if self._writer is not None and not self._writer.closed:
                connection = self._writer
            else:
                connection = self._reader = self._opened(self._reader)
            self._connector.begins(connection)
            connection.execute("select pg_notify(%s, %s)", (channel(self.schema), sender))
        except (psycopg.Error, StoreUnusable) as error:
            # The change is committed, and nodes find it by polling.
            log.debug("could not wake the nodes of %s: %s", self.name, error)

    def listen(self) -> PostgresListener | None:
        """See ``Store.listen``. Through a pooler there is no LISTEN: the session would be another one's next
        moment."""
        with self._connector.explained():
            connection = self._connector.connect()
            with closed_on_error(connection):
                if not self._connector.pooled(connection):
                    return PostgresListener(connection, self.schema, self.name)
            connection.close()
            log.info("%s is reached through a pooler: nodes poll every %g s", self.name, POLL_S)
            return None

    def upgrade(self, run: Callable[[Any], None]) -> None:
        """See ``Database.upgrade``. The transaction is tried again while it does not get its tables; large
        indexes are built after it, beside the writers (``online_ddl``)."""
        from spinney.store.sql.connection.engines import transaction  # slow to import, and rarely needed

        def connect() -> "psycopg.Connection[Any]":
            connection = self._connector.connect()
            connection.autocommit = False  # or "begin" would begin nothing
            return connection

        def alter() -> None:
            with transaction("postgresql+psycopg://", connect) as connection:
                driver: Any = connection.connection.driver_connection
                if settings := self._connector.each(driver):
                    connection.exec_driver_sql(settings)
                grants.require_owner(driver, self.name, self.schema)
                # If two processes create one store at the same time, the second waits and finds it created.
                connection.exec_driver_sql(
                    "select pg_advisory_xact_lock(hashtext(%s))", (self._one_at_a_time,)
                )
                if connection.exec_driver_sql("select to_regnamespace(%s)", (self.schema,)).scalar() is None:
                    connection.exec_driver_sql(f'create schema "{self.schema}"')
                online_ddl.begin(connection, self.schema)
                run(connection)
                connection.exec_driver_sql(
                    "insert into counters (name, value) values ('turn', 0) on conflict do nothing"
                )

        with self._connector.explained():
            online_ddl.retry_until_altered(alter, self._connector)
            online_ddl.build_indexes(self._connector)

    def grant(self, roles: Sequence[str]) -> None:
        with self._connector.connected() as connection:
            self._connector.require_store(connection)
            grants.require_owner(connection, self.name, self.schema)
            grants.require_roles(connection, roles)
            statements = grants.grants(self.schema, roles, connection.info.server_version)
            connection.execute("; ".join(["begin", *statements, "commit"]))

    def script(self, roles: Sequence[str], render: ScriptRenderer) -> str:
        with self._connector.connected() as connection:
            schema_state = self._connector.schema_state(connection)
            namespace = connection.execute("select to_regnamespace(%s)", (f'"{self.schema}"',)).fetchone()
            schema_exists = namespace != (None,)
            grants.require_roles(connection, roles)
            statements = grants.grants(self.schema, roles, connection.info.server_version)
        return render(self.schema, schema_state, schema_exists, statements)

    @property
    def _one_at_a_time(self) -> str:
        """The name of the advisory lock for creating, altering and filling the store."""
        return f"spinney {self.schema}"

    def schema_state(self) -> SchemaState | None:
        with self._connector.connected() as connection:
            return self._connector.schema_state(connection)

    @contextmanager
    def look_long(self) -> Iterator[Tx]:
        """See ``Database.look_long``. The server must not end it in a pause, as it ends other
        transactions."""
        with self.look() as tx:
            tx.run("set local idle_in_transaction_session_timeout = 0")
            yield tx

    @contextmanager
    def fill(self) -> Iterator[Tx]:
        """See ``Database.fill``. It has a connection of its own, without limits of time, and takes the lock
        of creations and upgrades, so that two copies into one schema wait for each other. Tables are analysed
        before the commit."""
        from spinney.store.sql.schema import metadata  # slow to import, and rarely needed

        # When the connection is closed, the server rolls back what is not committed.
        with self._connector.connected() as connection:
            connection.patience_s = online_ddl.AS_LONG_AS_IT_TAKES_S
            connection.execute(f"{_BEGIN}; {self._connector.each(connection)}")
            connection.execute("select pg_advisory_xact_lock(hashtext(%s))", (self._one_at_a_time,))
            for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
                connection.execute(f"set local {setting} = 0")
            connection.execute(_TURN)
            yield PostgresTx(connection, self._vacuum_schedule)
            connection.execute(f"analyze {', '.join(metadata.tables)}")  # else the first plans are guessed
            self._commit(connection, "commit")

    def close(self) -> None:
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()
        self._writer = self._reader = None

    # --- connections ----------------------------------------------------------------------

    def _begun(
        self, connection: Connection | None, begin: Callable[[Connection], str], *, planned_once: bool = False
    ) -> tuple[Connection, "psycopg.Cursor[Any]"]:
        """Return an open connection on which the statement ``begin`` was run, and its result. A connection that was
        lost since its last use is opened again at once, because no transaction was in progress on it."""
        fresh = connection is None or connection.closed
        connection = self._opened(connection, planned_once=planned_once)
        began_s = time.monotonic()
        self._connector.begins(connection)
        try:
            answer = connection.execute(begin(connection))
        except BaseException as error:
            _roll_back(connection)
            lost = isinstance(error, psycopg.Error) and connection.closed
            if fresh or not lost or time.monotonic() - began_s > _AT_ONCE_S:
                raise
            return self._begun(connection, begin, planned_once=planned_once)
        return connection, answer

    def _opened(self, connection: Connection | None, *, planned_once: bool = False) -> Connection:
        if connection is not None and not connection.closed:
            return connection
        connection = self._connector.connect(planned_once=planned_once)
        with closed_on_error(connection):
            self._connector.require_store(connection)
        self.connected += 1
        return connection


def _last_rows(answer: "psycopg.Cursor[Any]") -> dict[str, int]:
    """Return the result of the last one of several statements that were sent together."""
    while answer.nextset():
        pass
    return dict(answer.fetchall())


class PostgresTx(Tx):
    """A transaction or a snapshot of a database server. ``moves``: the counters that came with its first
    statement; None: they are read when they are needed."""

    __slots__ = ("_connection", "_moves", "_vacuum")
    postgresql = True

    def __init__(
        self,
        connection: "psycopg.Connection[Any]",
        vacuum: vacuum_schedule.VacuumSchedule,
        moves: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(connection.cursor())
        self._connection, self._moves, self._vacuum = connection, moves, vacuum

    def in_transaction(self) -> bool:
        return _in_transaction(self._connection)

    def run(self, sql: str, args: Sequence[Any] = ()) -> Any:
        text, order = translated(sql)
        return self._cursor.execute(text, args if order is None else [args[n] for n in order])

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:  # one exchange less than ``executemany``
            self.run(sql, rows[0])
            return
        text, order = translated(sql)
        self._cursor.executemany(text, rows if order is None else [[row[n] for n in order] for row in rows])

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        """See ``Tx.insert``. From ``MANY`` rows on they are sent by COPY."""
        if len(rows) < MANY:
            super().insert(table, columns, rows)
            return
        with self._cursor.copy(f"copy {table} ({columns}) from stdin") as target:
            for row in rows:
                target.write_row(row)

    def change(self, change: RowChange, rows: Sequence[Sequence[Any]]) -> None:
        """See ``Tx.change``. From ``MANY`` rows on it is one statement whose arguments are arrays
        (``postgres_dialect.at_once``)."""
        values = list(zip(*rows, strict=True))
        statement = at_once(change, tuple(map(_column, values))) if len(rows) >= MANY else None
        if statement is None:
            super().change(change, rows)
            return
        arguments = [array(values[n]) if n in statement.arrays else values[n][0] for n in statement.order]
        self._cursor.execute(statement.text, arguments)

    def moves(self) -> Mapping[str, int]:
        # They came with the answer to the transaction's first statement; later ones are read anew, because the
        # transaction itself may have changed them.
        moves, self._moves = self._moves, None
        return super().moves() if moves is None else moves

    def passed_on(self, n: int) -> None:
        self._vacuum.granted(n)

    def take(self, counter: str, n: int = 1) -> int:
        sql = "update counters set value = value + ? where name = ? returning value"
        last: int = self.value(sql, (n, counter))
        return last - n + 1


_KINDS = {bool: "smallint", int: "bigint", str: "text", float: "double precision"}


def _column(values: Sequence[Any]) -> Column | None:
    """Return the type of these values; None when all are null."""
    first = next((value for value in values if value is not None), None)
    if first is None:
        return None
    kind = next(name for of, name in _KINDS.items() if isinstance(first, of))
    return Column(kind, values.count(first) == len(values))


def _in_transaction(connection: "psycopg.Connection[Any]") -> bool:
    return not connection.closed and connection.info.transaction_status in (
        psycopg.pq.TransactionStatus.INTRANS,
        psycopg.pq.TransactionStatus.INERROR,
    )


def _roll_back(connection: "psycopg.Connection[Any]") -> None:
    """Roll back. Where the connection is lost, the server does so itself."""
    try:
        if _in_transaction(connection):
            connection.execute("rollback")
    except psycopg.Error:
        connection.close()
