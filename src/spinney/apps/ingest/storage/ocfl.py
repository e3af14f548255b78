"""A storage: a layout on a place."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import BinaryIO

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader, puts, verification
from spinney.apps.ingest.storage.layout import Layout
from spinney.apps.ingest.storage.model import Incoming, Stored, StoredFile, Verified, Version
from spinney.apps.ingest.storage.object_inventory import Inventory
from spinney.apps.ingest.storage.place import Claim, Place
from spinney.files.paths import relative


class Storage:
    """Stores objects in versions, which are never changed, in an OCFL 1.1 storage root; made by `open_storage`.

    Every method can be interrupted and called again. All raise NotAdmitted (or one of its subclasses in ``model``)
    for errors that another attempt would repeat, `Busy` for those that it may not, and OSError when the system or the
    service fails. There is no state between calls, so that threads may share a storage, and other processes may write
    at the same time.
    """

    __slots__ = ("_algorithm", "_layout", "_place")

    def __init__(self, place: Place, layout: Layout, algorithm: str) -> None:
        self._place, self._layout, self._algorithm = place, layout, algorithm

    def put(
        self,
        object_id: str,
        files: Iterable[Incoming],
        *,
        key: str,
        message: str,
        user: str,
        created: datetime,
        merge: bool,
        fence: int,
    ) -> Stored:
        """Make a new version of these files, or of the newest version with these added to it (``merge``).

        Idempotent by ``key`` (printable, one line): the same key returns the version that it made. A state
        that equals the newest version's makes none. ``fence`` is compared with that of an earlier put of the
        same key; the lower one is refused. ``created`` has a time zone.
        ``message`` is any text; ``user``: a name, a mail address, or ``Name <address>``.

        Content whose digest is given and that the object has already is not read again. The version is
        durable on return. Raises Late, Busy, ValueError for a time without a zone, and NotAdmitted for a file
        that differs from its size or digests; no version was made then. After an OSError one may have been
        made, which a repetition with the same key finds.
        """
        claim = Claim(object_id=object_id, root=self._layout.path(object_id), key=key, fence=fence)
        order = puts.Order(files=files, message=message, user=user, created=created, merge=merge)
        return puts.put(self._place, claim, order, self._algorithm)

    def versions(self, object_id: str) -> list[Version]:
        """Return all versions of an object, oldest first. Raises NoSuchObject."""
        return inventories.versions(self._inventory(object_id))

    def version(self, object_id: str, number: int) -> tuple[Version, Iterator[StoredFile]]:
        """Return a version and its files, by path; the inventory is read once for both. Raises NoSuchObject."""
        inventory, files = self._version(object_id, number)
        return inventories.version(inventory, number), files

    def files(self, object_id: str, version: int | None = None) -> Iterator[StoredFile]:
        """Yield the files of a version (None: the newest), by path. Raises NoSuchObject and Damaged, at the
        first step."""
        yield from self._version(object_id, version)[1]

    def opened(self, object_id: str, file: StoredFile) -> AbstractContextManager[BinaryIO]:
        """Open the content of a file, to be read once from its beginning. No inventory is read, and the content is not
        compared with its digests: that is left to the reader. Raises NoSuchObject."""
        return self._place.opened(f"{self._layout.path(object_id)}/{relative(file.content_path)}")

    def url(self, object_id: str, file: StoredFile) -> str:
        """Return the URL of a file's content (``file:`` or that of S3 by path), for programs with access to the
        storage."""
        return self._place.url(f"{self._layout.path(object_id)}/{file.content_path}")

    def verify(self, object_id: str, between: Callable[[int], None] = lambda read: None) -> Verified:
        """Read every content of every version again and compare it; also check the inventories and stray
        files.

        ``between`` is called with each number of bytes read, to show progress or to abort by raising. Damage
        is in the result and not raised. Raises NoSuchObject, and OSError when the storage itself does not
        answer.
        """
        return verification.verify(self._place, self._layout.path(object_id), object_id, between)

    def _version(self, object_id: str, number: int | None) -> tuple[Inventory, Iterator[StoredFile]]:
        """Return the newest inventory of an object, and the files of a version in it (None: the newest)."""
        inventory = self._inventory(object_id)
        files = object_reader.files_of(self._place, self._layout.path(object_id), inventory, number)
        return inventory, files

    def _inventory(self, object_id: str) -> Inventory:
        """Return the newest inventory of an object. Raises NoSuchObject, Damaged."""
        return object_reader.require(self._place.read, self._layout.path(object_id), object_id).inventory
