"""One file of a stored object, compared with its digests on its way to who asked.

The last piece is given only when all of the file was as its digests say: whoever gets a damaged one does not get all of
it, and one that is no longer than a piece is refused before anything is said of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from spinney.apps.ingest.access.bags import Checked
from spinney.apps.ingest.access.requests import recorded, version_of
from spinney.apps.ingest.config import storage_targets
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import Object, Version, open_inventory
from spinney.apps.ingest.storage import NotThere, Storage, StoredFile
from spinney.errors import Refused, StoreUnavailable
from spinney.operations import Role

if TYPE_CHECKING:
    from spinney.operations import Control

PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file that is to be read once."""

    path: str
    size_bytes: int
    pieces: Iterator[bytes]
    """Raises Refused for what is damaged or cannot be read any further."""


def stored(settings: Settings, found: Object, number: int | None) -> tuple[Version, Storage]:
    """A version of an object (None: the newest), and the storage that has it. Raises Refused where there is no such
    version or the storage does not answer, StoreUnavailable where it is not there now."""
    chosen = version_of(found, number)
    try:
        with reading(chosen):
            return chosen, storage_targets.standing(settings, chosen.storage)
    except NotThere:
        raise StoreUnavailable(
            f"the storage {chosen.storage!r} is not there now; see that its disk is mounted, or its bucket to be had"
        ) from None


@contextmanager
def reading(version: Version) -> Iterator[None]:
    """Raise Refused where the storage of a version does not answer."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise Refused(
            f"the storage {version.storage!r} cannot be read ({why}); see to it, and ask again"
        ) from error


def require_may(control: "Control", settings: Settings, ark: str) -> Object:
    """What the inventory has of an object, of which the person may have files. Raises NotAdmitted for what is no ARK,
    Refused for what is not there or out of sight, Forbidden."""
    control.require(Role.SUBMITTER, "fetch files")
    return recorded(settings, arks.canonical(ark), control.rights.within.collections)


def content(
    control: "Control", settings: Settings, ark: str, path: str, *, version: int | None = None
) -> Content:
    """A file of a version (None: of the newest).

    Raises what ``require_may`` raises; Refused for a file that is not there or is damaged, StoreUnavailable for a
    storage that is not there now. Damage is entered into the inventory, as an audit does it.
    """
    found = require_may(control, settings, ark)
    chosen, storage = stored(settings, found, version)
    with _telling(settings, found, chosen):
        file = _found(storage, found.ark, chosen, path)
    pieces = _pieces(settings, storage, found, chosen, file)
    first = next(pieces)
    return Content(path=path, size_bytes=file.size_bytes, pieces=chain([first], pieces))


def _found(storage: Storage, ark: str, version: Version, path: str) -> StoredFile:
    for file in storage.files(ark, version.version):
        if file.path == path:
            return file
    raise Refused(
        f"{ark} has no file '{shown(path[:200])}' in version {version.version}; 'spinney ingest find --file-name NAME' "
        f"tells the paths of files"
    )


def _pieces(
    settings: Settings, storage: Storage, found: Object, version: Version, file: StoredFile
) -> Iterator[bytes]:
    """At least one; the last when all has been compared."""
    with _telling(settings, found, version), storage.opened(found.ark, file, version.version) as opened:
        checked = Checked(opened, file)
        held = checked.read(PIECE_BYTES)
        while piece := checked.read(PIECE_BYTES):
            yield held
            held = piece
        checked.finish()
        yield held


@contextmanager
def _telling(settings: Settings, found: Object, version: Version) -> Iterator[None]:
    """Makes refusals of damage, which is entered into the inventory, and of what the storage cannot do."""
    try:
        with reading(version):
            yield
    except NotAdmitted as error:
        with open_inventory(settings.inventory) as inventory:
            inventory.audited(found.ark, datetime.now(UTC), version.files, version.size_bytes, [str(error)])
        raise Refused(f"{found.ark} is damaged: {error}") from error
