"""How a PostgreSQL database is reached: its URL, what is set on each connection, its errors as sentences.

**Poolers.** Through PgBouncer in transaction mode each transaction may be served by another backend, and backends
are shared with other programs. So nothing of a session is relied on, or changed, there: what a direct connection is
told once, each transaction is told for itself (``Connector.each``), nothing is prepared, and nobody listens. That
there is a pooler is seen by its keys: it cannot hand on those of the backend (``pg_backend_pid``), so it makes up its
own.
One in session mode is taken for the same, which costs a little and harms nothing.

**Nothing is waited for without end.** The server breaks off a statement that takes too long, a wait for a lock, and a
transaction in which nothing happens (its client is stopped, or cut off). The kernel gives a connection up over which
nothing is acknowledged. And whatever keeps an answer away in spite of all that (a server that stands still, something
on the way that swallows what is sent) ends with the client's own patience: then the connection is closed. A node's
patience goes with its lease period (``node.settings``), for all statements of a transaction together; who has none
waits for each statement as long as people do.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper

from spinney.model.errors import CommitUncertain, StoreUnavailable, StoreUnusable, UsageError
from spinney.model.values.paths import without_password
from spinney.store.sql.connection.schema_state import SchemaState, require_workable

DEFAULT_SCHEMA = "spinney"
LEAST_VERSION = 140000
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
PATIENCE_S = 75.0
"""The longest that anybody waits for an answer to a statement."""
_STATEMENT_S, _LOCK_S, _CONNECT_S = 60.0, 10.0, 10
_IDLE_S = 4
"""Between two statements of a transaction. Shorter than any wait for a lock, so that one who stands still while he has
the turn costs the others a pause, and no failure."""
_TIMES_TRANSACTIONS = 170000
"""From this version on a server ends a transaction that takes too long. None of its other timeouts ends one who stands
still between two statements of a pipeline: to the server he is neither idle nor at work."""
_SETTINGS = {
    "idle_in_transaction_session_timeout": f"{_IDLE_S}s",
    # A client that was cut off leaves its connection behind; it must not count against max_connections for hours.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    # Statements go from short lists to single rows: what compiling them would cost is never gained.
    "jit": "off",
    # Statements go from what is short to what is indexed, as SQLite runs them. The planner, which knows nothing yet of
    # tables that have just been filled, would now and then read one whole, or hash it, for a handful of rows.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    # What the settings above make look dear is not worth starting processes for.
    "max_parallel_workers_per_gather": "0",
}

_PLANNED_ONCE = "set plan_cache_mode = force_generic_plan"
"""A statement is planned once a connection: for those that write. Most go by a key, or say themselves where they begin,
so that no argument would change the plan; and to plan them takes as long as to run them. What people ask is another
matter: of jobs in one state there may be three, of those in another a million, and a page asks again and again."""
_OF_A_SESSION = {
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "default_transaction_isolation",
}
"""What it would mean nothing to say for one transaction."""


class _Flag(Dumper):
    """Truth values are small numbers in this schema, as SQLite has them."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


_PASSING = {
    "25P03",  # stood still for too long in a transaction
    "25P04",  # a transaction took longer than the server allows
    "25006",  # another server has become the first, and this one may only be read
}
"""States that the driver counts among the mistakes of programs."""

_NO_ROOM = ("too many clients", "connection slots are reserved", "too many connections")
"""What is said by a server that is full; in another language the sentence is a plainer one."""

T = TypeVar("T")


