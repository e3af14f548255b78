"""Reading an object: its newest inventory, also during a put, its versions, files and contents."""

from collections.abc import Iterator

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage.model import Damaged, NoSuchObject, StoredFile
from spinney.apps.ingest.storage.object_inventory import NAME, Inventory
from spinney.apps.ingest.storage.place import Loaded, Place, Read
from spinney.files.digests import Digest
from spinney.files.paths import shown


def load(read: Read, root: str, object_id: str) -> Loaded | None:
    """Read the newest inventory of the object at ``root``; None when there is no object. Raises Damaged.

    A put replaces the inventory first and its sidecar after. A reader that reads in between, or reads one of them
    before and the other after, finds the digest in the version's own sidecar, which was written before either.
    """
    document = read(f"{root}/{NAME}")
    if document is None:
        return None
    inventory = inventories.parse(document.raw, object_id)
    value = inventories.sum_of(document.raw, inventory.algorithm)
    has_sidecar = value == sidecar_digest(read, root, inventory.algorithm)
    if not has_sidecar and value != sidecar_digest(
        read, f"{root}/{inventory.name(inventory.head)}", inventory.algorithm
    ):
        raise Damaged(
            f"the inventory of {shown(object_id)} has another {inventory.algorithm} than its sidecar says; "
            f"restore both from a copy"
        )
    return Loaded(inventory=inventory, document=document, has_sidecar=has_sidecar)


def sidecar_digest(read: Read, folder: str, algorithm: str) -> str | None:
    """Return the digest in an inventory's sidecar, in lower case; None: there is no sidecar, or no digest in it."""
    sidecar = read(f"{folder}/{NAME}.{algorithm}")
    parts = sidecar.raw.split() if sidecar else []
    return parts[0].decode("ascii", "replace").lower() if len(parts) == 2 else None


def require(read: Read, root: str, object_id: str) -> Loaded:
    """Read the newest inventory of an object that has to exist. Raises NoSuchObject, Damaged."""
    loaded = load(read, root, object_id)
    if loaded is None:
        raise NoSuchObject(f"no object {shown(object_id)} is stored here; look up its id, or restore it")
    return loaded


def files_of(place: Place, root: str, inventory: Inventory, version: int | None) -> Iterator[StoredFile]:
    """Yield the files of a version in this inventory, by path.

    Sizes are looked up in the storage, since an inventory has none. Where a content is stored several times,
    the first place counts. Raises NoSuchObject, and Damaged for a content that is missing.
    """
    by_content = inventories.sums_by_content(inventory)
    size_of = place.sizes(root)
    for path, value in sorted(inventories.state(inventory, version).items()):
        content = inventory.manifest[value][0]
        size = size_of(content)
        if size is None:
            raise Damaged(
                f"the content of '{shown(path)}' in {shown(inventory.id)} is missing; restore {content} from a copy"
            )
        yield StoredFile(
            path=path,
            size_bytes=size,
            digest=Digest(inventory.algorithm, value),
            content_path=content,
            sums=by_content[content],
        )
