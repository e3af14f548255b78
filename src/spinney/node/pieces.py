"""Pieces of files in a job's folder, for somebody who asks from elsewhere.

What is asked for came from outside, so each step of its path is opened by itself, from the folder on: no step leads
up, no link is followed, and nothing but plain files and directories is opened.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, Entry, Fetch, Found
from spinney.model.places import job_folder

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe in the way is opened, but not waited for, and then found to be none."""


def found(root: Path, fetch: Fetch) -> Found:
    """The answer to a question; whatever is asked for, never raises for it."""
    steps = [] if not fetch.path else fetch.path.split("/")
    if any(step in ("", ".", "..") or "\0" in step for step in steps):
        return Found(error="is no path within a job's folder")
    try:
        with _opened(root, [*job_folder(fetch.job_id).split("/"), *steps]) as fd:
            return _names(fd, fetch.start) if fetch.length == 0 else _piece(fd, fetch)
    except FileNotFoundError:
        return Found(error=MISSING)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Found(error="leads through a link, and links are not followed")
        return Found(error=f"cannot be read there ({error.strerror or error})")


@contextmanager
def _opened(root: Path, steps: list[str]) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root itself may be a link
        stack.callback(os.close, fd)
        for step in steps:
            fd = os.open(step, _FLAGS, dir_fd=fd)
            stack.callback(os.close, fd)
        yield fd


def _piece(fd: int, fetch: Fetch) -> Found:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return Found(error="is no plain file")
    return Found(data=os.pread(fd, min(fetch.length, PIECE_BYTES), max(0, fetch.start)))


def _names(fd: int, start: int) -> Found:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        return Found(error="is no folder")
    with os.scandir(fd) as entries:
        every = sorted(entry.name for entry in entries)
    return Found(names=tuple(_entry(fd, name) for name in every[max(0, start) : max(0, start) + NAMES_MOST]))


def _entry(fd: int, name: str) -> Entry:
    told = os.fsencode(name).decode("utf-8", "backslashreplace")  # names are bytes, and answers are text
    try:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:  # it has gone meanwhile, and is counted for the page all the same
        return Entry(told, "other", 0)
    kind = "folder" if stat.S_ISDIR(seen.st_mode) else "file" if stat.S_ISREG(seen.st_mode) else "other"
    return Entry(told, kind, seen.st_size)
