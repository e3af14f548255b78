"""The time until which a supervisor may continue, written by it and watched by its guard.

Eight bytes of memory that both have mapped: no message can be late, lost or stuck in a full pipe.
The time is CLOCK_BOOTTIME, which also counts while the machine sleeps, so that a supervisor that wakes from a long
sleep is killed before it does anything. 0: it has no leases yet, and is not watched."""

import mmap
import os
import struct
import time

_TIME = struct.Struct("=q")


def boot_ns() -> int:
    """Return the time by the clock of deadlines."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Deadline:
    """One end of the channel; ``make`` it in the guard, ``Deadline(fd)`` in the supervisor."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._memory = mmap.mmap(fd, _TIME.size)

    @classmethod
    def make(cls) -> "Deadline":
        """Make the shared memory, whose descriptor (``fd``) the supervisor inherits; no deadline is set yet."""
        fd = os.memfd_create("spinney-deadline")
        os.ftruncate(fd, _TIME.size)
        return cls(fd)

    def renew(self, until_ns: int) -> None:
        """Let the supervisor continue until this time."""
        _TIME.pack_into(self._memory, 0, until_ns)

    def passed(self, now_ns: int) -> bool:
        """Return whether the deadline has passed."""
        until_ns = self._until()  # read once: a supervisor that leaves sets it to 0 meanwhile
        return until_ns != 0 and now_ns > until_ns

    @property
    def holds(self) -> bool:
        """Return whether the supervisor may hold leases."""
        return self._until() != 0

    def _until(self) -> int:
        return int(_TIME.unpack_from(self._memory, 0)[0])
