"""Bringing a store's schema up to date, with Alembic."""

import secrets
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from spinney.model.errors import StoreUnusable
from spinney.stores.sql.database import Database

_FOLDER = Path(__file__).parent / "migrations"


def upgrade(database: Database) -> None:
    """Run what is missing, in one transaction and in its turn. A store that is current is left alone."""

    def run(connection: Connection) -> None:
        scripts = ScriptDirectory(str(_FOLDER))
        _refuse_foreign(database, connection)
        context = MigrationContext.configure(
            connection,
            opts={"fn": lambda revision, _: scripts._upgrade_revs("head", revision)},
        )
        with Operations.context(context):
            context.run_migrations()
        connection.execute(
            text("insert into meta (name, value) values ('folder_token', :token) on conflict do nothing"),
            {"token": secrets.token_hex(16)},
        )

    database.upgrade(run)


def _refuse_foreign(database: Database, connection: Connection) -> None:
    """Where there are tables of another program, everything is left alone."""
    names = inspect(connection).get_table_names()
    if names and "alembic_version" not in names:
        raise StoreUnusable(f"{database.name} holds another program's tables; name another place for the store")
