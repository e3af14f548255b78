"""Makes an application's tables and upgrades them, with Alembic.

Missing migrations run in one transaction, under a lock; a crash leaves the tables as they were."""

from sqlalchemy import Connection, inspect, text

from spinney.tables.declaration import TableDeclaration
from spinney.tables.errors import TablesUnusable


def revision(tables: TableDeclaration, connection: Connection) -> str | None:
    """Return the revision of the tables; None where there are none."""
    if not inspect(connection).has_table(tables.version_table):
        return None
    return connection.execute(text(f"select version_num from {tables.version_table}")).scalar()  # noqa: S608


def require(tables: TableDeclaration, database: str, connection: Connection) -> None:
    """Raise TablesUnusable unless the tables have the revision that this code works with. ``database``: its name in
    messages."""
    current = revision(tables, connection)
    if current is None:
        raise TablesUnusable(
            f"{database} holds no {tables.name}; run '{tables.init}', or name another database"
        )
    if current < tables.head:
        raise TablesUnusable(f"the {tables.name} {database} is older than this program; run '{tables.init}'")
    _require_not_newer(tables, database, current)


def upgrade(tables: TableDeclaration, database: str, connection: Connection) -> None:
    """Run the missing migrations in the transaction of this connection. Raises TablesUnusable for tables that a newer
    version of the program made, and for migrations that do not end at the revision that the code works with."""
    from alembic.migration import MigrationContext  # slow to import, and rarely needed
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    _require_not_newer(tables, database, revision(tables, connection))
    scripts = ScriptDirectory(str(tables.migrations))
    last = scripts.get_current_head()
    if last != tables.head:
        raise TablesUnusable(
            f"the {tables.name} is declared with head={tables.head!r}, but its migrations in {tables.migrations} end "
            f"at {last!r}; name that revision, or add the migration that is missing"
        )
    context = MigrationContext.configure(
        connection,
        opts={
            "version_table": tables.version_table,
            "fn": lambda current, _: scripts._upgrade_revs("head", current),
        },
    )
    with Operations.context(context):
        context.run_migrations()


def _require_not_newer(tables: TableDeclaration, database: str, current: str | None) -> None:
    if current is not None and current > tables.head:
        raise TablesUnusable(
            f"the {tables.name} {database} was made by a newer version of this program; install that one"
        )
