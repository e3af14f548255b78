"""Read pieces of files in a job's folder for a request from another host.

The path comes from outside, so each of its parts is opened by itself, starting at the folder: no part leads up, no link
is followed, and nothing but plain files and directories is opened."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.model.errors import NoSuch, Refused
from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, DirectoryEntry, Fetch, FetchResult
from spinney.model.values.paths import job_folder

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""With O_NONBLOCK, opening a pipe does not wait; it is refused afterwards because it is no plain file."""


def read(root: Path, fetch: Fetch) -> FetchResult:
    """Return the answer to a request for a file or a list of names. It never raises: the result has the error."""
    try:
        with _opened(root, _steps(fetch.job_id, fetch.path)) as fd:
            return _names(fd, fetch.start) if fetch.length == 0 else _piece(fd, fetch)
    except (_NoPath, OSError) as error:
        return FetchResult(error=_why(error))


def open_file(root: Path, job_id: int, path: str) -> int:
    """Return a descriptor of a plain file in a job's folder, for the caller to close.

    Raises NoSuch (the file does not exist), Refused (it is no plain file, or cannot be read).
    """
    try:
        with _opened(root, _steps(job_id, path)) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _NoPath("is no plain file")
            return os.dup(fd)
    except (_NoPath, OSError) as error:
        why = _why(error)
        missing = NoSuch if why == MISSING else Refused
        raise missing(
            f"{path!r} in the folder of job {job_id} {why}; 'spinney files {job_id}' lists what there is"
        ) from None


class _NoPath(Exception):
    """The path cannot be that of a file in a job's folder; the message is the end of a sentence."""


def _steps(job_id: int, path: str) -> list[str]:
    steps = [] if not path else path.split("/")
    if any(step in ("", ".", "..") or "\0" in step for step in steps):
        raise _NoPath("is no path within a job's folder")
    return [*job_folder(job_id).split("/"), *steps]


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return MISSING
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "leads through a link, and links are not followed"
        return f"cannot be read there ({error.strerror or error})"
    return str(error)


@contextmanager
def _opened(root: Path, steps: list[str]) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root itself may be a link
        stack.callback(os.close, fd)
        for step in steps:
            fd = os.open(step, _FLAGS, dir_fd=fd)
            stack.callback(os.close, fd)
        yield fd


def _piece(fd: int, fetch: Fetch) -> FetchResult:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return FetchResult(error="is no plain file")
    return FetchResult(data=os.pread(fd, min(fetch.length, PIECE_BYTES), max(0, fetch.start)))


def _names(fd: int, start: int) -> FetchResult:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        return FetchResult(error="is no folder")
    with os.scandir(fd) as entries:
        every = sorted(entry.name for entry in entries)
    return FetchResult(
        names=tuple(_entry(fd, name) for name in every[max(0, start) : max(0, start) + NAMES_MOST])
    )


def _entry(fd: int, name: str) -> DirectoryEntry:
    text = os.fsencode(name).decode("utf-8", "backslashreplace")  # names are bytes, and answers are text
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:  # deleted meanwhile; it is still counted for the page
        return DirectoryEntry(text, "other", 0)
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    return DirectoryEntry(text, kind, status.st_size)
