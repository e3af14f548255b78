"""How a PostgreSQL database is reached: its URL, what is set on each connection, its errors as sentences."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.adapt import Dumper
from psycopg.types.numeric import Int8Dumper
from sqlalchemy.exc import DBAPIError

from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.places import without_password
from spinney.stores.sql.database import SCHEMA_VERSION

DEFAULT_SCHEMA = "spinney"
LEAST_VERSION = 140000
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_CONNECT_S = 10
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


class Way:
    """To one schema of one database."""

    def __init__(self, url: str) -> None:
        """Raises UsageError for what is no URL of a PostgreSQL database."""
        self._conninfo, self.schema = parsed(url)
        self.name = without_password(url)

    def connect(self) -> "psycopg.Connection[Any]":
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

    def require_store(self, connection: "psycopg.Connection[Any]") -> None:
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
    def explained(self) -> Iterator[None]:
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
