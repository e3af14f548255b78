"""Rules about what lies below the others: SQLite's own checks, what holds up the database, values that cannot
be read, and the chain of the audit log.

None of them has a repair: what is damaged here comes back from a backup, or needs a decision of a person.
They open snapshots of their own and do not need the registry, since a declaration that cannot be read stops
every rule that does.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spinney.features.doctor.sql.rule import CheckContext, Facts, Paged, Rule, StoreRule, Walk
from spinney.model.errors import AuditBroken, StoreUnusable
from spinney.model.values.paths import beside
from spinney.model.values.unreadable import Unreadable, json_object, json_value
from spinney.store.sql.audit import SqlAudit
from spinney.store.sql.connection.schema_state import INDEX
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.registry.registry import UnreadableDeclaration, read_queue, read_settings, read_type
from spinney.store.sql.session import Session

WAL_MOST_BYTES = 2**30
"""The length from which a write-ahead log is reported. SQLite cannot start it anew while a reader still needs
its beginning, so a log of this length means that one process keeps a snapshot open."""
OPEN_MOST_S = 60
"""A transaction that is open for longer keeps PostgreSQL from removing the dead rows that every job leaves behind."""
FINDINGS = 5
"""How many of SQLite's findings are reported for each table."""
VALUE_ROWS = 500
"""Rows of a page of JSON values, each of which may be 64 kB long."""
DECLARATIONS = "declaration-unreadable"
"""The rule that reports what keeps most others from looking."""

# --- the database -------------------------------------------------------------------------------


def _pragma(pragma: str) -> Callable[[Session], Iterator[Facts]]:
    """Return a function that runs SQLite's own check (``quick_check``, ``integrity_check``) one table at a
    time, each in a snapshot of its own: a check of a whole large database would keep the write-ahead log from
    being written back. A table that cannot even be opened is a finding like others."""

    def find(session: Session) -> Iterator[Facts]:
        with session.database.look() as tx:
            tables = tx.column("select name from sqlite_master where type = 'table' order by name")
        for table in tables:
            try:
                with session.database.look() as tx:
                    lines = tx.column(f"pragma {pragma}('{table}')")
            except StoreUnusable as error:
                lines = [str(error)]
            if lines != ["ok"]:
                yield {"table": table, "findings": "; ".join(lines[:FINDINGS])}

    return find


_PARTS = {
    True: "select 'column', c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid "
    "where c.relnamespace = current_schema()::regnamespace and a.attnum > 0 and not a.attisdropped "
    "union all select 'index', indexname from pg_indexes where schemaname = current_schema() "
    "union all select 'trigger', t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid "
    "where c.relnamespace = current_schema()::regnamespace and not t.tgisinternal",
    False: "select 'column', m.name || '.' || c.name from sqlite_master m, pragma_table_info(m.name) c "
    "where m.type = 'table' union all select type, name from sqlite_master where type in ('index', 'trigger')",
}
"""Selects the columns, indexes and triggers of a store, on PostgreSQL (True) and on SQLite."""


def _missing_parts(session: Session) -> Iterator[Facts]:
    """Yield the columns, indexes and triggers with which a store is made and that this one has not. Nothing else shows
    that an index is gone, or that a restore was broken off. An index of an upgrade that is still to be built is none
    of them."""
    # Slow to import, and needed by this rule alone.
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.schema import CreateIndex

    from spinney.store.sql.schema import metadata
    from spinney.store.sql.schema.statements import GUARDS

    with session.database.look() as tx:
        present = set(tx.all(_PARTS[tx.postgresql]))
        unbuilt = {
            mark.rpartition(":")[2] for mark in tx.column("select name from meta") if mark.startswith(INDEX)
        }
    # A statement for people: with the driver's own parameters each % would be doubled.
    dialect = (postgresql if tx.postgresql else sqlite).dialect(paramstyle="named")
    tables = metadata.sorted_tables
    expected = {("column", f"{table.name}.{column.name}"): "" for table in tables for column in table.columns}
    expected |= {
        ("index", str(index.name)): " ".join(str(CreateIndex(index).compile(dialect=dialect)).split())
        for table in tables
        for index in table.indexes
        if index.name not in unbuilt
    }
    expected |= {
        ("trigger", name): statement
        for name, statement in GUARDS[dialect.name].items()
        if statement.startswith("create trigger")
    }
    for (kind, name), statement in expected.items():
        if (kind, name) not in present:
            remedy = f"make it again ({statement})" if statement else "restore it from a backup"
            yield {"kind": kind, "name": name, "remedy": remedy}


