"""The shared page: which attempts a worker runs, readable from outside and after its death.

A small file in the run-time directory, mapped by the worker and by the supervisor. A worker writes
fence and start time into a *line* before an attempt begins and 0 after it has ended, so that death, timeout and cancel
concern that attempt, and so that a successor of a dead node knows what was running. A worker that runs one attempt at a
time uses one line; a concurrent worker uses a line for each running attempt.

Who writes what: lines and ``done`` the worker; ``recall``, ``cancel`` and ``stack`` the supervisor; the
``reading`` and ``pumped`` cells the supervisor's pump (``spinney.node.dispatch.output``).

All cells are aligned 64-bit integers, stored atomically. A reader accepts a line only when its fence was the same
before and after: a fence is never used twice, and the writer clears it before it writes another start."""

import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MAGIC = 0x3179656E6E697053
"""``Spinney1``, read as a little-endian number; the first cell of each page."""

CELL_LINES = 1
CELL_DONE = 2
"""The number of attempts that have ended in this worker, reported or not."""
CELL_RECALL = 3
"""The number of the last run message whose attempts are to be handed back unless they have begun."""
CELL_CANCEL = 4
"""The fence whose ``job.cancelled`` is true."""
CELL_STACK = 5
"""The fence whose stacks are requested; the worker sets it to 0 when it begins to write them."""
CELL_PUMP = 6
"""Two cells a stream (0 stdout, 1 stderr): ``reading``, ``pumped`` bytes."""
CELL_LINE = 16
"""Three cells a line: fence, start by the wall clock (us), start by CLOCK_BOOTTIME (ns)."""

_CELL_BYTES = 8
_LINE_CELLS = 3
_PAGE_BYTES = 4096
_clock_ns, _BOOTTIME = time.clock_gettime_ns, time.CLOCK_BOOTTIME
CONCURRENT_LINES = 4000
"""How many attempts a ``--concurrent`` worker may have begun at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An attempt that has begun and has not ended."""

    fence: int
    started_us: int
    """The start that is recorded, by the wall clock, in microseconds since 1970 UTC."""
    started_boot_ns: int
    """The start by CLOCK_BOOTTIME, in nanoseconds; for time limits."""

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since it began, including the machine's sleep."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.started_boot_ns) / 1e9


class SharedPage:
    """One mapped page. Made by ``create`` (supervisor), from an inherited descriptor (worker) or by ``open``
    (successor)."""

    __slots__ = ("_map", "cells", "fd", "lines")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        self.cells: memoryview[int] = memoryview(self._map).cast("q")
        """The cells for hot loops, indexed by the ``CELL_…`` constants."""
        self.lines = min(self.cells[CELL_LINES], (len(self.cells) - CELL_LINE) // _LINE_CELLS)

    @classmethod
    def create(cls, path: Path, *, lines: int = 1) -> Self:
        """Create the file anew (0600) for a worker that runs at most ``lines`` attempts at once. Raises OSError, as on
        a full disk; there is no file then."""
        needed = (CELL_LINE + lines * _LINE_CELLS) * _CELL_BYTES
        size = -(-needed // _PAGE_BYTES) * _PAGE_BYTES
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Not sparse: on a full disk a hole would kill the first process that touches it with SIGBUS.
            os.posix_fallocate(fd, 0, size)
            os.pwrite(fd, MAGIC.to_bytes(8, "little") + lines.to_bytes(8, "little"), 0)
            return cls(fd)
        except OSError:
            os.close(fd)
            path.unlink(missing_ok=True)
            raise

    @classmethod
    def open(cls, path: Path) -> Self:
        """Map the page of a dead worker. Raises OSError, and ValueError when it is no page."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.pread(fd, 8, 0) != MAGIC.to_bytes(8, "little"):
                raise ValueError(f"{path} is no page of a worker; remove it")
            return cls(fd)
        except (OSError, ValueError):
            os.close(fd)
            raise

    def close(self) -> None:
        """Unmap it; the file stays. Idempotent."""
        if self.fd < 0:
            return
        self.cells.release()
        self._map.close()
        os.close(self.fd)
        self.fd = -1

    # --- the worker's side ----------------------------------------------------------------

    def begin(self, fence: int, started_us: int, *, line: int = 0) -> None:
        """Note in the shared page that the attempt of this fence begins on a line, so that a supervisor sees what
        runs."""
        at, cells = CELL_LINE + line * _LINE_CELLS, self.cells
        cells[at + 1] = started_us
        cells[at + 2] = _clock_ns(_BOOTTIME)
        cells[at] = fence

    def finish(self, *, line: int = 0) -> None:
        """Note that the attempt of this line has ended. It is counted first, so that it is never neither running nor
        ended."""
        self.cells[CELL_DONE] += 1
        self.cells[CELL_LINE + line * _LINE_CELLS] = 0

    # --- the supervisor's side ------------------------------------------------------------

    def fence(self) -> int:
        """Return the fence of the attempt that runs in a worker of one line; 0: none."""
        return self.cells[CELL_LINE]

    def running(self) -> list[Running]:
        """Return all attempts that have begun and not ended."""
        attempts = []
        fences = self.cells[CELL_LINE : CELL_LINE + self.lines * _LINE_CELLS : _LINE_CELLS].tolist()
        for number, fence in enumerate(fences):
            if not fence:
                continue
            at = CELL_LINE + number * _LINE_CELLS
            line = Running(fence=fence, started_us=self.cells[at + 1], started_boot_ns=self.cells[at + 2])
            if self.cells[at] == fence:
                attempts.append(line)
        return attempts

    def done(self) -> int:
        """Return how many attempts have ended in this worker, reported or not."""
        return self.cells[CELL_DONE]


def read_running(path: Path) -> dict[int, int]:
    """Return what was running by the page of a dead worker: fence to start (wall clock, us).

    It is for a successor, in the form of ``Store.recover``. A page that is missing, truncated or foreign means that
    nothing was running: its worker had not begun anything."""
    try:
        page = SharedPage.open(path)
    except (OSError, ValueError):
        return {}
    try:
        return {line.fence: line.started_us for line in page.running()}
    finally:
        page.close()
