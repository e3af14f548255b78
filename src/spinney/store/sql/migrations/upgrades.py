"""Bringing a store's schema up to date, with Alembic, while nodes of the version before work on.

Each revision has up to two parts:

* ``upgrade()``, the part **before**, which ``spinney init`` runs beside nodes of the version before. It adds: tables,
  columns that may be empty, indexes (``large_index`` where the table may be large). After it the code before must go
  on working and the code behind must work already; so nothing is renamed, dropped, tightened or filled here.
* ``finish()``, the part **after**, if there is one, which ``spinney init --finish`` runs when the last node of an
  older schema has left: it drops, tightens, fills. ``meta`` then says that older code may not come back
  (``schema_state``). A part before must not count on the parts after of earlier revisions.

What is missing runs in one transaction, in its turn: a crash leaves the schema as it was. In a new store all parts
run at once.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, inspect, text

from spinney.model.errors import StoreUnusable
from spinney.store.sql.connection.database import Database
from spinney.store.sql.connection.schema_state import INDEX, WORKS_WITH, SchemaState, require_workable

OWN = Path(__file__).parent
"""Where the revisions are."""
_NAMED = 5
_WITHOUT_SCHEMA = "0002"
"""Nodes said which schema they work with from the next revision on."""


def upgrade(
    database: Database,
    *,
    folder: Path = OWN,
    meta: Mapping[str, str] | None = None,
    for_new_store: Mapping[str, str] | None = None,
) -> None:
    """Make the store, or run the parts before that it lacks. One that is current is left alone, and so is one that is
    newer, as long as this code may work with it.

    ``meta``: rows of ``meta`` that are written in the same transaction, where they are not there yet;
    ``for_new_store``: those that only a store has which is made by it.
    """

    def run(connection: Connection) -> None:
        scripts = ScriptDirectory(str(folder))
        _refuse_foreign(database, connection)
        current = MigrationContext.configure(connection).get_current_revision()
        if current is not None and current > _head(scripts):
            require_workable(database.name, _schema_state(connection, current), schema=_head(scripts))
            return
        context = MigrationContext.configure(
            connection,
            opts={"fn": lambda revision, _: scripts._upgrade_revs("head", revision)},
        )
        with Operations.context(context):
            context.run_migrations()
            finished = with_finish(scripts) if current is None else []
            for script in finished:
                script.module.finish()
        first = scripts.get_base()
        works_with = finished[-1].revision if finished else first
        values = {"folder_token": secrets.token_hex(16), WORKS_WITH: str(works_with), **(meta or {})}
        if current is None and for_new_store:
            values |= for_new_store
            values[WORKS_WITH] = max(values[WORKS_WITH], str(works_with))
        for name, value in values.items():
            connection.execute(
                text("insert into meta (name, value) values (:name, :value) on conflict do nothing"),
                {"name": name, "value": value},
            )

    database.upgrade(run)


def finish(database: Database, *, folder: Path = OWN) -> Sequence[str]:
    """Run the parts after that are left; returns their revisions.

    Raises StoreUnusable while a node of an older schema has not left, and where a part before is missing.
    """
    with database.look():
        pass  # there is a store, and it is not one of other code
    done: list[str] = []

    def run(connection: Connection) -> None:
        done.clear()
        scripts = ScriptDirectory(str(folder))
        context = MigrationContext.configure(connection)
        schema_state = _schema_state(connection, context.get_current_revision() or "")
        require_workable(database.name, schema_state, schema=_head(scripts))
        left = _left(scripts, schema_state)
        if not left:
            return
        _require_no_older_node(database, connection, left[-1].revision)
        with Operations.context(context):
            for script in left:
                script.module.finish()
                done.append(script.revision)
        connection.execute(
            text("update meta set value = :value where name = :name"), {"name": WORKS_WITH, "value": done[-1]}
        )

    database.upgrade(run)
    return done


def unfinished(database: Database, *, folder: Path = OWN) -> Sequence[str]:
    """Revisions whose part after has still to run."""
    schema_state = database.schema_state()
    scripts = ScriptDirectory(str(folder))
    return [] if schema_state is None else [script.revision for script in _left(scripts, schema_state)]


def large_index(
    revision: str, name: str, table: str, columns: Sequence[str], where: str | None = None
) -> None:
    """For a part before: an index on a table that may be large. On PostgreSQL it is built beside the writers, behind
    the transaction; code of this revision may not work with the store until it is there."""
    context, connection = op.get_context(), op.get_bind()
    if context.dialect.name == "sqlite" or context.as_sql or _empty(connection, table):
        conditions: dict[str, Any] = {}
        if where is not None:
            conditions = {f"{dialect}_where": text(where) for dialect in ("sqlite", "postgresql")}
        op.create_index(name, table, list(columns), **conditions)
        return
    schema = connection.execute(text("select current_schema()")).scalar()
    listed = ", ".join(f'"{column}"' for column in columns)
    sql = f'create index concurrently "{name}" on "{schema}"."{table}" ({listed}){f" where {where}" if where else ""}'
    connection.execute(
        text("insert into meta (name, value) values (:name, :value)"),
        {"name": f"{INDEX}{revision}:{name}", "value": sql},
    )


def _empty(connection: Connection, table: str) -> bool:
    return connection.execute(sa.select(sa.literal(1)).select_from(sa.table(table)).limit(1)).first() is None


# --- revisions --------------------------------------------------------------------------------


def _head(scripts: ScriptDirectory) -> str:
    return str(scripts.get_current_head())


def with_finish(scripts: ScriptDirectory) -> list[Script]:
    """Those that have a part after, oldest first."""
    return [s for s in reversed(list(scripts.walk_revisions())) if hasattr(s.module, "finish")]


def _left(scripts: ScriptDirectory, schema_state: SchemaState) -> list[Script]:
    return [s for s in with_finish(scripts) if schema_state.works_with < s.revision <= schema_state.schema]


# --- the store --------------------------------------------------------------------------------


def _schema_state(connection: Connection, schema: str) -> SchemaState:
    rows = connection.execute(text("select name, value from meta"))
    return SchemaState(schema=schema, meta=dict(map(tuple, rows)))


def _require_no_older_node(database: Database, connection: Connection, revision: str) -> None:
    row = connection.execute(
        text(
            "select name, version, host, coalesce(schema_version, :unknown) from nodes where state <> 'left' "
            "and coalesce(schema_version, :unknown) < :revision order by id"
        ),
        {"unknown": _WITHOUT_SCHEMA, "revision": revision},
    ).all()
    if not row:
        return
    named = ", ".join(f"{n[0]} on {n[2]} (Spinney {n[1]}, schema {n[3]})" for n in row[:_NAMED])
    more = f" and {len(row) - _NAMED} more" if len(row) > _NAMED else ""
    raise StoreUnusable(
        f"{database.name} is not finished: nodes of older schemas than {revision} have not left: {named}{more}; stop "
        f"them with SIGTERM and start them with this version, or, when one is dead, run "
        f"'spinney doctor --repair --dead {row[0][0]}'"
    )


def _refuse_foreign(database: Database, connection: Connection) -> None:
    """Where there are tables of another program, everything is left alone."""
    names = inspect(connection).get_table_names()
    if names and "alembic_version" not in names:
        raise StoreUnusable(
            f"{database.name} holds another program's tables; name another place for the store"
        )
