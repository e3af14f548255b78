"""A package on disk: whole under its name or not there.

    access/TOKEN/NAME.zip        the package
    access/TOKEN/package.json    what it is, and when it expires; written before the package gets its name
    access/TOKEN/.NUMBER.part    one that is being written, by the attempt with that fence

The folder ``access`` cannot be listed by others: who may read a package is who has its token.
"""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from spinney.apps.ingest.files import copies

TOLD = "package.json"
_FOLDER_MODE = 0o711


class Package(BaseModel):
    """What stands in a token's folder."""

    model_config = ConfigDict(frozen=True)

    file: str
    size_bytes: int
    files: int
    content_bytes: int
    """Of the version's files."""
    made: AwareDatetime
    expires: AwareDatetime
    seconds: float
    """That making it took."""


def standing(folder: Path, now: datetime) -> Package | None:
    """The package in a token's folder, when it is whole and has not expired."""
    package = told(folder)
    if package is None or package.expires <= now or not (folder / package.file).is_file():
        return None
    return package


def told(folder: Path) -> Package | None:
    """What a token's folder says of its package, whether that is there (still, already) or not."""
    try:
        return Package.model_validate_json((folder / TOLD).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None


def make(folder: Path, fence: int, write: Callable[[BinaryIO], Package]) -> Package:
    """Have a package written, and give it its name. Raises what ``write`` raises, and OSError; then nothing is left."""
    folder.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    _clear(folder, fence)
    part = folder / f".{fence}.part"
    try:
        with part.open("wb") as out:
            package = write(out)
            out.flush()
            os.fsync(out.fileno())
            package = package.model_copy(update={"size_bytes": os.fstat(out.fileno()).st_size})
        copies.write_durably(folder / TOLD, orjson.dumps(package.model_dump(mode="json")).decode())
        part.replace(folder / package.file)
        copies.sync_folder(folder)
        copies.sync_folder(folder.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        _drop(folder)
        raise
    return package


def _clear(folder: Path, fence: int) -> None:
    """What earlier attempts left; a later one's is its own."""
    for part in folder.glob(".*.part"):
        number = part.name[1:].partition(".")[0]
        if number.isdecimal() and int(number) < fence:
            part.unlink(missing_ok=True)


def _drop(folder: Path) -> None:
    """The folder, if that is all there is."""
    try:
        folder.rmdir()
    except OSError:
        return  # another attempt's, or a package that stands
