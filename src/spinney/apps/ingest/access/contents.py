"""One file of a stored version, and the manifest of all its files, read while they are sent.

A file is compared with its digests. Its last piece is sent only when the whole file matched them: a damaged file is
never received whole, and one that is no longer than a piece is refused before anything is sent.

The manifest has the URL, digest, size, date, name and media type of each file. It is an object manifest, as depositors
write it, readable by the same tools (``ingest check`` among them). Anyone who can reach its URLs can fetch each file,
compare it, or deposit the object elsewhere. It is written on request, from the archive; media types are those of the
inventory.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

from spinney.apps.ingest import manifests
from spinney.apps.ingest.access import bags
from spinney.apps.ingest.access.bags import Checked
from spinney.apps.ingest.access.requests import version_of, visible_object
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.inventory import File, Object, Version
from spinney.apps.ingest.manifests import PayloadKind, Row
from spinney.apps.ingest.storage import NotThere, Storage, StoredFile
from spinney.errors import Refused, StoreUnavailable
from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted, shown
from spinney.operations import Role

if TYPE_CHECKING:
    from spinney.operations import Control

PIECE_BYTES = 1 << 20
PREFERRED = "sha256"
"""The digest in the manifest where it is recorded; otherwise that of the archive."""
_SPOOLED_BYTES = 4 << 20

Locate = Callable[[str, int, str], str]
"""Returns the URL of a file by ARK, version and path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a file, which can be read once."""

    path: str
    size_bytes: int
    pieces: Iterator[bytes]
    """Raises Refused for content that is damaged or cannot be read any further."""


def stored(settings: Settings, object_: Object, number: int | None) -> tuple[Version, Storage]:
    """Return a version of an object (None: the newest), and the storage that has it. Raises Refused where there is no
    such version or the storage does not answer, StoreUnavailable where the storage is not there now."""
    chosen = version_of(object_, number)
    try:
        with reading(chosen):
            return chosen, open_resources.storage(settings, chosen.storage)
    except NotThere:
        raise StoreUnavailable(
            f"the storage {chosen.storage!r} is not there now; mount its disk, or make its bucket accessible"
        ) from None


@contextmanager
def reading(version: Version) -> Iterator[None]:
    """Raise Refused where the storage of a version does not answer."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise Refused(
            f"the storage {version.storage!r} cannot be read ({why}); repair it, and try again"
        ) from error


def require_may(control: "Control", settings: Settings, ark: str) -> Object:
    """Return the object's entry in the inventory, if the person may fetch its files. Raises NotAdmitted for an invalid
    ARK, Refused for an object that does not exist or is not visible, Forbidden."""
    control.require(Role.SUBMITTER, "fetch files")
    return visible_object(control, settings, ark)


def content(
    control: "Control", settings: Settings, ark: str, path: str, *, version: int | None = None
) -> Content:
    """Return a file of a version (None: of the newest).

    Raises what ``require_may`` raises; Refused for a file that does not exist or is damaged, StoreUnavailable for a
    storage that is not there now. Damage is entered into the inventory, as an audit does.
    """
    object_ = require_may(control, settings, ark)
    chosen, storage = stored(settings, object_, version)
    with _recording_damage(settings, object_, chosen):
        file = _stored_file(storage, object_.ark, chosen, path)
    pieces = _pieces(settings, storage, object_, chosen, file)
    first = next(pieces)
    return Content(path=path, size_bytes=file.size_bytes, pieces=chain([first], pieces))


def _stored_file(storage: Storage, ark: str, version: Version, path: str) -> StoredFile:
    """Return the file with this path. Raises Refused where the version has none."""
    for file in storage.files(ark, version.version):
        if file.path == path:
            return file
    raise Refused(
        f"{ark} has no file '{shown(path[:200])}' in version {version.version}; 'spinney ingest find --file-name NAME' "
        f"shows the paths of files"
    )


def _pieces(
    settings: Settings, storage: Storage, object_: Object, version: Version, file: StoredFile
) -> Iterator[bytes]:
    """Yield the pieces, at least one; the last only after the whole file has been compared."""
    with (
        _recording_damage(settings, object_, version),
        storage.opened(object_.ark, file) as opened,
    ):
        checked = Checked(opened, file)
        held = checked.read(PIECE_BYTES)
        while piece := checked.read(PIECE_BYTES):
            yield held
            held = piece
        checked.finish()
        yield held


@contextmanager
def _recording_damage(settings: Settings, object_: Object, version: Version) -> Iterator[None]:
    """Raise Refused for damage, which is entered into the inventory, and where the storage does not answer."""
    try:
        with reading(version):
            yield
    except NotAdmitted as error:
        inventory = open_resources.inventory(settings)
        inventory.audited(object_.ark, datetime.now(UTC), version.files, version.size_bytes, [str(error)])
        raise Refused(f"{object_.ark} is damaged: {error}") from error


def manifest(
    control: "Control",
    settings: Settings,
    ark: str,
    *,
    version: int | None,
    json: bool,
    locate: Locate | None,
) -> Content:
    """Return the manifest of a version (None: of the newest). ``json``: as JSON Lines, which can represent any name.
    ``locate`` None: URLs are those of the storage itself, for people with access to it.

    Raises NotAdmitted for an invalid ARK, a damaged object, or names that the format cannot represent; Refused for an
    object that does not exist, is not visible, or whose storage does not answer; StoreUnavailable for a storage that
    is not there now.
    """
    object_ = visible_object(control, settings, ark)
    chosen, storage = stored(settings, object_, version)
    files = open_resources.inventory(settings).files(object_.ark, chosen.version)
    recorded_files = {file.path: file for file in files}

    def rows() -> Iterator[Row]:
        with reading(chosen):
            for file in storage.files(object_.ark, chosen.version):
                if locate is None:
                    url = storage.url(object_.ark, file)
                else:
                    url = locate(object_.ark, chosen.version, file.path)
                yield _row(file, chosen, recorded_files.get(file.path), url)

    out = cast(BinaryIO, tempfile.SpooledTemporaryFile(_SPOOLED_BYTES))  # noqa: SIM115 - closed when it has been read
    (manifests.write_json if json else manifests.write)(rows(), PayloadKind.OBJECT_MANIFEST, out)
    size = out.tell()
    out.seek(0)
    name = bags.name_of(object_.ark, chosen.version)
    return Content(path=f"{name}.{'jsonl' if json else 'checkm'}", size_bytes=size, pieces=_spooled(out))


def _row(file: StoredFile, version: Version, recorded: File | None, url: str) -> Row:
    """Return the row of a file; what the archive does not know comes from the inventory."""
    value = file.sums.get(PREFERRED)
    return Row(
        url=url,
        name=file.path,
        digest=file.digest if value is None else Digest(PREFERRED, value),
        size_bytes=file.size_bytes,
        modified=(recorded and recorded.modified) or version.created.isoformat(),
        mime_type=None if recorded is None else recorded.mime_type,
    )


def _spooled(out: BinaryIO) -> Iterator[bytes]:
    with out:
        while piece := out.read(PIECE_BYTES):
            yield piece
