"""Objects of a batch whose content was stored already, so that no version was made: a file each in the batch's folder.

The inventory records which batch made which version, and such an object has made none. The file is written before the
object's stage is recorded, and is removed when the object is requeued and makes a version after all.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from spinney.files import copies

FOLDER = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedVersion:
    """The existing version of an unchanged object."""

    ark: str
    version: int
    local_ids: Sequence[str] = ()


def keep(folder: Path, jid: str, version: UnchangedVersion) -> None:
    """Write the file of an unchanged object into the folder of the batch; durable on return."""
    (folder / FOLDER).mkdir(exist_ok=True)
    copies.write_durably(folder / FOLDER / jid, orjson.dumps(asdict(version)).decode())
    copies.sync_folder(folder)


def forget(folder: Path, jid: str) -> None:
    """Remove the file of an object that has made a version."""
    (folder / FOLDER / jid).unlink(missing_ok=True)


def read(folder: Path) -> dict[str, UnchangedVersion]:
    """Return all unchanged objects of a batch, by jid; empty where there are none. Files that are being
    written meanwhile have another name, and are left out."""
    try:
        paths = list((folder / FOLDER).iterdir())  # glob would pass over a folder that cannot be read
    except FileNotFoundError:
        return {}
    # Without files that are being written: NAME.new.
    notes = (path for path in paths if not path.suffix)
    return {path.name: UnchangedVersion(**orjson.loads(path.read_bytes())) for path in notes}