class Connection(psycopg.Connection[Any]):
    """One that is closed when an answer does not come within its patience."""

    patience_s = PATIENCE_S
    until_s: float | None = None
    """When (monotonic) the transaction has to be over; None: each statement is timed."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        if timeout is not None:  # it is the caller's own wait, for something that need not come
            return super().wait(gen, interval, timeout)
        left_s = self.patience_s if self.until_s is None else max(0.0, self.until_s - time.monotonic())
        try:
            return super().wait(gen, interval, left_s)
        except psycopg.errors._WaitTimeout:
            # It may still be answering: nothing else can be asked of this connection.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer within {self.patience_s:g} s") from None


class Connector:
    """To one schema of one database."""

    def __init__(self, url: str, patience_s: float | None = None) -> None:
        """``patience_s``: no transaction takes longer, whatever happens; None: as long as people wait.

        Raises UsageError for what is no URL of a PostgreSQL database."""
        self._conninfo, self.schema = parsed(url)
        self.name = without_password(url)
        self.user = str(psycopg.conninfo.conninfo_to_dict(self._conninfo).get("user") or "ROLE")
        self._patience_s = patience_s
        self._settings = {**_SETTINGS, **self._timeouts(), "search_path": f'"{self.schema}"'}

    def connect(self, *, planned_once: bool = False) -> Connection:
        """Raises psycopg.Error; see ``explained``. ``planned_once``: its statements, whatever their arguments."""
        connection = Connection.connect(self._conninfo, autocommit=True, **self._transport_settings())
        try:
            self._furnish(connection, planned_once)
        except BaseException:
            connection.close()
            raise
        return connection

    def _furnish(self, connection: Connection, planned_once: bool) -> None:
        connection.patience_s = self._patience_s or PATIENCE_S
        if connection.info.server_version < LEAST_VERSION:
            raise StoreUnusable(f"{self.name} is older than PostgreSQL 14; upgrade it, or name another store")
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
        """A transaction begins: from now on its time runs."""
        if self._patience_s is not None:
            connection.until_s = time.monotonic() + self._patience_s

    def _transport_settings(self) -> dict[str, Any]:
        """What libpq and the kernel do about a peer that is silent; what the URL says itself stays."""
        patience_s = self._patience_s or PATIENCE_S
        settings = {
            # libpq takes whole seconds, and 1 for 2.
            "connect_timeout": _CONNECT_S if self._patience_s is None else max(2, round(patience_s / 2)),
            "tcp_user_timeout": round(patience_s * 1000),
            "keepalives_idle": max(1, round(patience_s / 2)),
            "keepalives_interval": max(1, round(patience_s / 6)),
            "keepalives_count": 3,
        }
        chosen = psycopg.conninfo.conninfo_to_dict(self._conninfo)
        return {name: value for name, value in settings.items() if name not in chosen}

    def _timeouts(self) -> dict[str, str]:
        """Shorter than the patience, so that it is the server that breaks off, and the connection stays."""
        if self._patience_s is None:
            statement_s, lock_s = _STATEMENT_S, _LOCK_S
        else:
            statement_s = lock_s = 0.8 * self._patience_s
        return {
            "statement_timeout": f"{round(statement_s * 1000)}ms",
            "lock_timeout": f"{round(lock_s * 1000)}ms",
        }

    def pooled(self, connection: "psycopg.Connection[Any]") -> bool:
        """Whether a pooler is between here and the database."""
        return connection.prepare_threshold is None

    def each(self, connection: "psycopg.Connection[Any]") -> str:
        """The first statement of every transaction on this connection; empty where its session has been told all."""
        return self._settings_statement(local=True) if self.pooled(connection) else ""

    def _settings_statement(self, *, local: bool) -> str:
        until = "true" if local else "false"
        chosen = {n: v for n, v in self._settings.items() if not (local and n in _OF_A_SESSION)}
        return "select " + ", ".join(f"set_config('{n}', '{v}', {until})" for n, v in chosen.items())

    def require_store(self, connection: "psycopg.Connection[Any]") -> None:
        schema_state = self.schema_state(connection)
        if schema_state is None:
            raise StoreUnusable(
                f"{self.name} holds no Spinney in its schema {self.schema!r}; make one with 'spinney init'"
            )
        require_workable(self.name, schema_state)

    def schema_state(self, connection: "psycopg.Connection[Any]") -> SchemaState | None:
        """What the schema holds; None where no store has been made."""
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
    def explained(self) -> Iterator[None]:
        """The driver's errors as one sentence that says what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise self._sentence(error) from error

    def commit_uncertain(self, error: psycopg.Error) -> CommitUncertain:
        """The connection was lost in the commit."""
        return CommitUncertain(
            f"{self.name} was lost while it was committing ({_one_line(error)}), "
            "so it is not known whether that was done; look before you do it again"
        )

    def _sentence(self, error: BaseException | None) -> Exception:
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreUnavailable(
                f"the disk of {self.name} is full; make room there, then go on: nothing was half-written"
            )
        if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
            return StoreUnavailable(
                f"{self.name} did not answer in time ({_one_line(error)}); "
                "look who keeps it (pg_stat_activity), then go on"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreUnusable(
                f"{self.name} refuses: {_one_line(error)}; have its owner run 'spinney init --grant {self.user}'"
            )
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or (
            isinstance(error, psycopg.Error) and error.sqlstate in _PASSING
        ):
            if any(words in str(error) for words in _NO_ROOM):
                return StoreUnavailable(
                    f"{self.name} has no connection to spare: {_one_line(error)}; raise its max_connections, or put a "
                    "pooler before it"
                )
            return StoreUnavailable(
                f"{self.name} cannot be reached: {_one_line(error)}; start it, or name another store"
            )
        return error if isinstance(error, Exception) else StoreUnusable(f"{self.name}: {error}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


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
            f"{without_password(url)!r} is no URL of a PostgreSQL database ({_one_line(error)}); write it as "
            "postgresql://user@host/database"
        ) from error
    return conninfo, schema
