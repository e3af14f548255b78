"""Changes of the tables of a PostgreSQL store while nodes work.

A change of a table waits for all transactions that read or write it, and later ones queue behind the change. So the
wait for a table is short: when a transaction keeps one for long (a report, a forgotten session), the change is rolled
back, the queue moves on, and the change is tried again a little later. It takes the row ``turn`` first, as every
transaction that writes does, so that it never holds one table while it waits for another.

An index on a large table is built beside the writers (``create index concurrently``), which is impossible in a
transaction. So the transaction leaves a mark in ``meta``; the process that finds the mark, even after a crash, builds
the index and removes the mark.
"""

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg

from spinney.model.errors import StoreUnusable
from spinney.store.sql.connection.schema_state import INDEX

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from spinney.store.sql.connection.postgres_connection import Connector

TABLE_WAIT = "300ms"
"""How long writers queue behind a change that waits for a table."""
REST_S = 0.5
PATIENCE_S = 60.0
AS_LONG_AS_IT_TAKES_S = 86_400.0
"""The time limit of a statement that may have much to do."""


def retry_until_altered(
    alter: Callable[[], None],
    connector: "Connector",
    *,
    rest: Callable[[float], None] = time.sleep,
    patience_s: float = PATIENCE_S,
) -> None:
    """Run the transaction ``alter`` again until it gets its tables, with a pause of ``REST_S`` between two
    tries, in which the writers that have queued behind it go on. Raises StoreUnusable, which names the
    transaction that keeps them, after ``patience_s``; nothing was changed then."""
    give_up = time.monotonic() + patience_s
    while True:
        try:
            return alter()
        except psycopg.errors.LockNotAvailable as error:
            if time.monotonic() >= give_up:
                raise StoreUnusable(
                    f"{connector.name} could not be changed in {patience_s:.0f} s, because another session keeps a "
                    f"table locked{_oldest(connector)}; end that, and run it again: nothing was changed"
                ) from error
        rest(REST_S)


def begin(connection: "Connection", schema: str) -> None:
    """Begin the transaction that alters: exclude other writers, and limit the wait for each table. A new
    store has no row ``turn`` yet, and no other writers."""
    has_turn = (
        connection.exec_driver_sql("select to_regclass(%s)", (f'"{schema}".counters',)).scalar() is not None
    )
    if has_turn:
        connection.exec_driver_sql("update counters set value = value + 1 where name = 'turn'")
    connection.exec_driver_sql(f"set local lock_timeout = '{TABLE_WAIT}'")


def _oldest(connector: "Connector") -> str:
    """Name the oldest transaction that has a lock on a table of this store, as the end of a sentence."""
    with closing(connector.connect()) as connection:
        row = connection.execute(
            "select pid, usename, extract(epoch from now() - xact_start) "
            "from pg_stat_activity join pg_locks using (pid) where granted and pid <> pg_backend_pid() "
            "and relation in (select oid from pg_class where relnamespace = to_regnamespace(%s)) "
            "order by xact_start limit 1",
            (f'"{connector.schema}"',),
        ).fetchone()
    if row is None:
        return ""
    pid, user, open_s = row
    return f" (the oldest transaction on its tables is that of process {pid}, user {user}, begun {open_s:.0f} s ago)"


# --- indexes ----------------------------------------------------------------------------------


def build_indexes(connector: "Connector") -> None:
    """Build the indexes that are marked as still to be built, beside writers, however long it takes. Only one process
    builds at a time, and on a direct connection, because the lock belongs to a session, which a pooler does not keep.
    Raises StoreUnusable behind a pooler."""
    with closing(connector.connect()) as connection:
        marked = _marked(connection, connector.schema)
        if marked and connector.pooled(connection):
            raise StoreUnusable(
                f"{connector.name} still lacks its index {_name(marked[0][0])}, which cannot be built "
                "through a pooler; run "
                f"'spinney init' with the address of the database itself"
            )
        if marked:
            connection.patience_s = AS_LONG_AS_IT_TAKES_S
            # By polling: the process that builds would wait for a statement that waits for this lock.
            while not _value(
                connection, "select pg_try_advisory_lock(hashtext(%s))", f"spinney indexes {connector.schema}"
            ):
                time.sleep(REST_S)
            for mark, sql in _marked(connection, connector.schema):
                _build(connection, connector.schema, _name(mark), sql)
                connection.execute(f'delete from "{connector.schema}".meta where name = %s', (mark,))


def _marked(connection: "psycopg.Connection[Any]", schema: str) -> list[Any]:
    return connection.execute(
        f'select name, value from "{schema}".meta where starts_with(name, %s) order by name', (INDEX,)
    ).fetchall()


def _name(mark: str) -> str:
    return mark.rpartition(":")[2]


def _build(connection: "psycopg.Connection[Any]", schema: str, name: str, sql: str) -> None:
    """Build one index. A build that was cut off has left an invalid index, and has to begin anew."""
    for setting in ("statement_timeout", "lock_timeout"):  # nothing waits for it
        connection.execute(f"set {setting} = 0")
    whole = _value(
        connection,
        "select indisvalid from pg_index where indexrelid = to_regclass(%s)",
        f'"{schema}"."{name}"',
    )
    if whole is False:
        connection.execute(f'drop index concurrently "{schema}"."{name}"')
    if not whole:
        connection.execute(sql)


def _value(connection: "psycopg.Connection[Any]", sql: str, argument: str) -> Any:
    row = connection.execute(sql, (argument,)).fetchone()
    return None if row is None else row[0]
