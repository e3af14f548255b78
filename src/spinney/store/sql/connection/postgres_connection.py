"""Connections to a PostgreSQL database: the URL, the settings of each connection, and the driver's errors as sentences.

**Poolers.** Through PgBouncer in transaction mode each transaction may run on another backend, and backends are shared
with other programs. So no state of a session is used or changed there: what a direct connection sets once, each
transaction sets for itself (``Connector.each``), no statement is prepared, and there is no LISTEN. A pooler is
recognized by the process id that it reports: it cannot pass on that of the backend (``pg_backend_pid``), and makes up
its own. A pooler in session mode is treated in the same way, which costs a little and does no harm.

**Every wait ends.** The server ends a statement that takes too long, a wait for a lock, and a transaction in which
nothing happens (because its client is stopped or cut off). The kernel gives up a connection on which nothing is
acknowledged. Where no answer comes in spite of all that (from a server that hangs, or over a network that swallows
packets), the client's own time limit (``patience_s``) closes the connection. That of a node follows from its lease
period (``node.settings``), and covers all statements of a transaction together; other callers wait for each statement
as long as people do.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper

from spinney.model.errors import CommitUncertain, StoreMissing, StoreUnavailable, StoreUnusable, UsageError
from spinney.model.values.store_urls import DEFAULT_SCHEMA, is_schema, require_escaped, without_password
from spinney.store.sql.connection.database import closed_on_error
from spinney.store.sql.connection.schema_state import SchemaState, incomplete, require_workable

# Where nothing sets up a log, as in a command, Python would print the driver's warnings to stderr.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
LEAST_VERSION = 140000
PATIENCE_S = 75.0
"""The longest wait for the answer to a statement."""
_STATEMENT_S, _LOCK_S, _CONNECT_S = 60.0, 10.0, 10
_CANCEL_S = 0.5
"""For how long somebody who has pressed Ctrl-C waits until the server knows of it."""
_IDLE_S = 4
"""The longest pause between two statements of a transaction. It is shorter than a command's wait for a lock, so that a
process that hangs while it holds the turn delays others, and does not make them fail. A node waits for a shorter time,
and repeats what failed."""
_TIMES_TRANSACTIONS = 170000
"""The first server version with a time limit for transactions. No other limit ends a client that hangs between two
statements of a pipeline: to the server it is neither idle nor active."""
_SETTINGS = {
    "idle_in_transaction_session_timeout": f"{_IDLE_S}s",
    # A node's connections are idle whenever there is no work, and that which listens always is.
    "idle_session_timeout": "0",
    # A client that was cut off leaves its connection behind; it must not count against max_connections for hours.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    # Statements go from short lists to single rows, so that compiling them never pays.
    "jit": "off",
    # Statements go from short lists to indexed rows, in the order in which SQLite runs them. The planner, which has no
    # statistics of tables that were just filled, would sometimes read or hash a whole one for a few rows.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    # The settings above make costs look high that are not worth starting processes for.
    "max_parallel_workers_per_gather": "0",
}

_PLANNED_ONCE = "set plan_cache_mode = force_generic_plan"
"""Plan each statement once for a connection that writes. Most statements go by a key, or name the row where they begin,
so that no argument would change the plan, and planning takes as long as running them. Reads for people are different:
there may be three jobs in one state and a million in another."""
_OF_A_SESSION = {
    "idle_session_timeout",
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "default_transaction_isolation",
}
"""Settings that have no effect within one transaction."""


class _Flag(Dumper):
    """Sends truth values as small integers, as they are in this schema and in SQLite."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


_IDLE_TOO_LONG = "25P03"
"""The SQL state of a transaction that paused for too long, which the driver takes for a programming error."""

_NO_ROOM = ("too many clients", "connection slots are reserved", "too many connections")
"""Messages of a server without free connections, in English; in other languages a more general sentence is shown."""

_TOO_LONG = "25P04"
"""The SQL state of a transaction that took longer than the server allows."""

T = TypeVar("T")


class TransactionTooLong(psycopg.OperationalError):
    """The server answered, but all statements of the transaction together took longer than its time limit."""


class Connection(psycopg.Connection[Any]):
    """A connection that is closed when an answer does not come within its time limit."""

    patience_s = PATIENCE_S
    until_s: float | None = None
    """When (monotonic clock) the transaction has to be over; None: each statement has its own limit."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer of the server, at most until the time limit of the transaction. Raises
        psycopg.OperationalError then, and closes the connection: the answer might still come. It is TransactionTooLong
        where most of the time went into statements that were answered.

        After Ctrl-C the server is asked to end the statement, and the connection is closed. The driver would wait ten
        seconds for the server's consent, so that the connection could be used again."""
        try:
            return self._answer(gen, interval, timeout)
        except KeyboardInterrupt:
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=_CANCEL_S)
            self.pgconn.finish()
            raise

    def _answer(self, gen: PQGen[T], interval: float, timeout: float | None) -> T:
        if timeout is not None:  # the caller waits for something that need not come
            return waiting.wait(gen, self.pgconn.socket, interval, timeout)
        begun_s = time.monotonic()
        left_s = self.patience_s if self.until_s is None else max(0.0, self.until_s - begun_s)
        try:
            return waiting.wait(gen, self.pgconn.socket, interval, left_s)
        except psycopg.errors._WaitTimeout:
            # An answer may still come, so the connection cannot be used for anything else.
            self.pgconn.finish()
            if time.monotonic() - begun_s < self.patience_s / 2:
                raise TransactionTooLong(f"not done within {self.patience_s:g} s") from None
            raise psycopg.OperationalError(f"no answer within {self.patience_s:g} s") from None


