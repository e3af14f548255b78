"""Fixity: reads a whole object again, and compares it with its inventories."""

from collections.abc import Callable, Iterator
from itertools import chain, islice

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader
from spinney.apps.ingest.storage.layout import OBJECT_DECLARATION, OBJECT_DECLARATION_1_0, OBJECT_DECLARED
from spinney.apps.ingest.storage.model import Damaged, Verified
from spinney.apps.ingest.storage.object_inventory import NAME, Inventory
from spinney.apps.ingest.storage.place import Loaded, Place
from spinney.files.digests import Sums
from spinney.files.paths import NotAdmitted, shown

FAULTS_MAX = 1000
"""How many faults of an object are listed; the others are counted."""


def verify(place: Place, root: str, object_id: str, between: Callable[[int], None]) -> Verified:
    """Read all files of an object again. Raises OSError when the place itself fails. ``between`` is called with the
    size of each piece that was read."""
    sizes: list[int] = []
    try:
        loaded = object_reader.require(place.read, root, object_id)
        faults = chain(
            _documents(place, root, loaded),
            _contents(place, root, loaded.inventory, between, sizes),
            _stray_files(place, root, loaded.inventory),
        )
        listed = tuple(islice(faults, FAULTS_MAX))
        more = sum(1 for _ in faults)
    except NotAdmitted as error:  # it is damaged or not there, or something else is in its place
        return Verified(files=0, bytes=0, faults=(str(error),))
    if more:
        listed = (*listed, f"and {more} more faults")
    return Verified(files=len(sizes), bytes=sum(sizes), faults=listed)


def _documents(place: Place, root: str, loaded: Loaded) -> Iterator[str]:
    """Yield the faults of the sidecar of the object's newest inventory, of its declaration and of its inventories."""
    inventory = loaded.inventory
    if not loaded.has_sidecar:
        yield f"the sidecar of {shown(inventory.id)} is behind its inventory; the next put of the object replaces it"
    declaration = place.read(f"{root}/{OBJECT_DECLARATION}")
    if declaration is None:
        # An object of OCFL 1.0 is declared in another file, whose content is not checked.
        if place.read(f"{root}/{OBJECT_DECLARATION_1_0}") is None:
            yield f"{shown(inventory.id)} has no {OBJECT_DECLARATION}, so other programs find no object; restore it"
    elif declaration.raw != OBJECT_DECLARED:
        yield f"{OBJECT_DECLARATION} of {shown(inventory.id)} differs from what OCFL 1.1 requires; write it again"
    for number in range(1, inventory.head + 1):
        try:
            inventories.state(inventory, number)
        except Damaged as error:
            yield str(error)
        yield from _version_documents(place, root, inventory, number, loaded.document.raw)


def _version_documents(
    place: Place, root: str, inventory: Inventory, number: int, newest: bytes
) -> Iterator[str]:
    """Yield the faults of the inventory in a version's folder: that of the newest version must equal the
    root's, an older one its sidecar."""
    folder = inventory.name(number)
    document = place.read(f"{root}/{folder}/{NAME}")
    if document is None:
        return  # allowed: a version SHOULD have one (OCFL 1.1 section 3.7, W010)
    if number == inventory.head and document.raw != newest:
        yield f"{folder}/{NAME} of {shown(inventory.id)} differs from the root's; restore it from a copy"
        return
    try:
        version_inventory = inventories.parse(document.raw, inventory.id)
        if inventories.sum_of(document.raw, version_inventory.algorithm) != object_reader.sidecar_digest(
            place.read, f"{root}/{folder}", version_inventory.algorithm
        ):
            yield f"{folder}/{NAME} of {shown(inventory.id)} has another digest than its sidecar says; restore both"
    except Damaged as error:
        yield f"{folder}: {error}"


def _contents(
    place: Place, root: str, inventory: Inventory, between: Callable[[int], None], sizes: list[int]
) -> Iterator[str]:
    """Read all contents, add the size of each to ``sizes``, and yield the differences from the recorded digests."""
    for path, recorded in inventories.sums_by_content(inventory).items():
        sums = Sums(recorded)
        try:
            with place.opened(f"{root}/{path}") as file:
                sizes.append(sums.read(file, between))
        except NotAdmitted as error:
            yield f"{path} of {shown(inventory.id)} cannot be read ({error}); restore it from a copy"
            continue
        for algorithm, value in sums.values().items():
            if value != recorded[algorithm]:
                yield (
                    f"{path} of {shown(inventory.id)} has the {algorithm} {value} instead of "
                    f"{recorded[algorithm]}; restore it from a copy"
                )


def _stray_files(place: Place, root: str, inventory: Inventory) -> Iterator[str]:
    """Yield a fault for each file that no inventory names (OCFL 1.1 sections 3.3 and 3.10)."""
    listed = {p for places in inventory.manifest.values() for p in places}
    # An interrupted put, or one in progress, may have written the next version, which no reader reads.
    unfinished = f"{inventory.name(inventory.head + 1)}/"
    for path in place.walk(root):
        if path not in listed and not path.startswith(unfinished) and not _is_administrative(path, inventory):
            yield f"'{shown(path)}' lies in {shown(inventory.id)} and no inventory names it; remove it"


def _is_administrative(path: str, inventory: Inventory) -> bool:
    """Return whether a file that no manifest names may be where it is, by OCFL."""
    first, _, rest = path.partition("/")
    if first in ("logs", "extensions") and rest:
        return True
    if first in inventory.blocks:
        # Files in a version beside its content folder are to be ignored: OCFL 1.1 section 3.3.1, E022.
        return not rest.startswith(f"{inventory.content}/") if "/" in rest else rest.startswith(NAME)
    return not rest and path.startswith((NAME, "0=ocfl_object_"))
