"""Making a store and bringing its schema up to date, with Alembic."""

import secrets
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

from spinney.model.errors import StoreUnusable
from spinney.stores.sql.database import Database, explained
from spinney.stores.sql.turnstile import Turnstile

_FOLDER = Path(__file__).parent / "migrations"


def upgrade(database: Database) -> None:
    """Run what is missing, in one transaction and in its turn. A store that is current is left alone."""
    database.make_file()
    turnstile = Turnstile(database.run_folder)
    scripts = ScriptDirectory(str(_FOLDER))
    engine = create_engine("sqlite://", creator=database.connect, poolclass=NullPool)
    event.listen(engine, "begin", lambda c: c.exec_driver_sql("begin immediate"))
    try:
        with turnstile.passed(), explained(database.path), engine.begin() as connection:
            _refuse_foreign(database, connection)
            context = MigrationContext.configure(
                connection,
                opts={"fn": lambda revision, _: scripts._upgrade_revs("head", revision)},
            )
            with Operations.context(context):
                context.run_migrations()
            connection.exec_driver_sql(
                "insert into meta (name, value) values ('folder_token', ?) on conflict do nothing",
                (secrets.token_hex(16),),
            )
    finally:
        turnstile.close()
        engine.dispose()


def _refuse_foreign(database: Database, connection: Connection) -> None:
    """A file with tables of another program is left alone."""
    names = {n for (n,) in connection.exec_driver_sql("select name from sqlite_master where type = 'table'")}
    if names and "alembic_version" not in names:
        raise StoreUnusable(f"{database.path} holds another program's tables; name another file for the store")
