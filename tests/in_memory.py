"""A folder in memory for the files of tests, which need not survive a power failure."""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
"""In bytes: several times what all tests of the short form write."""
_FOLDER = "TESTS_IN_MEMORY"
"""The environment variable by which the processes of one run share a folder; empty: there is none. Programs of
jobs see all variables that begin with SPINNEY, so this one does not."""
_PREFIX = "spinney-tests-"


def in_memory() -> str | None:
    """Return the folder of this run in memory; None where none has room and lets programs be started from it.

    The first call makes it, and removes the folders of runs that were killed. It is removed when the process that
    made it ends."""
    if _FOLDER not in os.environ:
        os.environ[_FOLDER] = _new_folder() if _is_suitable() else ""
    return os.environ[_FOLDER] or None


def _is_suitable() -> bool:
    """Return whether the folder of the system can be written, has room, and lets programs be started from it."""
    if not os.access(MEMORY, os.R_OK | os.W_OK):
        return False
    system = os.statvfs(MEMORY)
    return system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC


def _new_folder() -> str:
    """Make a folder that this process keeps locked; remove all that no process keeps locked."""
    # One process at a time, so that none removes a folder between its making and its locking.
    turn = _locked(MEMORY, fcntl.LOCK_EX)
    try:
        for other in MEMORY.glob(f"{_PREFIX}*"):
            with suppress(OSError):  # it is of a run that goes on, of another user, or gone
                unused = _locked(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other, ignore_errors=True)
                os.close(unused)
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY)
        os.chmod(folder, 0o711)  # noqa: PTH101 - for tests that read a folder below it as another user
        _locked(Path(folder), fcntl.LOCK_EX)  # until this process ends
    finally:
        os.close(turn)
    # Registered before all else of a run, so called after it; a process that was forked leaves the folder alone.
    atexit.register(_remove, folder, os.getpid())
    return folder


def _locked(folder: Path, how: int) -> int:
    """Return the descriptor of a folder with a lock on it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
