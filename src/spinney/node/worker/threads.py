"""Threads that an attempt has left running in a worker.

A thread cannot be ended from outside, and its output would be assigned to the next attempt. So a worker that runs one
attempt at a time is replaced, unless the threads end within a moment; and no worker waits for them when it ends.
Threads that the application started when it was loaded stay, and so do idle threads of a ``ThreadPoolExecutor``, which
run no code."""

import _thread
import sys
import threading
import time
from concurrent.futures import thread as pools
from types import FrameType

_GRACE_S = 0.25
"""How long they may take to end, in seconds: some are just about to."""
_LOOK_S = 0.001
_POOLED = pools._worker.__code__
"""The code of the innermost frame of an idle thread of a pool."""


class LeftoverThreads:
    """Detects threads that were started after its creation, by Python or by C code that has called into
    it."""

    def __init__(self) -> None:
        self._earlier = frozenset(sys._current_frames())
        self.count = _thread._count()
        """The number of threads at its creation. While no more run, none was left. The count takes a fraction of the
        time of a detailed check."""

    def have_ended(self, *, daemons: bool = True) -> bool:
        """Return whether all left threads end within a moment. ``daemons``: whether daemon threads count, for which
        Python does not wait at its exit."""
        give_up = time.monotonic() + _GRACE_S
        while set(self._leftovers()) - (set() if daemons else _daemons()):
            if time.monotonic() > give_up:
                return False
            time.sleep(_LOOK_S)
        return True

    def __str__(self) -> str:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        return "threads (" + ", ".join(names.get(ident, "not Python's") for ident in self._leftovers()) + ")"

    def _leftovers(self) -> list[int]:
        """Return the identifiers of threads that were started since and are doing something."""
        frames = sys._current_frames()
        return [
            ident for ident, frame in frames.items() if ident not in self._earlier and not _is_idle(frame)
        ]


def _daemons() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate() if thread.daemon}


def _is_idle(frame: FrameType) -> bool:
    """Return whether a frame is that of a pool's thread that neither has work nor is about to take some."""
    if frame.f_code is not _POOLED:
        return False
    names = frame.f_locals
    return names.get("work_item") is None and "work_queue" in names and names["work_queue"].empty()
