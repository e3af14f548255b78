"""Fixity: an object read again from end to end, and held against what its inventories say."""

from collections.abc import Callable, Iterator

from spinney.apps.ingest.files.digests import Sums
from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader
from spinney.apps.ingest.storage.contract import Damaged, NoSuchObject, Verified
from spinney.apps.ingest.storage.layout import OBJECT_DECLARATION, OBJECT_DECLARED
from spinney.apps.ingest.storage.object_inventory import NAME, Inventory
from spinney.apps.ingest.storage.place import Place

CHUNK_BYTES = 1 << 20
FAULTS_MAX = 1000


def verify(place: Place, root: str, object_id: str, between: Callable[[int], None]) -> Verified:
    """Read everything again. Raises NoSuchObject, and OSError when the place itself fails."""
    faults = _Faults()
    try:
        loaded = object_reader.load(place, root, object_id)
    except Damaged as error:
        return Verified(files=0, bytes=0, faults=(str(error),))
    if loaded is None:
        raise NoSuchObject(f"no object {shown(object_id)} is stored here; look up its id")
    found = loaded.inventory
    if not loaded.settled:
        faults.add(
            f"the sidecar of {shown(object_id)} is behind its inventory; the next put of the object mends it"
        )
    for fault in _documents(place, root, found, loaded.document.raw):
        faults.add(fault)
    files, size = _contents(place, root, found, between, faults)
    for fault in _astray(place, root, found):
        faults.add(fault)
    return Verified(files=files, bytes=size, faults=faults.told())


class _Faults:
    def __init__(self) -> None:
        self._told: list[str] = []
        self._more = 0

    def add(self, fault: str) -> None:
        if len(self._told) < FAULTS_MAX:
            self._told.append(fault)
        else:
            self._more += 1

    def told(self) -> tuple[str, ...]:
        more = (f"and {self._more} faults more",) if self._more else ()
        return (*self._told, *more)


def _documents(place: Place, root: str, found: Inventory, newest: bytes) -> Iterator[str]:
    declaration = place.read(f"{root}/{OBJECT_DECLARATION}")
    # An object of OCFL 1.0 says so in another file; what it says is that program's affair.
    if declaration is not None and declaration.raw != OBJECT_DECLARED:
        yield f"{OBJECT_DECLARATION} of {shown(found.id)} has another text than OCFL 1.1 gives; write it anew"
    for number in range(1, found.head + 1):
        try:
            inventories.state(found, number)
        except Damaged as error:
            yield str(error)
        yield from _version_documents(place, root, found, number, newest)


def _version_documents(
    place: Place, root: str, found: Inventory, number: int, newest: bytes
) -> Iterator[str]:
    folder = found.name(number)
    document = place.read(f"{root}/{folder}/{NAME}")
    if document is None:
        return  # lawful: a version SHOULD have one (OCFL 1.1 section 3.7, W010)
    if number == found.head and document.raw != newest:
        yield f"{folder}/{NAME} of {shown(found.id)} differs from the root's; restore it from a copy"
        return
    try:
        of_then = inventories.parse(document.raw, found.id)
        if inventories.sum_of(document.raw, of_then.algorithm) != object_reader.told(
            place, f"{root}/{folder}", of_then.algorithm
        ):
            yield f"{folder}/{NAME} of {shown(found.id)} has another digest than its sidecar tells; restore both"
    except Damaged as error:
        yield f"{folder}: {error}"


def _contents(
    place: Place, root: str, found: Inventory, between: Callable[[int], None], faults: _Faults
) -> tuple[int, int]:
    files = size = 0
    for path, promised in inventories.sums_by_content(found).items():
        sums = Sums(promised)
        read = 0
        try:
            with place.opened(f"{root}/{path}") as file:
                while chunk := file.read(CHUNK_BYTES):
                    sums.update(chunk)
                    read += len(chunk)
                    between(len(chunk))
        except NotAdmitted as error:
            faults.add(f"{path} of {shown(found.id)} cannot be read ({error}); restore it from a copy")
            continue
        files, size = files + 1, size + read
        for algorithm, value in sums.values().items():
            if value != promised[algorithm]:
                faults.add(
                    f"{path} of {shown(found.id)} has the {algorithm} {value} and was to have "
                    f"{promised[algorithm]}; restore it from a copy"
                )
    return files, size


def _astray(place: Place, root: str, found: Inventory) -> Iterator[str]:
    known = {p for places in found.manifest.values() for p in places}
    # A put that was cut off, or is under way, may have the next version there: no reader looks into it.
    unfinished = f"{found.name(found.head + 1)}/"
    for path in place.walk(root):
        if path not in known and not path.startswith(unfinished) and not _administrative(path, found):
            yield f"'{shown(path)}' lies in {shown(found.id)} and no inventory names it; remove it"


def _administrative(path: str, found: Inventory) -> bool:
    first, _, rest = path.partition("/")
    if first in ("logs", "extensions") and rest:
        return True
    if first in found.blocks:
        # What lies in a version beside its content folder is to be ignored: OCFL 1.1 section 3.3.1, E022.
        return not rest.startswith(f"{found.content}/") if "/" in rest else rest.startswith(NAME)
    return not rest and path.startswith((NAME, "0=ocfl_object_"))
