"""Checks whether a disk has space and can be written, and errors that name the folder and the missing bytes."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REMEDY = "make room, and it continues by itself"


class NoRoom(OSError):
    """There is not enough disk space; the message names the folder, and how much is missing."""


def is_full(error: BaseException | None) -> bool:
    """Return whether a call failed because a disk was full."""
    return isinstance(error, NoRoom) or (isinstance(error, OSError) and error.errno in _FULL)


def no_room(folder: Path, needed_bytes: int = 0, remedy: str = _REMEDY) -> NoRoom:
    """Return the error for a folder without space. ``needed_bytes``: as far as it is known."""
    free = free_bytes(folder)
    if needed_bytes > free:
        missing = needed_bytes - free
        return NoRoom(
            f"{folder} has no room: {needed_bytes:,} bytes are needed and {free:,} are free, {missing:,} are missing; "
            f"{remedy}"
        )
    return NoRoom(f"{folder} is full, with {free:,} bytes free on its disk; {remedy} (or raise its quota)")


def require(folder: Path, needed_bytes: int) -> None:
    """Raise NoRoom unless there is so much space."""
    if needed_bytes > free_bytes(folder):
        raise no_room(folder, needed_bytes)


@contextmanager
def naming_the_folder(folder: Path, needed_bytes: int = 0) -> Iterator[None]:
    """Raise NoRoom for an error of the block that means that the disk of this folder is full."""
    try:
        yield
    except OSError as error:
        if not is_full(error) or isinstance(error, NoRoom):
            raise
        raise no_room(folder, needed_bytes) from error


def is_read_only(folder: Path) -> bool:
    """Return whether the file system of a folder is read-only, as a snapshot, a backup, or a disk with errors is; False
    when the folder cannot be reached."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def free_bytes(folder: Path) -> int:
    """Return the bytes that the service may still write on the disk of a folder."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize
