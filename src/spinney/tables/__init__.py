"""An application keeps tables of its own with this package, on SQLite or PostgreSQL, beside those of the store.

An application that keeps more than jobs (an inventory, a list of services) declares a ``TableSet`` once: its name, and
the folder of its Alembic migrations. ``open`` returns a ``Database``, whose transactions are SQLAlchemy connections::

    from spinney.tables import TableSet

    tables = TableSet(
        name="shelves",
        prefix="shelf",
        migrations=Path(__file__).parent / "migrations",
        head="0001",
        init="spinney library init",
    )
    database = tables.open(tables.beside(app.settings.store))
    database.init()                                  # make the tables, or upgrade them
    with database.write() as connection:             # one transaction, durable when the block has been left
        connection.execute(database.insert(shelf).values(name="north").on_conflict_do_nothing())
    with database.read() as connection:              # one snapshot
        names = connection.scalars(select(shelf.c.name)).all()

The tables are no part of the store: they have their own transactions, and a stage that writes them must be repeatable,
as for every other effect outside the store (``docs/applications.md``). Errors of the driver arrive as ``TablesAway``
(try again later) or ``TablesUnusable`` (somebody has to do something), each with a sentence that says what.

``declaration``  a set of tables as an application declares it: its name, its migrations, its revision
``table_set``    the same with ``open``, which returns the database of the set
``database``     transactions, and the database on SQLite
``postgres``     the same on PostgreSQL
``upgrades``     tables made and upgraded, and refused when their revision is not the one of the code
``errors``       ``TablesAway`` and ``TablesUnusable``

SQLAlchemy is imported when tables are first opened.

Specified by ``tests/tables``, and on both databases by ``tests/apps/ingest/inventory/test_reaching.py``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.tables.database import Database as Database
    from spinney.tables.errors import TablesAway as TablesAway
    from spinney.tables.errors import TablesUnusable as TablesUnusable
    from spinney.tables.table_set import TableSet as TableSet
else:
    from spinney.public_names import on_demand

    __all__, __getattr__, __dir__ = on_demand(
        __name__,
        {
            "spinney.tables.database": "Database",
            "spinney.tables.errors": "TablesAway TablesUnusable",
            "spinney.tables.table_set": "TableSet",
        },
    )
