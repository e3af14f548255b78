"""The errors of the inventory. Every message says what to do next."""

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.errors import SpinneyError


class LocalIdTaken(NotAdmitted):
    """A local id belongs to another object of its collection; deposit to that one, or choose another local id."""

    def __init__(self, collection: str, local_id: str, ark: str) -> None:
        self.collection, self.local_id, self.ark = collection, local_id, ark
        super().__init__(
            f"the local id '{shown(local_id)}' of collection '{shown(collection)}' belongs to {shown(ark)}; "
            f"deposit to that object, or choose another local id"
        )


class InventoryUnusable(SpinneyError):
    """The inventory cannot be used as it is; the message names the cause and the remedy."""


class InventoryAway(InventoryUnusable):
    """The inventory does not answer now, or its disk is full. Whether the operation was carried out may be unknown; it
    may be repeated, since every operation is idempotent."""
