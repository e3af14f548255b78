"""The files of a stored version as a manifest: where each is, its digest, size, date, name and media type.

It is an object manifest, as depositors write it: what reads these reads it, ``ingest check`` among them, and whoever
can reach its URLs can fetch each file, compare it, or hand the object in elsewhere. Written when it is asked for, from
the archive; media types are those of the inventory.
"""

import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from spinney.apps.ingest import manifests
from spinney.apps.ingest.access.bags import Version as Bagged
from spinney.apps.ingest.access.file_content import PIECE_BYTES, Content, reading, stored
from spinney.apps.ingest.access.requests import recorded
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import File, Object, Version, open_inventory
from spinney.apps.ingest.manifests import PayloadKind, Row
from spinney.apps.ingest.storage import Storage, StoredFile

if TYPE_CHECKING:
    from spinney.operations import Control

PREFERRED = "sha256"
"""The digest that is told where it is on record; else the one by which the archive goes."""
_SPOOLED_BYTES = 4 << 20

Locate = Callable[[str, int, str], str]
"""Tells the URL of a file by ARK, version and path."""


def require_may(control: "Control", settings: Settings, ark: str) -> Object:
    """What the inventory has of an object in sight. Raises NotAdmitted, Refused."""
    return recorded(settings, arks.canonical(ark), control.rights.within.collections)


def manifest(
    control: "Control",
    settings: Settings,
    ark: str,
    *,
    version: int | None,
    json: bool,
    locate: Locate | None,
) -> Content:
    """The manifest of a version (None: of the newest). ``json``: as JSON Lines, which can tell any name. ``locate``
    None: URLs are those of the storage itself, for who works there.

    Raises NotAdmitted for what is no ARK, is damaged, or cannot be told so; Refused for what is not there, out of sight
    or in a storage that does not answer, StoreUnavailable for a storage that is not there now.
    """
    found = require_may(control, settings, ark)
    chosen, storage = stored(settings, found, version)
    with open_inventory(settings.inventory) as inventory:
        known = {file.path: file for file in inventory.files(found.ark, chosen.version)}

    def rows() -> Iterator[Row]:
        with reading(chosen):
            for file in storage.files(found.ark, chosen.version):
                yield _row(file, chosen, known.get(file.path), _url(storage, found.ark, chosen, file, locate))

    out = cast(BinaryIO, tempfile.SpooledTemporaryFile(_SPOOLED_BYTES))  # noqa: SIM115 - closed when it has been read
    (manifests.write_json if json else manifests.write)(rows(), PayloadKind.OBJECT_MANIFEST, out)
    size = out.tell()
    out.seek(0)
    name = Bagged(ark=found.ark, number=chosen.version, created=chosen.created).name
    return Content(path=f"{name}.{'jsonl' if json else 'checkm'}", size_bytes=size, pieces=_pieces(out))


def _row(file: StoredFile, version: Version, known: File | None, url: str) -> Row:
    value = file.sums.get(PREFERRED)
    return Row(
        url=url,
        name=file.path,
        digest=file.digest if value is None else Digest(PREFERRED, value),
        size_bytes=file.size_bytes,
        modified=(known and known.modified) or version.created.isoformat(),
        mime_type=None if known is None else known.mime_type,
    )


def _url(storage: Storage, ark: str, version: Version, file: StoredFile, locate: Locate | None) -> str:
    return storage.url(ark, file) if locate is None else locate(ark, version.version, file.path)


def _pieces(out: BinaryIO) -> Iterator[bytes]:
    with out:
        while piece := out.read(PIECE_BYTES):
            yield piece