def _long_wal(session: Session) -> Iterator[Facts]:
    """Yield the write-ahead log when it is longer than ``WAL_MOST_BYTES``."""
    assert isinstance(session.database, SqliteDatabase)
    database = session.database.path
    wal = Path(beside(database, "-wal"))
    if wal.exists() and (size := wal.stat().st_size) > WAL_MOST_BYTES:
        yield {"path": str(wal), "gib": round(size / 2**30, 1), "database": str(beside(database, ""))}


_OPEN_TRANSACTIONS = (
    "select 'the transaction of process ' || pid || ' (user ' || coalesce(usename, 'unknown') || ', ' "
    "|| coalesce(nullif(application_name, ''), 'without a name') || ', ' || coalesce(state, 'at work') || ')', "
    "extract(epoch from now() - xact_start), 'select pg_terminate_backend(' || pid || ')' from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid() and backend_xmin is not null "
    "and xact_start < now() - ? * interval '1 second' "
    "union all select 'the prepared transaction ' || gid || ' (user ' || owner || ')', "
    "extract(epoch from now() - prepared), 'rollback prepared ' || quote_literal(gid) from pg_prepared_xacts "
    "where database = current_database() "
    "union all select 'the replication slot ' || slot_name, 0, 'select pg_drop_replication_slot(' || "
    "quote_literal(slot_name) || ')' from pg_replication_slots where xmin is not null and not active"
)
"""Selects what keeps PostgreSQL from removing dead rows: transactions with a snapshot that are open for
longer than the bind says (seconds), prepared transactions, and unused replication slots that hold a snapshot;
and the statement that ends each. A role sees the age of other users' transactions only with the rights of
``pg_read_all_stats``."""


def _open_transactions(session: Session) -> Iterator[Facts]:
    """Yield the owner of each such transaction, its age in minutes (at least 1), and the statement that would
    end it."""
    with session.database.look() as tx:
        rows = tx.all(_OPEN_TRANSACTIONS, (OPEN_MOST_S,))
    for owner, since_s, end in rows:
        yield {"owner": owner, "minutes": max(1, round(since_s / 60)), "end": end}


# --- values -------------------------------------------------------------------------------------


def _unreadable_declarations(session: Session) -> Iterator[Facts]:
    """Yield the declarations of types and queues, and the settings of queues, that cannot be read. They are
    read without the registry, which cannot be loaded while one of them is unreadable."""
    for table, column, read in (
        ("types", "spec", read_type),
        ("queues", "spec", read_queue),
        ("queue_settings", "settings", read_settings),
    ):
        with session.database.look() as tx:
            rows = tx.all(f"select name, {column} from {table} order by name")
        for name, spec in rows:
            try:
                read(name, spec)
            except UnreadableDeclaration as error:
                yield {"kind": table.removesuffix("s").replace("_", " "), "name": name, "finding": str(error)}


_ADVICE = {
    "jobs.params": "the job fails when its turn comes; restore the row from a backup, or delete the job",
    "jobs.final_result": "restore the row from a backup, or run the stage again (spinney rerun)",
    "attempts.error": "restore the row from a backup; nothing is decided by it",
    "attempts.result": "restore the row from a backup, or run the stage again (spinney rerun)",
    "data.value": "stages that read it fail; restore the row from a backup, or delete it",
    "nodes.types": "restart the node",
    "nodes.stages": "restart the node",
    "nodes.serves": "the node claims nothing; restart it",
    "external_workers.lanes": "the external worker claims nothing; let it join again",
    "users.rights": "the user may do nothing; set the rights again (spinney user set)",
    "tokens.rights": "the token allows nothing; revoke it, and make another (spinney token)",
    "webhooks.spec": "the webhook is sent nothing; remove it, and add it again (spinney webhook)",
    "audit.what": "the entry was changed: see what 'spinney audit verify' says",
    "streaks.jobs": "the circuit breaker counts from zero; nothing has to be done",
}
"""Every column that is read as JSON, and what a person should do about a value that is not."""
_KEYS = {
    "jobs": ("id",),
    "attempts": ("job_id", "fence"),
    "data": ("job_id", "name"),
    "nodes": ("id",),
    "external_workers": ("node_id",),
    "users": ("name",),
    "tokens": ("id",),
    "webhooks": ("name",),
    "audit": ("seq",),
    "streaks": ("type", "stage"),
}
"""The columns of the key of each of these tables."""
_OBJECTS = frozenset({"jobs.params", "attempts.error", "users.rights", "tokens.rights", "webhooks.spec"})
"""The columns whose value must be a JSON object, not just any JSON value."""


