"""The lock that allows one put of an object at a time: a flock in its staging folder, released when its process
dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney.apps.ingest.storage.model import Busy
from spinney.files.paths import shown

LOCK = "lock"


@contextmanager
def locked(folder: Path, object_id: str) -> Iterator[int]:
    """Make ``folder`` and lock it, and yield a descriptor of its lock file; an empty folder is removed
    afterwards.

    It does not wait: it raises Busy when another put holds the lock. The lock is of the open file, and the
    kernel releases it when the process dies.
    """
    handle = _hold(folder, object_id)
    try:
        yield handle
    finally:
        if [p.name for p in folder.iterdir()] == [LOCK]:
            _remove_folder(folder)
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _hold(folder: Path, object_id: str) -> int:
    """Return the descriptor of the locked file.

    The previous holder may remove file and folder between the opening and the lock: a lock on a file without
    a name would exclude nobody, so that this begins again.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the previous holder has just removed the folder
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Busy(f"another put of {shown(object_id)} is under way; try again later") from None
        if _is_current(folder / LOCK, handle):
            return handle
        os.close(handle)


def _is_current(path: Path, handle: int) -> bool:
    """Return whether the locked file still has that name: the previous holder may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove_folder(folder: Path) -> None:
    """Remove the lock file and the folder, while the lock is still held."""
    (folder / LOCK).unlink()
    # A folder is not empty when another put of this object, or of another, has begun meanwhile.
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()
