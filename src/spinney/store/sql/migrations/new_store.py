"""A new store in an SQLite file, made without Alembic: its tables stand in ``new_store.sql``.

To import SQLAlchemy and Alembic takes longer than everything else that ``spinney init`` does. The script is what all
revisions lead to, which a test compares. After a revision was added, ``python -m
spinney.store.sql.migrations.new_store`` writes it anew.
"""

import re
import secrets
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from spinney.store.sql.connection.database import Database
from spinney.store.sql.connection.schema_state import WORKS_WITH

_SCRIPT = Path(__file__).with_suffix(".sql")
_BETWEEN = "\n\n"
_MARK = "insert into meta (name, value) values (?, ?)"


def create(database: Database, *, for_new_store: Mapping[str, str]) -> None:
    """Create the store, or bring an existing one up to date as ``upgrades.upgrade`` does.

    ``for_new_store``: rows for the table ``meta`` that are added only if the store is new."""
    marks = {"folder_token": secrets.token_hex(16), **for_new_store}
    statements = [(sql, ()) for sql in _script().split(_BETWEEN)]
    if not database.create([*statements, *((_MARK, mark) for mark in marks.items())]):
        from spinney.store.sql.migrations import upgrades  # with Alembic, which is slow to import

        upgrades.upgrade(database, for_new_store=for_new_store)


def unfinished(database: Database) -> Sequence[str]:
    """Return the revisions whose ``finish()`` is pending; none where there is no store. Alembic is imported
    only when the store's mark is older than that of a new store, since most stores have nothing pending."""
    schema_state = database.schema_state()
    if schema_state is None or schema_state.works_with >= _works_with():
        return []
    from spinney.store.sql.migrations import upgrades  # as above

    return upgrades.unfinished(database)


def generate(file: Path) -> str:
    """Return the script for the store that the revisions make in this new file."""
    from spinney.store.sql.connection.sqlite import SqliteDatabase
    from spinney.store.sql.migrations.upgrades import upgrade

    with closing(SqliteDatabase(file)) as database:
        upgrade(database)
        with closing(database.connect()) as connection:
            return script_of(connection)


def script_of(connection: sqlite3.Connection) -> str:
    """Return the script of this store, which has no jobs yet, without what only this one has."""
    statements = [f"{sql.removesuffix(';').rstrip()};" for sql in connection.iterdump()]
    unwanted = ("BEGIN TRANSACTION;", "COMMIT;")
    return (
        _BETWEEN.join(sql for sql in statements if sql not in unwanted and "'folder_token'" not in sql) + "\n"
    )


@cache
def _script() -> str:
    return _SCRIPT.read_text()


def _works_with() -> str:
    """Return the last revision that has a ``finish()``, as the script marks a new store with it."""
    mark = re.search(rf"'{WORKS_WITH}','(\d+)'", _script())
    assert mark is not None
    return mark[1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        _SCRIPT.write_text(generate(Path(folder, "new.db")))