class Connector:
    """Opens connections to one schema of one database, all with the same settings and limits, and words their
    errors. ``name`` is the URL without its password, for messages."""

    def __init__(self, url: str, patience_s: float | None = None) -> None:
        """``patience_s``: the time limit of a transaction; None: limits for people.

        Raises UsageError for a text that is no URL of a PostgreSQL database."""
        self._conninfo, self.schema = parsed(url)
        self.name = without_password(url)
        self.user = str(psycopg.conninfo.conninfo_to_dict(self._conninfo).get("user") or "ROLE")
        self._patience_s = patience_s
        self._settings = {**_SETTINGS, **self._timeouts(), "search_path": f'"{self.schema}"'}

    def connect(self, *, planned_once: bool = False) -> Connection:
        """Open a connection. ``planned_once``: each of its statements is planned once, whatever its arguments. Raises
        psycopg.Error; see ``explained``."""
        # Whatever a DBA or an environment variable has set: texts have letters that other encodings lack.
        connection = Connection.connect(
            self._conninfo, autocommit=True, client_encoding="UTF8", **self._transport_settings()
        )
        with closed_on_error(connection):
            self._furnish(connection, planned_once)
        return connection

    def _furnish(self, connection: Connection, planned_once: bool) -> None:
        """Make the settings of a new connection, or, through a pooler, leave them to each transaction. Raises
        StoreUnusable for a server that is too old, or a database that cannot have every text."""
        connection.patience_s = self._patience_s or PATIENCE_S
        if connection.info.server_version < LEAST_VERSION:
            raise StoreUnusable(f"{self.name} is older than PostgreSQL 14; upgrade it, or name another store")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, "UTF8"):  # None: a pooler that does not say
            raise StoreUnusable(
                f"{self.name} is a database of the encoding {encoding}, which lacks letters that jobs may have; make "
                "one with encoding 'UTF8' (createdb -E UTF8 --locale=C.UTF-8 -T template0), and name that"
            )
        if self._patience_s is not None and connection.info.server_version >= _TIMES_TRANSACTIONS:
            self._settings["transaction_timeout"] = f"{round(self._patience_s * 1000)}ms"
        # One type for all numbers, so that a statement is prepared once.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(bool, _Flag)
        if connection.execute("select pg_backend_pid()").fetchone() == (connection.info.backend_pid,):
            connection.execute(self._settings_statement(local=False))
            if planned_once:
                connection.execute(_PLANNED_ONCE)
        else:
            connection.prepare_threshold = None

    def begins(self, connection: Connection) -> None:
        """Start the time limit of a transaction, for a caller that has one. It covers everything up to the
        answer to its commit, and is started anew by the next transaction."""
        if self._patience_s is not None:
            connection.until_s = time.monotonic() + self._patience_s

    def _transport_settings(self) -> dict[str, Any]:
        """Return the settings of libpq and the kernel for a silent peer; those in the URL are left alone."""
        patience_s = self._patience_s or PATIENCE_S
        settings = {
            # libpq takes whole seconds, and raises 1 to 2.
            "connect_timeout": _CONNECT_S if self._patience_s is None else max(2, round(patience_s / 2)),
            "tcp_user_timeout": round(patience_s * 1000),
            "keepalives_idle": max(1, round(patience_s / 2)),
            "keepalives_interval": max(1, round(patience_s / 6)),
            "keepalives_count": 3,
        }
        chosen = psycopg.conninfo.conninfo_to_dict(self._conninfo)
        return {name: value for name, value in settings.items() if name not in chosen}

    def _timeouts(self) -> dict[str, str]:
        """Return limits for the server that are shorter than the client's, so that the connection stays open."""
        if self._patience_s is None:
            statement_s, lock_s = _STATEMENT_S, _LOCK_S
        else:
            statement_s = lock_s = 0.8 * self._patience_s
        return {
            "statement_timeout": f"{round(statement_s * 1000)}ms",
            "lock_timeout": f"{round(lock_s * 1000)}ms",
        }

    def pooled(self, connection: "psycopg.Connection[Any]") -> bool:
        """Return whether the connection goes through a pooler."""
        return connection.prepare_threshold is None

    def each(self, connection: "psycopg.Connection[Any]") -> str:
        """Return the settings that each transaction on this connection has to make; empty where the session has
        them."""
        return self._settings_statement(local=True) if self.pooled(connection) else ""

    def _settings_statement(self, *, local: bool) -> str:
        until = "true" if local else "false"
        chosen = {n: v for n, v in self._settings.items() if not (local and n in _OF_A_SESSION)}
        return "select " + ", ".join(f"set_config('{n}', '{v}', {until})" for n, v in chosen.items())

    def require_store(self, connection: "psycopg.Connection[Any]") -> None:
        """Raise StoreUnusable when the schema holds no store, or one that this version cannot work with."""
        schema_state = self.schema_state(connection)
        if schema_state is None:
            raise StoreMissing(
                f"{self.name} has no Spinney store in its schema {self.schema!r}; make one with 'spinney init'"
            )
        require_workable(self.name, schema_state)

    def schema_state(self, connection: "psycopg.Connection[Any]") -> SchemaState | None:
        """Return the state of the schema; None where there is no store."""
        for table in ("alembic_version", "meta"):
            registered = connection.execute(
                "select to_regclass(%s)", (f'"{self.schema}".{table}',)
            ).fetchone()
            if registered is None or registered[0] is None:
                return None
        row = connection.execute(f'select version_num from "{self.schema}".alembic_version').fetchone()
        meta = connection.execute(f'select name, value from "{self.schema}".meta').fetchall()
        return SchemaState(schema=row[0] if row else "", meta=dict(meta))

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Give a connection of its own, which is closed afterwards, and explain its errors."""
        with self.explained(), closing(self.connect()) as connection:
            yield connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise the driver's errors as errors of Spinney, with a sentence that says what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise self._sentence(error) from error

    def commit_uncertain(self, error: psycopg.Error) -> CommitUncertain:
        """Return the error for a connection that was lost during the commit."""
        return CommitUncertain(
            f"{self.name} was lost while it was committing ({_one_line(error)}), "
            "so it is not known whether that was done; look before you do it again"
        )

    def _sentence(self, error: psycopg.Error) -> Exception:
        """Return the error that a caller gets for one of the driver: StoreUnavailable for what may pass (no
        connection, a full disk, a limit of time), StoreUnusable for what somebody has to change, else the
        error itself, which is a fault of a statement."""
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreUnavailable(
                f"the disk of {self.name} is full; make room there, then go on: nothing was half-written"
            )
        if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
            return StoreUnavailable(
                f"{self.name} did not answer in time ({_one_line(error)}); "
                "look who keeps it (pg_stat_activity), then go on"
            )
        if isinstance(error, TransactionTooLong) or error.sqlstate == _TOO_LONG:
            return StoreUnavailable(
                f"{self.name} answered, but a transaction took too long ({_one_line(error)}); look what keeps "
                "the server or this process busy, then go on: nothing was half-written"
            )
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return StoreUnavailable(
                f"{self.name} is read-only: it is a standby, or was set so; name the primary server, for example by "
                "several hosts in the URL with target_session_attrs=read-write"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreUnusable(
                f"{self.name} refuses: {_one_line(error)}; have its owner run 'spinney init --grant {self.user}'"
            )
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return incomplete(self.name, error.diag.message_primary)
        if (
            isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            or error.sqlstate == _IDLE_TOO_LONG
        ):
            if any(words in str(error) for words in _NO_ROOM):
                return StoreUnavailable(
                    f"{self.name} has no connection to spare: {_one_line(error)}; raise its max_connections, or put a "
                    "pooler before it"
                )
            return StoreUnavailable(
                f"{self.name} cannot be reached: {_one_line(error)}; start it, or name another store"
            )
        return error


def _one_line(error: BaseException) -> str:
    """Return the message of libpq, whose lines end without a full stop, on one line."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    ended = [line if line.endswith((".", "?", "!", ":", ";", ",")) else f"{line}." for line in lines[:-1]]
    return " ".join(ended + lines[-1:])


def parsed(url: str) -> tuple[str, str]:
    """Return libpq's connection string and the schema of a URL
    (``postgresql://user@host/database?schema=name``). All other settings of the query go to libpq. Raises
    UsageError, whose message never shows a password: a URL in which one is not escaped is not quoted at
    all."""
    require_escaped(url)
    base, _, options = url.partition("?")
    query = parse_qsl(options, keep_blank_values=True)
    schema = dict(query).get("schema", DEFAULT_SCHEMA)
    if not is_schema(schema):
        raise UsageError(
            f"{schema!r} cannot be the schema of a store; use small letters, digits and underscores, as schema=spinney"
        )
    others = urlencode([(name, value) for name, value in query if name != "schema"], quote_via=quote)
    conninfo = base + (f"?{others}" if others else "")
    try:
        psycopg.conninfo.conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        raise UsageError(
            f"{without_password(url)!r} is no URL of a PostgreSQL database ({_one_line(error)}); write it as "
            "postgresql://user@host/database"
        ) from error
    return conninfo, schema
