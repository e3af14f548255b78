"""A folder in memory for the files of tests, which need not survive a power failure."""

import os
from pathlib import Path

_ROOM = 4 << 30
"""In bytes: several times what all tests of the short form write."""


def in_memory() -> str | None:
    """Return a folder in memory; None where there is none that has room and lets programs be started from it."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return None
    system = os.statvfs(folder)
    too_small = system.f_bavail * system.f_frsize < _ROOM
    return None if too_small or system.f_flag & os.ST_NOEXEC else str(folder)
