"""Objects of a batch that had all of what came already, so that no version was made: a file each in the batch's folder.

The inventory knows which batch brought which version, and such an object has brought none. The file is written before
the object's stage is recorded, and goes when the object, sent back, brings a version after all.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from spinney.apps.ingest.files import copies

FOLDER = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The version that stands."""

    ark: str
    version: int
    local_ids: Sequence[str] = ()


def keep(folder: Path, jid: str, found: Standing) -> None:
    """Note it in the folder of the batch; durable when it returns."""
    (folder / FOLDER).mkdir(exist_ok=True)
    copies.write_durably(folder / FOLDER / jid, orjson.dumps(asdict(found)).decode())
    copies.sync_folder(folder)


def forget(folder: Path, jid: str) -> None:
    """It has brought a version."""
    (folder / FOLDER / jid).unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Standing]:
    """All of a batch, by jid."""
    if not (folder / FOLDER).is_dir():
        return {}
    notes = (
        path for path in (folder / FOLDER).iterdir() if not path.suffix
    )  # one is being written: NAME.new
    return {path.name: Standing(**orjson.loads(path.read_bytes())) for path in notes}
