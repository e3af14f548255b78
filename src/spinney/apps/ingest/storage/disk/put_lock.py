"""One put of an object at a time: a flock in its staging folder, which dies with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.storage.contract import Busy

LOCK = "lock"


@contextmanager
def locked(folder: Path, object_id: str) -> Iterator[int]:
    """Make ``folder`` and hold it, by a descriptor of its lock's file; it is removed again when it is left empty.
    Raises Busy when another holds it."""
    handle = _hold(folder, object_id)
    try:
        yield handle
    finally:
        if [p.name for p in folder.iterdir()] == [LOCK]:
            _dissolve(folder)
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _hold(folder: Path, object_id: str) -> int:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the holder before dissolved the folder just now
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Busy(f"another put of {shown(object_id)} is under way; try again later") from None
        if _still(folder / LOCK, handle):
            return handle
        os.close(handle)


def _still(path: Path, handle: int) -> bool:
    """Whether the file that is held is the one by that name: the holder before may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _dissolve(folder: Path) -> None:
    (folder / LOCK).unlink()
    # Not empty: another put of this object, or one of another, has come in meanwhile.
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()
