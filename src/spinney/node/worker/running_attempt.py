"""An attempt that a concurrent worker runs: a thread of its pool, or a task of its event loop."""

import asyncio
import contextvars
from dataclasses import dataclass, field

from spinney.define.job import Assignment
from spinney.node.worker.attempt_output import AttemptOutput
from spinney.node.worker.ports import ConcurrentPort

LATE_S = 0.1
"""From how many seconds on a cancel request that waits for the event loop shows, at TERM, that the loop is blocked.
It is short because the grace period of a stage may be."""


@dataclass(slots=True, kw_only=True)
class RunningAttempt:
    """One running attempt. ``line``: its line on the page. ``written_bytes``: how much had been written past Python's
    streams when it began, by all attempts of this process."""

    assignment: Assignment
    line: int
    port: ConcurrentPort
    output: AttemptOutput
    started_us: int
    since_ns: int
    """Its start by the clock of ``sync``."""
    written_bytes: int
    stopped: bool = False
    """Whether it was stopped with the worker, and not by its own cancel request: its outcome does not count."""
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    is_async: bool = False
    task: "asyncio.Task[None] | None" = None
    """The task of an ``async`` stage; None until the event loop has made it."""
    stage_ended: bool = False
    """Whether an ``async`` stage has ended; its task reports the attempt."""
    thread: int = 0
    """The identifier of its thread; 0: it has none."""
    document: bytes | None = None
    """The frames of its failure, until its folder is synced."""
    cancel_requested_s: float | None = None
    """Since when the cancellation of its task waits for the event loop, on the monotonic clock; None: it does not."""
    blocked_s: float = 0.0
    """For how many seconds other attempts have blocked the event loop while it ran."""
    blocker: str = ""
    """The stage and job of the last attempt that blocked it; empty: none did."""

    def is_late(self, now_s: float) -> bool:
        """Return whether the event loop has not carried out a cancel request for this attempt alone for so long that
        another one must have blocked it. ``now_s``: the time of the monotonic clock."""
        if self.cancel_requested_s is None or self.stopped:
            return False
        return now_s - self.cancel_requested_s >= LATE_S
