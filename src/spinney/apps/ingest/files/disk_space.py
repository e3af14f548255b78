"""Disks without room, told by their path and by what is missing."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MEND = "make room, and it goes on by itself"


class NoRoom(OSError):
    """There is no room; the message names the place, and how much is missing."""


def is_full(error: BaseException | None) -> bool:
    """Whether a call failed because there was no room."""
    return isinstance(error, NoRoom) or (isinstance(error, OSError) and error.errno in _FULL)


def no_room(folder: Path, needed_bytes: int = 0, mend: str = _MEND) -> NoRoom:
    """What is to be raised where a folder has no room. ``needed_bytes``: as far as it is known."""
    free = free_bytes(folder)
    if needed_bytes > free:
        missing = needed_bytes - free
        return NoRoom(
            f"{folder} has no room: {needed_bytes:,} bytes are needed and {free:,} are free, {missing:,} are missing; "
            f"{mend}"
        )
    return NoRoom(
        f"{folder} takes no more, with {free:,} bytes free on its disk; {mend} (or raise its quota)"
    )


def require(folder: Path, needed_bytes: int) -> None:
    """Raise NoRoom unless there is so much room."""
    if needed_bytes > free_bytes(folder):
        raise no_room(folder, needed_bytes)


@contextmanager
def naming_the_folder(folder: Path, needed_bytes: int = 0) -> Iterator[None]:
    """Raise NoRoom for what fails because this folder has no room."""
    try:
        yield
    except OSError as error:
        if not is_full(error) or isinstance(error, NoRoom):
            raise
        raise no_room(folder, needed_bytes) from error


def free_bytes(folder: Path) -> int:
    """What the service may still write on the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
