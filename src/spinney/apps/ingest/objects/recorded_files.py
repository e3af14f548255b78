"""The versions and files that the inventory has, compared with those in a storage, and with those of a deposit."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spinney.apps.ingest.inventory import File
from spinney.apps.ingest.storage import Incoming, Storage
from spinney.files.digests import Sums

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Object
    from spinney.apps.ingest.inventory.inventory import Inventory


def differences(storage: Storage, inventory: "Inventory", object_: "Object") -> Iterator[str]:
    """Yield a fault for each recorded version that the storage lacks, as when its disk was restored from an older copy,
    and for each file of the newest version that differs. Raises NotAdmitted for an object that cannot be read."""
    stored = {version.number for version in storage.versions(object_.ark)}
    storage_name = object_.head.storage
    recorded = [version.version for version in object_.versions if version.storage == storage_name]
    for number in recorded:
        if number not in stored:
            yield f"version {number} is in the inventory, and not in the storage; restore the object from a newer copy"
    if recorded[-1] in stored:
        for path in differing_paths(storage, inventory, object_.ark, recorded[-1]):
            yield (
                f"'{path}' of version {recorded[-1]} is another in the storage than in the inventory; restore the "
                f"object from a copy"
            )


def differing_paths(storage: Storage, inventory: "Inventory", ark: str, version: int) -> list[str]:
    """Return the paths of a version, sorted, whose files differ between storage and inventory, or are in one of them
    alone. Digests are compared where the inventory has one by the storage's algorithm."""
    recorded = {file.path: file for file in inventory.files(ark, version)}
    paths = []
    for stored in storage.files(ark, version):
        file, digest = recorded.pop(stored.path, None), stored.digest
        if file is None or (file.size_bytes, file.digests.get(digest.algorithm, digest.value)) != (
            stored.size_bytes,
            digest.value,
        ):
            paths.append(stored.path)
    return sorted([*paths, *recorded])


def is_content_of(files: Iterable[Incoming], recorded: Iterable[File], *, merge: bool) -> bool:
    """Return whether these files make a recorded version, alone or (``merge``) laid over the version before it."""
    by_path = {file.path: file for file in recorded}
    for file in files:
        same = by_path.pop(file.path, None)
        if same is None or not _is_same(file, same):
            return False
    return merge or not by_path


def _is_same(file: Incoming, recorded: File) -> bool:
    digests = file.sums
    if isinstance(file.source, bytes):
        sums = Sums(recorded.digests)
        sums.update(file.source)
        digests = sums.values()
    common = digests.keys() & recorded.digests.keys()
    is_equal = all(digests[algorithm] == recorded.digests[algorithm] for algorithm in common)
    return bool(common) and is_equal and file.size_bytes == recorded.size_bytes
