"""How an inventory is opened: apart from its verbs, so that who may open one loads SQLAlchemy only when it does."""

from typing import TYPE_CHECKING

from spinney.config import database_file

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory


def open_inventory(url: str) -> "Inventory":
    """``sqlite:///file`` (``sqlite:////absolute/file``) or ``postgresql://user@host/database?schema=name``.

    Nothing is connected to yet. Raises UsageError for what is no such URL.
    """
    from spinney.apps.ingest.inventory.inventory import Inventory
    from spinney.apps.ingest.inventory.sql.database import database

    return Inventory(database(url), database_file(url))
