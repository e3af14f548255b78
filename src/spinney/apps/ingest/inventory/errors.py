"""The errors of the inventory. Every message says what to do next."""

from spinney.apps.ingest.files.paths import NotAdmitted, shown


class LocalIdTaken(NotAdmitted):
    """A local id belongs to another object of its collection; deposit to that one, or choose another local id."""

    def __init__(self, collection: str, local_id: str, ark: str) -> None:
        self.collection, self.local_id, self.ark = collection, local_id, ark
        super().__init__(
            f"the local id '{shown(local_id)}' of collection '{shown(collection)}' belongs to {shown(ark)}; "
            f"deposit to that object, or choose another local id"
        )
