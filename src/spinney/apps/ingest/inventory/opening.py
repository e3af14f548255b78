"""Opening of an inventory, in a module of its own so that SQLAlchemy is loaded only when one is opened."""

from typing import TYPE_CHECKING

from spinney.config import database_file

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory


def open_inventory(url: str) -> "Inventory":
    """Open ``sqlite:///file`` (``sqlite:////absolute/file``) or ``postgresql://user@host/database?schema=name``.

    It connects on first use. Raises UsageError for another URL.
    """
    from spinney.apps.ingest.inventory.inventory import Inventory
    from spinney.apps.ingest.inventory.sql.database import database

    return Inventory(database(url), database_file(url))
