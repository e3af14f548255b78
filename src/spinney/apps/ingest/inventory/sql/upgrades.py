"""Makes the tables of an inventory and upgrades them, with Alembic.

They may share a database with others: their names begin with ``inv_``, and their version is in ``inv_version``. Missing
migrations run in one transaction, under a lock; a crash leaves the tables as they were.
"""

import os
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from spinney.apps.ingest.inventory.errors import InventoryUnusable
from spinney.apps.ingest.inventory.sql.database import INIT, Database

HEAD = "0002"
"""The revision that this code works with."""
OWN = Path(__file__).parent / "migrations"
_TABLE = "inv_version"


def init(database: Database, file: Path | None) -> None:
    """Make or upgrade the tables; current ones are left alone. ``file``: that of the database, if it has one. Raises
    InventoryUnusable."""
    if file is not None:
        _make(file)
    with database.read() as connection:
        if _revision(connection) == HEAD:
            return
    with database.write() as connection:
        database.prepare(connection)
        _upgrade(database, connection)


def require(database: Database) -> None:
    """Raise InventoryUnusable unless the tables have the revision that this code works with."""
    with database.read() as connection:
        revision = _revision(connection)
    if revision is None:
        raise InventoryUnusable(f"{database.name} holds no inventory; {INIT}, or name another database")
    if revision < HEAD:
        raise InventoryUnusable(f"the inventory {database.name} is older than this program; {INIT}")
    if revision > HEAD:
        raise _newer(database)


def _make(file: Path) -> None:
    """Make the file, readable by its owner only."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InventoryUnusable(
            f"cannot make the inventory {file}: {error.strerror}; choose a folder you can write to"
        ) from error


def _upgrade(database: Database, connection: Connection) -> None:
    from alembic.migration import MigrationContext  # slow to import, and rarely needed
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    current = _revision(connection)
    if current is not None and current > HEAD:
        raise _newer(database)
    scripts = ScriptDirectory(str(OWN))
    context = MigrationContext.configure(
        connection,
        opts={"version_table": _TABLE, "fn": lambda revision, _: scripts._upgrade_revs("head", revision)},
    )
    with Operations.context(context):
        context.run_migrations()


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_TABLE):
        return None
    return connection.execute(text("select version_num from inv_version")).scalar()


def _newer(database: Database) -> InventoryUnusable:
    return InventoryUnusable(
        f"the inventory {database.name} was made by a newer version of this program; install that one"
    )
