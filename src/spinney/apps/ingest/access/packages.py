"""Packages on disk: complete under their name, or absent.

    access/TOKEN/NAME.zip        the package
    access/TOKEN/package.json    its description, with its expiry; written before the package gets its name
    access/TOKEN/.NUMBER.part    a package that is being written by the attempt with that fence

The folder ``access`` cannot be listed by others: whoever has the token may read the package.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from spinney.files import copies

DESCRIPTION = "package.json"
_FOLDER_MODE = 0o711


class Package(BaseModel):
    """The description of a package, in its token's folder."""

    model_config = ConfigDict(frozen=True)

    file: str
    size_bytes: int
    files: int
    content_bytes: int
    """The size of the version's files."""
    made: AwareDatetime
    expires: AwareDatetime
    seconds: float
    """How long it took to make it."""


def valid(folder: Path, now: datetime) -> Package | None:
    """Return the package in a token's folder if it is complete and has not expired, else None."""
    try:
        package = Package.model_validate_json((folder / DESCRIPTION).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None
    return package if package.expires > now and (folder / package.file).is_file() else None


def make(folder: Path, fence: int, write: Callable[[BinaryIO], Package]) -> Package:
    """Have a package written by ``write``, give it its name, and return its description; durable on return.

    ``write`` gets the open part file and returns the description, whose ``size_bytes`` is filled in here.
    ``fence``: that of the attempt, in the name of the part file. The description is written before the
    package gets its name, so that a package with its name has an expiry, too. Raises what ``write`` raises,
    and OSError; nothing of this attempt is left then, except perhaps a description without a package.
    """
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
        copies.write_durably(folder / DESCRIPTION, orjson.dumps(package.model_dump(mode="json")).decode())
        part.replace(folder / package.file)
        copies.sync_folder(folder)
        copies.sync_folder(folder.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        with suppress(OSError):  # it has a part of another attempt, or a complete package
            folder.rmdir()
        raise
    return package


def _clear(folder: Path, fence: int) -> None:
    """Remove the part files of earlier attempts; a later attempt may still be writing its own."""
    for part in folder.glob(".*.part"):
        number = part.name[1:].partition(".")[0]
        if number.isdecimal() and int(number) < fence:
            part.unlink(missing_ok=True)
