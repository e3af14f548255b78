"""The implementation of the storage contract, with a layout on a place."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import BinaryIO

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader, puts, verification
from spinney.apps.ingest.storage.contract import Incoming, Stored, StoredFile, Verified, Version
from spinney.apps.ingest.storage.layout import Layout
from spinney.apps.ingest.storage.place import Claim, Place


class OcflStorage:
    """An OCFL 1.1 storage root that implements `contract.Storage`; made by `open_storage`.

    It has no state between calls, so that threads may share it and other processes may write at the same time.
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
        fence: int | None,
    ) -> Stored:
        """See `contract.Storage.put`."""
        claim = Claim(object_id=object_id, root=self._layout.path(object_id), key=key, fence=fence)
        order = puts.Order(files=files, message=message, user=user, created=created, merge=merge)
        return puts.put(self._place, claim, order, self._algorithm)

    def exists(self, object_id: str) -> bool:
        """See `contract.Storage.exists`."""
        return self._place.read(f"{self._layout.path(object_id)}/{inventories.NAME}") is not None

    def versions(self, object_id: str) -> list[Version]:
        """See `contract.Storage.versions`."""
        return inventories.versions(
            object_reader.require(self._place, self._layout.path(object_id), object_id)
        )

    def version(self, object_id: str, number: int) -> tuple[Version, Iterator[StoredFile]]:
        """See `contract.Storage.version`."""
        root = self._layout.path(object_id)
        inventory = object_reader.require(self._place, root, object_id)
        files = object_reader.files_of(self._place, root, inventory, number)
        return inventories.version(inventory, number), files

    def files(self, object_id: str, version: int | None = None) -> Iterator[StoredFile]:
        """See `contract.Storage.files`."""
        return object_reader.files(self._place, self._layout.path(object_id), object_id, version)

    def opened(
        self, object_id: str, path: str | StoredFile, version: int | None = None
    ) -> AbstractContextManager[BinaryIO]:
        """See `contract.Storage.opened`."""
        return object_reader.opened(self._place, self._layout.path(object_id), object_id, path, version)

    def url(self, object_id: str, file: StoredFile) -> str:
        """See `contract.Storage.url`."""
        return self._place.url(f"{self._layout.path(object_id)}/{file.content_path}")

    def verify(self, object_id: str, between: Callable[[int], None] = lambda read: None) -> Verified:
        """See `contract.Storage.verify`."""
        return verification.verify(self._place, self._layout.path(object_id), object_id, between)
