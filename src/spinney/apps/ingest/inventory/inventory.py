"""The inventory as one class, put together from its operations; callers see nothing of the parts."""

from typing import Self

from spinney.apps.ingest.inventory.fixity_checks import FixityChecks
from spinney.apps.ingest.inventory.searches import Searches
from spinney.apps.ingest.inventory.versions import Versions
from spinney.tables.database import Database


class Inventory(Versions, Searches, FixityChecks):
    """The content of the archive.

    All methods raise TablesAway while the database does not answer, and TablesUnusable when it cannot be used
    as it is, for example before ``ingest init``; those with text parameters, NotAdmitted for text that cannot
    be stored. Each write is one transaction, and durable on return.

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
