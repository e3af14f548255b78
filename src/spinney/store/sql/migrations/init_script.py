"""The script that does to a PostgreSQL database what ``spinney init`` would do, for a DBA to read and to run.

It is generated from the same revisions by Alembic's offline mode. What ``spinney init`` would look up in the database
is looked up when the script is generated, so it is valid only for the database in that state. A test compares the
results of both.
"""

import io
from collections.abc import Sequence

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy.dialects.postgresql.base import PGDialect

from spinney.store.sql.connection.schema_state import SchemaState
from spinney.store.sql.migrations.upgrades import OWN, first_marks, scripts_with_finish

_TURN = "insert into counters (name, value) values ('turn', 0) on conflict do nothing"


def script(
    schema: str, schema_state: SchemaState | None, schema_is_there: bool, grants: Sequence[str]
) -> str:
    """Return the script, which ends with a line feed. ``schema_state``: that of the existing store; None: there is
    none. ``schema_is_there``: whether the schema exists; else the script creates it. ``grants``: statements that are
    run at the end."""
    statements = ["begin", f"select pg_advisory_xact_lock(hashtext('spinney {schema}'))"]
    if not schema_is_there:
        statements.append(f'create schema "{schema}"')
    statements.append(f'set local search_path to "{schema}"')
    if schema_state is not None:
        statements.append("update counters set value = value + 1 where name = 'turn'")
    before = ";\n".join(statements)
    after = ";\n".join([*_marks(schema_state), _TURN, *grants, "commit"])
    return (
        f"-- What 'spinney init' does in the schema {schema}: run it as the role that shall own the store.\n"
        f"{before};\n\n{_revisions(schema_state)}\n{after};\n"
    )


def _revisions(schema_state: SchemaState | None) -> str:
    scripts, out = ScriptDirectory(str(OWN)), io.StringIO()
    context = MigrationContext.configure(
        dialect=PGDialect(paramstyle="named"),  # type: ignore[no-untyped-call]
        opts={
            "as_sql": True,
            "literal_binds": True,
            "output_buffer": out,
            "starting_rev": None if schema_state is None else schema_state.schema,
            "fn": lambda revision, _: scripts._upgrade_revs("head", revision),
        },
    )
    with Operations.context(context):
        context.run_migrations()
        for revision in scripts_with_finish(scripts) if schema_state is None else ():
            revision.module.finish()
    return out.getvalue()


def _marks(schema_state: SchemaState | None) -> list[str]:
    scripts = ScriptDirectory(str(OWN))
    values = first_marks(scripts, scripts_with_finish(scripts) if schema_state is None else [])
    return [
        f"insert into meta (name, value) values ('{n}', '{v}') on conflict do nothing"
        for n, v in values.items()
    ]
