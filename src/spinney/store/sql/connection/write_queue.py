"""The queue of the processes that want to write to one SQLite file.

With SQLite's own busy handler a process that comes back every few milliseconds starves all others (measured: p95 4.3
s). Here every writer locks the file ``next``, then ``write``, and then unlocks ``next``: the holder of ``next`` is the
next writer, so no process is overtaken twice (measured: p99 2.1 ms). Checkpoints are made inside the queue, too. That
also excludes the WAL-reset fault of SQLite 3.7.0 to 3.51.2, which needs a checkpoint and a writer on different
connections at the same time.

A third file, ``beats``, is for the time in which another program (a ``sqlite3`` shell) has the database locked. No node
can send a heartbeat then, and none may be declared dead for that. So a node whose heartbeat fails takes a shared lock
on ``beats`` (``keep_out``), and a process that finds such a lock does not write. Its holder knows that nothing is
changed before its own next heartbeat.

The kernel releases all locks of a process that dies, at whatever instruction.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.host.ownership import give_to_owner

BEATS = "beats.lock"


class WriteQueue:
    """The three lock files in a folder. Each connection has its own object, for one thread at a time: locks
    of ``flock`` belong to an open file, so that two objects of one process exclude each other, too."""

    def __init__(self, folder: Path) -> None:
        self._next = _open(folder / "next.lock")
        self._write = _open(folder / "write.lock")
        self._beats = _open(folder / BEATS)
        self._keeps_out = False

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Hold the turn for the block: no other process writes meanwhile."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self, *, urgent: bool = False) -> None:
        """Wait for the turn; ``urgent``: only until the process that has it leaves, and not for those that wait."""
        if urgent:
            fcntl.flock(self._write, fcntl.LOCK_EX)
            return
        fcntl.flock(self._next, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._write, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def leave(self) -> None:
        """End the turn that ``enter`` has got."""
        fcntl.flock(self._write, fcntl.LOCK_UN)

    def kept_out(self) -> bool:
        """Return whether another process holds ``keep_out``: then the caller must leave the queue without writing."""
        if self._keeps_out:
            return False  # all processes that share the lock may send heartbeats
        try:
            fcntl.flock(self._beats, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._beats, fcntl.LOCK_UN)
        return False

    def keep_out(self) -> None:
        """Exclude all writers that do not hold this lock, too, until ``let_in``; return when the last one has left."""
        if not self._keeps_out:
            fcntl.flock(self._beats, fcntl.LOCK_SH)
            self._keeps_out = True
            with self.passed():
                pass  # a process that was inside had looked before the lock was shared

    def let_in(self) -> None:
        """End ``keep_out``; without effect when it does not hold."""
        if self._keeps_out:
            fcntl.flock(self._beats, fcntl.LOCK_UN)
            self._keeps_out = False

    def close(self) -> None:
        """Close the lock files, which releases all locks of this object."""
        os.close(self._beats)
        os.close(self._next)
        os.close(self._write)


def _open(path: Path) -> int:
    is_new = not path.exists()
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if is_new:
        give_to_owner(path, like=path.parent)
    return fd
