"""Opening of an inventory, in a module of its own so that SQLAlchemy is loaded only when one is opened."""

from pathlib import Path
from typing import TYPE_CHECKING

from spinney.tables import TableSet

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory


TABLES = TableSet(
    name="inventory",
    prefix="inv",
    migrations=Path(__file__).parent / "sql" / "migrations",
    head="0002",
    init="spinney ingest init",
)


def open_inventory(url: str) -> "Inventory":
    """Open ``sqlite:///file`` (``sqlite:////absolute/file``) or ``postgresql://user@host/database?schema=name``.

    It connects on first use. Raises UsageError for another URL.
    """
    from spinney.apps.ingest.inventory.inventory import Inventory

    return Inventory(TABLES.open(url))