def _unreadable_values(session: Session) -> Iterator[Facts]:
    """Yield where a stored value is no JSON: table, column and key, never the value itself, since nobody
    knows whether it is secret."""
    for place, advice in _ADVICE.items():
        table, column = place.split(".")
        keys = _KEYS[table]
        read = json_object if place in _OBJECTS else json_value

        def unreadable(
            check: CheckContext, rows: list[dict[str, Any]], read: Callable[[Any, str], Any] = read
        ) -> list[dict[str, Any]]:
            return [row for row in rows if isinstance(read(row.pop("json"), ""), Unreadable)]

        pages = Paged(
            name="",
            about="",
            walk=Walk(table, keys, rows=VALUE_ROWS, subject=""),
            where=f"page.{column} is not null",
            columns=(f"page.{column} as json",),
            row_filter=unreadable,
            sentence="",
        )
        for violation in pages.examine(session, 0):
            key = ", ".join(f"{name} {value}" for name, value in violation.facts.items())
            yield {"table": table, "column": column, "key": key, "advice": advice}


# --- the audit ----------------------------------------------------------------------------------


def _broken_chain(session: Session) -> Iterator[Facts]:
    """Yield the first place at which the chain of the audit log is broken. It reads the whole log."""
    try:
        SqlAudit(session).verify()
    except AuditBroken as error:
        yield {"finding": str(error)}


RULES: tuple[Rule, ...] = (
    StoreRule(
        name="database-damaged",
        about="SQLite finds its tables sound (quick_check).",
        find=_pragma("quick_check"),
        on="SQLite",
        subject="table {table}",
        sentence="the table {table} is damaged: {findings}; stop all nodes, keep a copy of the file, and restore it "
        "from a backup",
    ),
    StoreRule(
        name="index-damaged",
        about="SQLite finds that its indexes fit their tables (integrity_check; only with --deep).",
        find=_pragma("integrity_check"),
        on="SQLite",
        subject="table {table}",
        sentence="an index of the table {table} is damaged: {findings}; stop all nodes, keep a copy of the file, and "
        "restore it from a backup, or rebuild its indexes (sqlite3 FILE 'reindex {table}') and examine it again",
        deep=True,
    ),
    StoreRule(
        name="schema-incomplete",
        about="The store has the columns, indexes and triggers with which it was made.",
        find=_missing_parts,
        subject="{kind} {name}",
        sentence="the {kind} {name} is missing: somebody has removed it, a restore was broken off, or the store was "
        "made by a Spinney from before the release of 0.1.0; {remedy}",
    ),
    StoreRule(
        name="wal-long",
        about="The write-ahead log is written back into the database before it gets long.",
        find=_long_wal,
        on="SQLite",
        subject="file {path}",
        sentence="the write-ahead log has {gib} GiB, so a process keeps a snapshot open; 'lsof {database}' shows them: "
        "end what is not a node",
    ),
    StoreRule(
        name="transaction-open",
        about="On a server no transaction stays open for long: it keeps dead rows, which slow down every claim.",
        find=_open_transactions,
        on="PostgreSQL",
        subject="server",
        sentence="{owner} has been open for {minutes} min, and until it ends claims cost more with every job; let it "
        "finish, or end it ({end})",
    ),
    StoreRule(
        name=DECLARATIONS,
        about="The declarations of job types and queues can be read.",
        find=_unreadable_declarations,
        subject="{kind} {name}",
        sentence="{finding}",
    ),
    StoreRule(
        name="json-unreadable",
        about="Values that are stored as JSON can be read.",
        find=_unreadable_values,
        subject="{table}.{column}, {key}",
        sentence="the column {column} of table {table} cannot be read at {key}: it holds no JSON; {advice}",
    ),
    StoreRule(
        name="audit-broken",
        about="The chain of the audit log is whole.",
        find=_broken_chain,
        subject="audit",
        sentence="{finding}",
    ),
)
