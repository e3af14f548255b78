"""Where what a test writes need not outlast a power cut."""

import os
from pathlib import Path

_ROOM = 4 << 30
"""In bytes: several times what all tests of the short form write."""


def in_memory() -> str | None:
    """A folder in memory, so that nobody waits for a disk; None: there is none that has room and lets programs be
    started from it, and the usual one has to do."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return None
    system = os.statvfs(folder)
    too_small = system.f_bavail * system.f_frsize < _ROOM
    return None if too_small or system.f_flag & os.ST_NOEXEC else str(folder)
