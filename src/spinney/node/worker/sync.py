"""What an attempt wrote in its job's folder, on the disk before its success is recorded."""

import functools
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from spinney import filesystem
from spinney.model.outcomes import PASSED
from spinney.model.values.paths import job_folder
from spinney.node.worker.result_rows import Detail, error_detail

OWN = ".spinney"
"""The engine's own corner of a folder: output and parameters, which promise nothing."""

_REALTIME_COARSE = 5
"""Linux's number of this clock, which the module time does not name."""
_SLACK_NS = 10**9
"""Over a network, and through a program, files are stamped with another clock than this machine's."""
_LEVELS = 4
"""Directories between a job's folder and the folder root, the folder counted."""


def opened(root: str) -> int | None:
    """A descriptor of the folder root, to sync its file system by; None when the root is not there."""
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def clock_ns() -> int:
    """The time with which the kernel stamps what is written now: behind ``time.time_ns`` by up to a tick, and never
    ahead of a stamp that is made later."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


def synced(
    detail: Detail | None, root: str, job_id: int, since_ns: int, descriptor: int | None = None
) -> Detail | None:
    """What became of an attempt, once what it wrote is safe: an error when it cannot be made so. None is a plain
    success. An attempt that did not pass is synced, too, for the next one may keep what it finds, and syncs only what
    it wrote itself. ``since_ns``: ``clock_ns`` when the attempt began; ``descriptor``: of the root, ``opened`` before
    that."""
    try:
        sync_folder(root, job_id, since_ns, descriptor)
    except OSError as error:
        if detail is not None and detail["outcome"] not in PASSED:
            return detail
        why = error.strerror or error
        return error_detail(
            error, message=f"what it wrote could not be put safely on the disk: {why}; see the disk"
        )
    return detail


def has_folder(root: str, job_id: int) -> bool:
    """Whether there is anything to sync. Most jobs have no folder: a question that raises nothing
    is the cheapest."""
    return os.access(f"{_level(root, job_id // 100)}/{job_id:012d}", os.F_OK)


class FolderlessJobs:
    """Hundreds of jobs none of which has a folder, as of the beginning of a list. Within it a folder
    comes into being only when its own attempt asks for it; so most jobs need not look."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._hundreds: set[int] = set()

    def forget(self) -> None:
        """A new list begins."""
        self._hundreds.clear()

    def __contains__(self, job_id: int) -> bool:
        hundred = job_id // 100
        if hundred in self._hundreds:
            return True
        if os.access(_level(self._root, hundred), os.F_OK):
            return False
        self._hundreds.add(hundred)
        return True


@functools.lru_cache(maxsize=8)
def _level(root: str, hundred: int) -> str:
    """The directory of a hundred jobs, which come in a row."""
    return str(Path(root, job_folder(hundred * 100)).parent)


def sync_folder(root: str, job_id: int, since_ns: int, descriptor: int | None = None) -> None:
    """Sync what has changed in this job's folder since then; nothing when it has none.

    What has changed is told by the inode's change time, which nobody can set back: copying and
    unpacking keep old modification times. Raises OSError when the disk refuses.
    """
    folder = Path(root, job_folder(job_id))
    if not folder.is_dir():
        return
    own = folder.stat()
    if not filesystem.is_own(own.st_dev):
        since_ns -= _SLACK_NS
    changed = list(_changed(str(folder), since_ns))
    if not changed and own.st_ctime_ns < since_ns:
        return
    one_disk = all(entry.stat(follow_symlinks=False).st_dev == own.st_dev for entry in changed)
    by_one = descriptor if one_disk else None
    if by_one is not None and filesystem.synced_whole(by_one, own.st_dev, len(changed) + 1 + _LEVELS):
        return
    for entry in changed:
        _sync(entry.path)
    # The names of the folder itself and of the levels above it, which may be new.
    for above in (folder, *folder.parents)[: _LEVELS + 1]:
        _sync(above)


def _changed(directory: str, since_ns: int) -> Iterator["os.DirEntry[str]"]:
    with os.scandir(directory) as entries:
        for entry in entries:
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(state.st_mode) and entry.name != OWN:
                yield from _changed(entry.path, since_ns)
                if state.st_ctime_ns >= since_ns:
                    yield entry
            elif stat.S_ISREG(state.st_mode) and state.st_ctime_ns >= since_ns:
                yield entry


def _sync(path: str | Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # taken away again meanwhile
    except PermissionError:
        _sync_everything(Path(path).parent)
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_everything(directory: Path) -> None:
    """For a file that may be written but not read: the whole file system it is on."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        filesystem.sync_whole(fd)
    finally:
        os.close(fd)
