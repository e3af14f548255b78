"""An inventory that is open: the base of the classes that have its operations."""

from typing import Self

from spinney.tables.database import Database


class OpenTables:
    """The tables of an inventory, and its connections to the database.

    Use it in a ``with`` block, or ``close`` it; from any thread, but not across a fork, because two processes
    would share a connection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Inventory({self._database.name})"

    def init(self) -> None:
        """Make the tables, or upgrade them. Several processes may do so at once; current tables are left alone."""
        self._database.init()

    def close(self) -> None:
        """Close the connections to the database of the inventory."""
        self._database.close()
