"""The files of a stored version as a manifest: the URL, digest, size, date, name and media type of each.

It is an object manifest, as depositors write it, readable by the same tools (``ingest check`` among them). Anyone who
can reach its URLs can fetch each file, compare it, or deposit the object elsewhere. It is written on request, from the
archive; media types are those of the inventory.
"""

import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from spinney.apps.ingest import manifests
from spinney.apps.ingest.access import bags
from spinney.apps.ingest.access.file_content import PIECE_BYTES, Content, reading, stored
from spinney.apps.ingest.access.requests import visible_object
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.inventory import File, Version, open_inventory
from spinney.apps.ingest.manifests import PayloadKind, Row
from spinney.apps.ingest.storage import StoredFile
from spinney.files.digests import Digest

if TYPE_CHECKING:
    from spinney.operations import Control

PREFERRED = "sha256"
"""The digest in the manifest where it is recorded; otherwise that of the archive."""
_SPOOLED_BYTES = 4 << 20

Locate = Callable[[str, int, str], str]
"""Returns the URL of a file by ARK, version and path."""


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
    with open_inventory(settings.inventory) as inventory:
        recorded_files = {file.path: file for file in inventory.files(object_.ark, chosen.version)}

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
    return Content(path=f"{name}.{'jsonl' if json else 'checkm'}", size_bytes=size, pieces=_pieces(out))


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


def _pieces(out: BinaryIO) -> Iterator[bytes]:
    with out:
        while piece := out.read(PIECE_BYTES):
            yield piece
