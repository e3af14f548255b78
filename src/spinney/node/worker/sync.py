"""Sync the files that an attempt wrote into its job's folder, before its success is recorded.

The order is what makes a recorded success durable: files, then the record. Only changed files are synced, or
the whole file system at once where that is cheaper (``host.filesystem``). A job without a folder costs one
system call, and mostly not even that (``FolderlessJobs``)."""

import errno
import functools
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from spinney.host import filesystem
from spinney.model.outcomes import PASSED
from spinney.model.values.paths import OWN, job_folder
from spinney.node.worker.result_rows import Detail, error_detail

_REALTIME_COARSE = 5
"""Linux's number of this clock, which the module ``time`` does not name."""
_SLACK_NS = 10**9
"""Network and FUSE file systems stamp files with another clock than this machine's."""
_LEVELS = 4
"""The number of directories from a job's folder up to the folder root, including the folder."""
_GONE = (FileNotFoundError, NotADirectoryError)
"""The errors for a path that another process has removed, or a part of it."""
_OUT_OF_REACH = (errno.ENAMETOOLONG, errno.EACCES)
"""A path of more than 4,096 bytes, which no call takes; a directory that this process may not read."""


def opened(root: str) -> int | None:
    """Return a descriptor of the folder root, by which its file system is synced; None when the root does not exist."""
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def clock_ns() -> int:
    """Return the time with which the kernel stamps files that are written now: up to a tick behind ``time.time_ns``,
    and never ahead of a later stamp."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


def synced(
    detail: Detail | None, root: str, job_id: int, since_ns: int, descriptor: int | None = None
) -> Detail | None:
    """Sync an attempt's files and return its detail, or that of an error when they cannot be synced. None is a plain
    success. An attempt that did not pass is synced, too, because the next one may keep its files, and only syncs those
    that it wrote itself. ``since_ns``: ``clock_ns`` when the attempt began; ``descriptor``: that of the root,
    ``opened`` before that."""
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
    """Return whether the job has a folder to sync. Most jobs have none: a call that raises nothing is the cheapest."""
    return os.access(_folder(root, job_id), os.F_OK)


def _folder(root: str, job_id: int) -> str:
    """Return the path of a job's folder as text: for most jobs it is only checked, and a ``Path`` would cost
    more than that."""
    return f"{_level(root, job_id // 100)}/{job_id:012d}"


class FolderlessJobs:
    """Groups of a hundred jobs of which none has a folder, as of the beginning of a list. During a list a folder is
    only created when its own attempt uses it; so most jobs need no check."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._hundreds: set[int] = set()

    def forget(self) -> None:
        """Forget the groups, because a new list begins."""
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
    """Return the directory of a hundred consecutive jobs."""
    return str(Path(root, job_folder(hundred * 100)).parent)


def sync_folder(root: str, job_id: int, since_ns: int, descriptor: int | None = None) -> None:
    """Sync the files in this job's folder that have changed since ``since_ns``; nothing when it has no folder.

    Changes are detected by the inode's change time, which no program can set back: copying and unpacking keep old
    modification times. Where a directory cannot be read, because its path is too long or it is another user's, the
    whole file system is synced. Raises OSError when the disk fails. ``descriptor``: that of the folder root, by which
    its whole file system may be synced at once.
    """
    folder = Path(_folder(root, job_id))
    try:
        own = folder.stat()
    except _GONE:
        return
    if not stat.S_ISDIR(own.st_mode):
        return
    if not filesystem.is_own(own.st_dev):
        since_ns -= _SLACK_NS
    try:
        changed = list(_changed(str(folder), since_ns))
    except OSError as error:
        if error.errno not in _OUT_OF_REACH:
            raise
        filesystem.sync_whole_of(folder)
        return
    if not changed and own.st_ctime_ns < since_ns:
        return
    same_device = all(entry.stat(follow_symlinks=False).st_dev == own.st_dev for entry in changed)
    whole_by = descriptor if same_device else None
    if whole_by is not None and filesystem.synced_whole(whole_by, own.st_dev, len(changed) + 1 + _LEVELS):
        return
    for entry in changed:
        _sync(entry.path)
    # The names of the folder itself and of the levels above it, which may be new.
    for above in (folder, *folder.parents)[: _LEVELS + 1]:
        _sync(above)


def _changed(directory: str, since_ns: int) -> Iterator["os.DirEntry[str]"]:
    """Yield the files and directories below this one that have changed, the engine's own left out; a
    directory comes after what is in it, so that names are synced after the files that bear them. Links are
    not followed. What vanishes meanwhile is left out: other processes may write to the folder. This does not
    recurse, because a program may make more levels than Python's stack has."""
    pending, directories = [directory], []
    while pending:
        try:
            listing = os.scandir(pending.pop())
        except _GONE:
            continue
        with listing as entries:
            for entry in entries:
                try:
                    state = entry.stat(follow_symlinks=False)
                except _GONE:
                    continue
                has_changed = state.st_ctime_ns >= since_ns
                if stat.S_ISDIR(state.st_mode) and entry.name != OWN:
                    pending.append(entry.path)
                    if has_changed:
                        directories.append(entry)
                elif stat.S_ISREG(state.st_mode) and has_changed:
                    yield entry
    yield from reversed(directories)


def _sync(path: str | Path) -> None:
    """Sync a file or directory. One that is gone needs none; for one that may not be read its whole file
    system is synced."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except _GONE:
        return  # removed again meanwhile
    except PermissionError:
        filesystem.sync_whole_of(Path(path).parent)
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
