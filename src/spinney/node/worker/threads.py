"""Threads that an attempt left running in a worker that runs one attempt at a time.

Nothing ends a thread from outside, and what it does and prints would be taken for the next attempt's. So the worker is
replaced, unless the threads end within a moment. Threads that the application started when it was loaded stay, and so
do idle ones of a ``ThreadPoolExecutor``, which run nobody's code.
"""

import _thread
import sys
import threading
import time
from concurrent.futures import thread as pools
from types import FrameType

_GRACE_S = 0.25
"""So long they may take to end: some are just about to."""
_LOOK_S = 0.001
_POOLED = pools._worker.__code__
"""The innermost frame of a pool's thread that has no work."""


class LeftoverThreads:
    """Those that run when this is made are known."""

    def __init__(self) -> None:
        self._known = frozenset(sys._current_frames())
        self.known = _thread._count()
        """While no more run, nothing was left. The count takes a fraction of the time that a closer look takes."""

    def have_ended(self) -> bool:
        """Whether all that were left end within a moment."""
        give_up = time.monotonic() + _GRACE_S
        while self._left():
            if time.monotonic() > give_up:
                return False
            time.sleep(_LOOK_S)
        return True

    def __str__(self) -> str:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        return "threads (" + ", ".join(names.get(ident, "not Python's") for ident in self._left()) + ")"

    def _left(self) -> list[int]:
        frames = sys._current_frames()
        return [ident for ident, frame in frames.items() if ident not in self._known and not _is_idle(frame)]


def _is_idle(frame: FrameType) -> bool:
    """Whether it is that of a pool's thread which neither has work nor is about to take some."""
    if frame.f_code is not _POOLED:
        return False
    names = frame.f_locals
    return names.get("work_item") is None and "work_queue" in names and names["work_queue"].empty()
