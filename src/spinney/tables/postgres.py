"""A set of tables in a PostgreSQL database, 14 or later.

It needs no state of the session, so that a pooler in transaction mode may be used: settings are made for each
transaction, and no statements are prepared.

The password is only in the parameters of the driver. The names that are shown consist of user, host, port and database;
and a URL that cannot be parsed is not shown at all, since any part of it may be the password.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import QueuePool

from spinney.model.errors import UsageError
from spinney.model.values.store_urls import is_schema
from spinney.tables.database import POOL, Database, writes
from spinney.tables.declaration import TableDeclaration
from spinney.tables.errors import TablesAway, TablesUnusable

T = TypeVar("T")
_EACH = (
    "set local lock_timeout = '60s'; set local statement_timeout = '300s'; "
    # An idle writer keeps the locks of its rows; a reader of a long result keeps nothing.
    "set local idle_in_transaction_session_timeout = '{idle}'; set local jit = off"
)
_CONNECTING: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_ANSWER_S = 330.0
"""How long an answer is waited for: the server ends a statement before that, and says so. Where none comes, the server
hangs, or the network swallows what is sent."""
_FORM = "write it as postgresql://user:password@host/database, with letters that mean something in a URL as %40, %2F"


def open_postgres(tables: TableDeclaration, url: str) -> Database:
    """Return the database at a libpq URL; ``?schema=name`` puts the tables in a schema of their own. Raises
    UsageError."""
    conninfo, schema = _parsed(tables, url)
    backend = _Postgres(tables, conninfo, schema)
    engine = create_engine(
        "postgresql+psycopg://",
        creator=backend.connect,
        poolclass=QueuePool,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,  # a connection that the server, a pooler or a firewall has ended is made anew
        **POOL,
    )
    event.listen(engine, "begin", backend.begin)
    return Database(tables, engine, backend.name, backend)


class _Connection(psycopg.Connection[Any]):
    """A connection that is closed when an answer does not come."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer. Raises psycopg.OperationalError after ``_ANSWER_S``, and closes the connection, because
        the answer might still come."""
        try:
            return super().wait(gen, interval, _ANSWER_S if timeout is None else timeout)
        except psycopg.errors._WaitTimeout:
            if timeout is not None:  # the caller waits for something that need not come
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer within {_ANSWER_S:g} s") from None


class _Postgres:
    """The backend for a PostgreSQL database. ``name`` is what messages show, without the password."""

    def __init__(self, tables: TableDeclaration, conninfo: dict[str, Any], schema: str | None) -> None:
        self._tables, self._schema = tables, schema
        self._conninfo = _CONNECTING | {"application_name": f"spinney {tables.name}"} | conninfo
        self.name = _shown(conninfo, schema)

    def __repr__(self) -> str:
        return f"_Postgres({self.name})"

    def connect(self) -> "psycopg.Connection[Any]":
        conninfo = psycopg.conninfo.make_conninfo(**self._conninfo)
        # Whatever a DBA has set: texts have letters that other encodings lack.
        return _Connection.connect(conninfo, prepare_threshold=None, client_encoding="UTF8")

    def begin(self, connection: Connection) -> None:
        """Make the settings of one transaction. A reader gets a snapshot (REPEATABLE READ, read only)."""
        statements = _EACH.format(idle="60s" if writes(connection) else "0")
        if not writes(connection):
            statements = f"set transaction isolation level repeatable read, read only; {statements}"
        if self._schema is not None:
            statements += f'; set local search_path to "{self._schema}"'
        connection.exec_driver_sql(statements)

    def make(self) -> None:
        """Do nothing: the database itself is its administrator's to make."""

    def lock_for_setup(self, connection: Connection) -> None:
        connection.exec_driver_sql(
            "select pg_advisory_xact_lock(hashtext(%s))", (f"spinney {self._tables.name}",)
        )
        if self._schema is not None:
            connection.exec_driver_sql(f'create schema if not exists "{self._schema}"')

    def sentence(self, error: BaseException | None) -> Exception | None:
        name, message = self.name, self._message(error)
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return TablesUnusable(
                f"{name} holds no {self._tables.name}; run '{self._tables.init}', or name another database"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return TablesUnusable(f"{name} refuses: {message}; have its owner grant that to this user")
        if isinstance(error, psycopg.errors.DiskFull):
            return TablesAway(
                f"the disk of {name} is full; make room there, then go on: nothing was half-written"
            )
        if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
            return TablesAway(f"{name} did not answer in time ({message}); see pg_stat_activity, then go on")
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return TablesAway(
                f"{name} takes no changes ({message}): it is a standby, or was set so; name the primary server, and "
                "check that no transaction of read() writes"
            )
        if isinstance(
            error, psycopg.errors.IdleInTransactionSessionTimeout | psycopg.errors.DeadlockDetected
        ):
            return TablesAway(f"{name} ended the transaction ({message}); go on")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return TablesAway(f"{name} cannot be reached: {message}; start it, or name another database")
        return None

    def _message(self, error: BaseException | None) -> str:
        """Return the driver's message on one line, in which any secret of the URL is replaced."""
        message = " ".join(str(error).split())
        secrets = [str(self._conninfo[key]) for key in _SECRET if self._conninfo.get(key)]
        for secret in secrets:
            message = message.replace(secret, "…")
        return message


_SECRET = ("password", "sslpassword", "oauth_client_secret")


def _parsed(tables: TableDeclaration, url: str) -> tuple[dict[str, Any], str | None]:
    """Return libpq's parameters and the schema of a URL (None: the user's own search path). Raises
    UsageError, whose message quotes no part of the URL."""
    place, _, query = url.partition("?")
    settings = [setting.partition("=") for setting in query.split("&") if setting]
    schema = {name: value for name, _, value in settings}.get("schema")
    if schema is not None and not is_schema(schema):
        raise UsageError(
            f"the schema of {tables.article} {tables.name} has small letters, digits and underscores, "
            f"as schema={tables.name}"
        )
    others = "&".join("".join(setting) for setting in settings if setting[0] != "schema")
    try:
        conninfo = psycopg.conninfo.conninfo_to_dict(f"{place}?{others}" if others else place)
    except psycopg.ProgrammingError:
        # The error's text quotes the part that it could not parse.
        raise UsageError(f"the URL of the {tables.name}'s database cannot be read; {_FORM}") from None
    if any("@" in str(conninfo.get(part, "")) for part in ("host", "port", "dbname")):
        raise UsageError(f"the URL of the {tables.name}'s database has an '@' behind the host; {_FORM}")
    return conninfo, schema


def _shown(conninfo: dict[str, Any], schema: str | None) -> str:
    user = f"{conninfo['user']}@" if conninfo.get("user") else ""
    port = f":{conninfo['port']}" if conninfo.get("port") else ""
    within = f"?schema={schema}" if schema is not None else ""
    return f"postgresql://{user}{conninfo.get('host', '')}{port}/{conninfo.get('dbname', '')}{within}"
