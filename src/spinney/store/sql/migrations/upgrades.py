"""Bring a store's schema up to date with Alembic, while nodes of the previous version keep running.

Each revision is a script with one or two functions, which are run at different times:

* ``upgrade()``, the revision's part **before** the nodes are replaced: ``spinney init`` runs it while nodes of the
  previous version work. It only adds: tables, nullable columns, indexes (``large_index`` where the table may be large).
  The previous version and the new one must both work with the result, so it renames, drops and fills nothing, and adds
  no constraint to what exists.
* ``finish()``, the optional part **after** they were replaced: ``spinney init --finish`` runs it when the last node of
  an older schema has left. It drops, fills, and adds constraints. The row ``works_with`` of the table ``meta`` then
  keeps older code from working with the store (``schema_state``).

``finish()`` of a revision may run after ``upgrade()`` of later ones, so no ``upgrade()`` may depend on a ``finish()``.
All missing parts run in order in one transaction: a crash leaves the schema as it was. In a new store both run at once.
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
from spinney.model.values.hints import first_of
from spinney.store.sql.connection.database import Database
from spinney.store.sql.connection.schema_state import (
    INDEX,
    WORKS_WITH,
    SchemaState,
    incomplete,
    require_workable,
)

OWN = Path(__file__).parent
"""The folder of the revisions."""
_NODES_NAMED = 5
"""How many nodes an error names."""


def upgrade(
    database: Database,
    *,
    folder: Path = OWN,
    meta: Mapping[str, str] | None = None,
    for_new_store: Mapping[str, str] | None = None,
) -> None:
    """Create the store's tables, or run ``upgrade()`` of the revisions that it lacks. A current store is not changed,
    nor is a newer one; raises StoreUnusable if this code may not work with a newer one, or if a column is missing.

    ``meta``: rows for the table ``meta`` that are added in the same transaction unless they exist; ``for_new_store``:
    rows that are added only if the store is new.
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
            finished = scripts_with_finish(scripts) if current is None else []
            for script in finished:
                script.module.finish()
        if current is not None and folder == OWN:
            _require_complete(database, connection)
        values = first_marks(scripts, finished) | dict(meta or {})
        if current is None and for_new_store:
            values |= for_new_store
        for name, value in values.items():
            connection.execute(
                text("insert into meta (name, value) values (:name, :value) on conflict do nothing"),
                {"name": name, "value": value},
            )

    database.upgrade(run)


def first_marks(scripts: ScriptDirectory, finished: Sequence[Script]) -> dict[str, str]:
    """Return the rows of ``meta`` that a store gets when it is made. ``finished``: the revisions whose ``finish()`` has
    run."""
    works_with = finished[-1].revision if finished else scripts.get_base()
    return {"folder_token": secrets.token_hex(16), WORKS_WITH: str(works_with)}


def finish(database: Database, *, folder: Path = OWN) -> Sequence[str]:
    """Run ``finish()`` of the revisions where it is pending, and return these revisions.

    Raises StoreUnusable if a node of an older schema has not left, or if an ``upgrade()`` is missing.
    """
    with database.look():
        pass  # raises StoreUnusable unless there is a store with which this code may work
    done: list[str] = []

    def run(connection: Connection) -> None:
        done.clear()
        scripts = ScriptDirectory(str(folder))
        context = MigrationContext.configure(connection)
        schema_state = _schema_state(connection, context.get_current_revision() or "")
        require_workable(database.name, schema_state, schema=_head(scripts))
        pending = _finish_pending(scripts, schema_state)
        if not pending:
            return
        _require_no_older_node(database, connection, pending[-1].revision)
        with Operations.context(context):
            for script in pending:
                script.module.finish()
                done.append(script.revision)
        connection.execute(
            text("update meta set value = :value where name = :name"), {"name": WORKS_WITH, "value": done[-1]}
        )

    database.upgrade(run)
    return done


def unfinished(database: Database, *, folder: Path = OWN) -> Sequence[str]:
    """Return the revisions whose ``finish()`` is pending, oldest first: ``upgrade()`` has run, and older
    nodes may still work with the store."""
    schema_state = database.schema_state()
    scripts = ScriptDirectory(str(folder))
    return (
        [] if schema_state is None else [script.revision for script in _finish_pending(scripts, schema_state)]
    )


def large_index(
    revision: str, name: str, table: str, columns: Sequence[str], where: str | None = None
) -> None:
    """In ``upgrade()``: create an index on a table that may be large.

    On PostgreSQL, unless the table is empty, it is only noted in ``meta``, and built concurrently after the
    transaction, so that writers do not wait. Code of this revision may not work with the store until it is built.
    ``where``: the condition of a partial index.
    """
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


def scripts_with_finish(scripts: ScriptDirectory) -> list[Script]:
    """Return the scripts of the revisions that have a ``finish()``, oldest first."""
    return [s for s in reversed(list(scripts.walk_revisions())) if hasattr(s.module, "finish")]


def _finish_pending(scripts: ScriptDirectory, schema_state: SchemaState) -> list[Script]:
    return [
        s for s in scripts_with_finish(scripts) if schema_state.works_with < s.revision <= schema_state.schema
    ]


# --- the store --------------------------------------------------------------------------------


def _schema_state(connection: Connection, schema: str) -> SchemaState:
    rows = connection.execute(text("select name, value from meta"))
    return SchemaState(schema=schema, meta=dict(map(tuple, rows)))


def _require_no_older_node(database: Database, connection: Connection, revision: str) -> None:
    nodes = connection.execute(
        text(
            "select name, version, host, schema_version from nodes where state <> 'left' "
            "and schema_version < :revision order by id"
        ),
        {"revision": revision},
    ).all()
    if not nodes:
        return
    named = first_of((f"{n[0]} on {n[2]} (Spinney {n[1]}, schema {n[3]})" for n in nodes), _NODES_NAMED)
    raise StoreUnusable(
        f"the upgrade of {database.name} is not finished: nodes of older schemas than {revision} have not left: "
        f"{named}; stop them with SIGTERM and start them with this version, or, when one is dead, run "
        f"'spinney doctor --repair --dead {nodes[0][0]}'"
    )


def _require_complete(database: Database, connection: Connection) -> None:
    """Raise StoreUnusable if a column is missing in a store that has all revisions: one from before the release of
    0.1.0 has the same mark and other tables."""
    from spinney.store.sql.schema import metadata

    present = {
        (table, column["name"])
        for (_, table), columns in inspect(connection).get_multi_columns().items()
        for column in columns
    }
    for table in metadata.sorted_tables:
        for column in table.columns:
            if (table.name, column.name) not in present:
                raise incomplete(database.name, f"no such column: {table.name}.{column.name}")


def _refuse_foreign(database: Database, connection: Connection) -> None:
    """Raise StoreUnusable if the database has tables of another program."""
    names = inspect(connection).get_table_names()
    if names and "alembic_version" not in names:
        raise StoreUnusable(
            f"{database.name} has tables of another program; choose another database for the store"
        )
