"""Reading an object: its newest inventory whatever a writer is doing, its versions, files and contents."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import relative, shown
from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage.contract import Damaged, NoSuchObject, StoredFile
from spinney.apps.ingest.storage.object_inventory import NAME, Inventory
from spinney.apps.ingest.storage.place import Loaded, Place


def load(place: Place, root: str, object_id: str) -> Loaded | None:
    """The newest inventory of the object at ``root``; None when there is no object. Raises Damaged.

    A put replaces the inventory first and its sidecar after. Who reads in between, or reads the one before
    and the other after, finds the digest in the version's own sidecar, which was there before either.
    """
    document = place.read(f"{root}/{NAME}")
    if document is None:
        return None
    found = inventories.parse(document.raw, object_id)
    value = inventories.sum_of(document.raw, found.algorithm)
    settled = value == told(place, root, found.algorithm)
    if not settled and value != told(place, f"{root}/{found.name(found.head)}", found.algorithm):
        raise Damaged(
            f"the inventory of {shown(object_id)} has another {found.algorithm} than its sidecar tells; "
            f"restore both from a copy"
        )
    return Loaded(inventory=found, document=document, settled=settled)


def told(place: Place, folder: str, algorithm: str) -> str | None:
    """The digest that an inventory's sidecar tells."""
    sidecar = place.read(f"{folder}/{NAME}.{algorithm}")
    parts = sidecar.raw.split() if sidecar else []
    return parts[0].decode("ascii", "replace").lower() if len(parts) == 2 else None


def require(place: Place, root: str, object_id: str) -> Inventory:
    """The same, of an object that has to be there. Raises NoSuchObject, Damaged."""
    loaded = load(place, root, object_id)
    if loaded is None:
        raise NoSuchObject(f"no object {shown(object_id)} is stored here; look up its id")
    return loaded.inventory


def files(place: Place, root: str, object_id: str, version: int | None) -> Iterator[StoredFile]:
    """The files of a version, by path. Raises NoSuchObject, Damaged."""
    found = require(place, root, object_id)
    by_content = inventories.sums_by_content(found)
    size_of = place.sizes(root)
    for path, value in sorted(inventories.state(found, version).items()):
        content = found.manifest[value][0]
        size = size_of(content)
        if size is None:
            raise Damaged(
                f"the content of '{shown(path)}' in {shown(object_id)} is missing; restore {content} from a copy"
            )
        yield StoredFile(
            path=path,
            size_bytes=size,
            digest=Digest(found.algorithm, value),
            content_path=content,
            sums=by_content[content],
        )


@contextmanager
def opened(
    place: Place, root: str, object_id: str, path: str | StoredFile, version: int | None
) -> Iterator[BinaryIO]:
    """The content of one file. Raises NoSuchObject, Damaged."""
    content = (
        path.content_path if isinstance(path, StoredFile) else _content(place, root, object_id, path, version)
    )
    with place.opened(f"{root}/{relative(content)}") as file:
        yield file


def _content(place: Place, root: str, object_id: str, path: str, version: int | None) -> str:
    found = require(place, root, object_id)
    value = inventories.state(found, version).get(path)
    if value is None:
        raise NoSuchObject(f"{shown(object_id)} has no file '{shown(path)}' in that version; list its files")
    return found.manifest[value][0]
