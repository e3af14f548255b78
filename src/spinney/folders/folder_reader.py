"""Read files and list directories in a job's folder, for a user or a request from another host.

The path comes from outside, so the folder root, the job's folder and each part of the path are opened one
after the other: no part may be ``..``, no link is followed, and only plain files and directories are read. A
check of the path as text, or of where it leads before it is opened, would not do: a stage may put a link into
its folder at any moment."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.files.paths import open_each_part
from spinney.model.errors import NoSuch, Refused
from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, DirectoryEntry, Fetch, FetchResult
from spinney.model.values.paths import job_folder


def read(root: Path, fetch: Fetch) -> FetchResult:
    """Return a piece of a file or, for a ``length`` of 0, a page of a directory's names, by name and from the
    number ``start`` on. It raises nothing: the result has the message of an error, which ends a sentence that
    begins with the path."""
    try:
        with _open_path(root, _components(fetch.job_id, fetch.path)) as fd:
            return _names(fd, fetch.start) if fetch.length == 0 else _piece(fd, fetch)
    except (_PathRefused, OSError) as error:
        return FetchResult(error=_reason(error))


def open_file(root: Path, job_id: int, path: str) -> int:
    """Return an open file descriptor of a plain file in a job's folder; the caller closes it.

    Raises NoSuch if the file does not exist, and Refused if it is no plain file or cannot be read.
    """
    try:
        with _open_path(root, _components(job_id, path)) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _PathRefused("is no plain file")
            return os.dup(fd)
    except (_PathRefused, OSError) as error:
        reason = _reason(error)
        error_type = NoSuch if reason == MISSING else Refused
        raise error_type(
            f"{path!r} in the folder of job {job_id} {reason}; 'spinney files {job_id}' lists what there is"
        ) from None


class _PathRefused(Exception):
    """The path cannot be that of a file in a job's folder. The message ends a sentence that begins with it."""


def _components(job_id: int, path: str) -> list[str]:
    """Return the parts of a path in a job's folder, from the folder root downward."""
    components = [] if not path else path.split("/")
    if any(component in ("", ".", "..") or "\0" in component for component in components):
        raise _PathRefused("is no path within a job's folder")
    return [*job_folder(job_id).split("/"), *components]


def _reason(error: Exception) -> str:
    """Return the end of a sentence that begins with the path."""
    if isinstance(error, FileNotFoundError):
        return MISSING
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "leads through a link, and links are not followed"
        return f"cannot be read there ({error.strerror or error})"
    return str(error)


@contextmanager
def _open_path(root: Path, components: list[str]) -> Iterator[int]:
    """Yield a descriptor of what the components lead to, none of which is a link."""
    fd = open_each_part(root, components)
    try:
        yield fd
    finally:
        os.close(fd)


def _piece(fd: int, fetch: Fetch) -> FetchResult:
    """Return at most ``PIECE_BYTES`` of a plain file; fewer at its end, and none behind it."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return FetchResult(error="is no plain file")
    return FetchResult(data=os.pread(fd, min(fetch.length, PIECE_BYTES), max(0, fetch.start)))


def _names(fd: int, start: int) -> FetchResult:
    """Return at most ``NAMES_MOST`` entries of a directory, by name."""
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        return FetchResult(error="is no folder")
    with os.scandir(fd) as entries:
        sorted_names = sorted(entry.name for entry in entries)
    return FetchResult(
        names=tuple(_entry(fd, name) for name in sorted_names[max(0, start) : max(0, start) + NAMES_MOST])
    )


def _entry(fd: int, name: str) -> DirectoryEntry:
    """Return what an entry of a directory is, without following a link."""
    # A name may be any bytes, and the answer is text.
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        # Deleted meanwhile; it keeps its place, so that the next page begins where this one ends.
        return DirectoryEntry(text, "other", 0)
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    return DirectoryEntry(text, kind, status.st_size)
