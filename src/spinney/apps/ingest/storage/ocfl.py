"""A storage: a layout on a place. A put decides which contents are new, what the version contains, and whether one is
made."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import BinaryIO

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader, sources, verification
from spinney.apps.ingest.storage.layout import Layout
from spinney.apps.ingest.storage.model import Incoming, Stored, StoredFile, Verified, Version
from spinney.apps.ingest.storage.object_inventory import Inventory, checked_key, user_block, with_key
from spinney.apps.ingest.storage.place import Claim, Place, Put
from spinney.files.digests import digest
from spinney.files.paths import NotAdmitted, relative, require_apart, shown


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

        In this order: the put is claimed, one that was interrupted is finished, a version of the same key is
        looked for, contents are stored, and only where they make another state than the newest one, the version
        is committed.
        """
        claim = Claim(object_id=object_id, root=self._layout.path(object_id), key=key, fence=fence)
        checked_key(key)
        if created.tzinfo is None:
            raise ValueError("the time of a version has no time zone; give an aware datetime")
        files_by_path = _files_by_path(files)
        with self._place.begin_put(claim) as put_in_progress:
            loaded = put_in_progress.newest()
            before = loaded.inventory if loaded else None
            if before is not None and (earlier := inventories.version_of_key(before, key)) is not None:
                return _earlier_result(self._place.sizes(claim.root), before, earlier)
            state = inventories.state(before) if before else {}
            paths = {*state, *files_by_path} if merge else files_by_path.keys()
            if not paths:
                raise NotAdmitted(f"{shown(object_id)} would have no file at all; give at least one")
            require_apart(paths)  # OCFL 1.1 E095
            shape = inventories.next_shape(before, self._algorithm)
            put_in_progress.begin(shape)
            stock = _stock(put_in_progress, files_by_path, before, shape.algorithm)
            after = {**state, **stock.digests} if merge else stock.digests
            if before is not None and after == state:
                put_in_progress.forget()
                return Stored(version=before.head, changed=False, files=len(after), added_bytes=0)
            inventory = inventories.successor(
                before,
                shape,
                object_id=object_id,
                state=after,
                added=stock.added,
                created=created,
                message=with_key(message, key),
                user=user_block(user),
            )
            put_in_progress.commit(inventory, stock.added.keys())
        return Stored(
            version=1 if before is None else before.head + 1,
            changed=True,
            files=len(after),
            added_bytes=stock.added_bytes,
        )

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
        is in the result and not raised, and so is that there is no such object. Raises OSError when the storage
        itself does not answer.
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


def _files_by_path(files: Iterable[Incoming]) -> dict[str, Incoming]:
    """Return the files by their paths, their sums in canonical form. Raises NotAdmitted for an invalid path."""
    by_path: dict[str, Incoming] = {}
    for file in files:
        path = relative(file.path)
        if path in by_path:
            raise NotAdmitted(f"'{shown(path)}' is given twice; give each path once")
        checked = [digest(a, v) for a, v in file.sums.items()]
        by_path[path] = replace(file, sums={d.algorithm: d.value for d in checked})
    return by_path


@dataclass(slots=True, kw_only=True)
class _Stock:
    """The contents of the files of a put."""

    digests: dict[str, str] = field(default_factory=dict)
    """The digest that addresses the content of each file, by path."""
    added: dict[str, dict[str, str]] = field(default_factory=dict)
    """All sums of each content that the object did not have, by digest."""
    added_bytes: int = 0


def _stock(
    put_in_progress: Put, files: Mapping[str, Incoming], before: Inventory | None, algorithm: str
) -> _Stock:
    """Store the contents that the object does not have, each once. Those that it has are not read again, where their
    digest was given."""
    stock = _Stock()
    have = before.manifest.keys() if before else frozenset[str]()
    to_read: list[Incoming] = []
    to_read_digests: set[str] = set()
    for file in files.values():
        value = file.sums.get(algorithm)
        if value is None or (value not in have and value not in to_read_digests):
            to_read.append(file)
            to_read_digests.update([value] if value else [])
        else:
            with sources.opened(file):
                stock.digests[file.path] = value
    _compare_recorded(files, stock.digests, before)
    for file, result in zip(to_read, put_in_progress.keep(to_read, have), strict=True):
        stock.digests[file.path] = result.digest
        if not result.added:
            continue
        stock.added_bytes += 0 if result.digest in stock.added else result.size_bytes
        stock.added.setdefault(result.digest, {}).update(result.sums)
    return stock


def _compare_recorded(
    files: Mapping[str, Incoming], digests: Mapping[str, str], before: Inventory | None
) -> None:
    """Raise NotAdmitted where the given digests of content that is not read again contradict the recorded ones."""
    if before is None or not any(len(files[path].sums) > 1 for path in digests):
        return
    by_content = inventories.sums_by_content(before)
    for path, value in digests.items():
        if value in before.manifest:
            sources.compare_sums(files[path], by_content[before.manifest[value][0]])


def _earlier_result(size_of: Callable[[str], int | None], inventory: Inventory, number: int) -> Stored:
    """Return what the put of the same key returned when it made this version."""
    start = f"{inventory.name(number)}/"
    added = (p for places in inventory.manifest.values() for p in places if p.startswith(start))
    return Stored(
        version=number,
        changed=True,
        files=len(inventories.state(inventory, number)),
        added_bytes=sum(size_of(p) or 0 for p in added),
    )
