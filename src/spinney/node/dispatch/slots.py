"""A node's slots and the workers that serve them: what each of both holds.

A slot is what a node claims for: one running attempt, with others behind it. A worker is a process. A warm
worker belongs to one slot; the worker of ``thread`` and ``async`` stages serves all slots at once, and a cold
one serves a slot for one attempt. All of it is used in the event loop."""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.node.dispatch.lanes import Lane
from spinney.node.workers.child import Child
from spinney.node.workers.worker_reports import Row

log = logging.getLogger(__name__)


class Task(NamedTuple):
    """A lease that this node holds, with its lane and slot. It is a plain tuple because there are thousands a
    second."""

    lease: Lease
    lane: Lane
    slot: "Slot"
    expected_us: float
    """The expected run time when it was added to the slot."""


class Slot:
    """A place for one running attempt, with a backlog of others."""

    __slots__ = ("closed", "expected_us", "held", "leaving", "moved_at", "number", "recalled_at", "worker")

    def __init__(self, number: int) -> None:
        self.number = number
        self.worker: PoolWorker | None = None
        """Its warm worker, when it has one."""
        self.held = 0
        """The number of its leases: one runs, the others wait behind it in its worker."""
        self.expected_us = 0.0
        """The expected run time of all its leases."""
        self.leaving = False
        """Whether it is superfluous: it gets no more jobs, and is removed when it is empty."""
        self.closed = False
        """Whether it holds an attempt behind which no other may wait."""
        self.moved_at = 0.0
        """When the running attempt began at the latest: the slot got a lease while it was empty, or an attempt ended
        (monotonic, s)."""
        self.recalled_at = 0.0
        """When its backlog was last recalled (monotonic, s)."""

    @property
    def warm(self) -> bool:
        """Return whether its worker can take jobs at once."""
        return self.worker is not None and self.worker.usable

    @property
    def empty(self) -> bool:
        """Return whether the slot has neither leases nor a worker."""
        return self.held == 0 and self.worker is None

    def put(self, lane: Lane, now: float) -> None:
        """Note that the slot gets jobs of this lane."""
        if not self.held:
            self.moved_at = now  # a backlog does not change how long the running attempt has been running
        if not lane.ahead:
            self.closed = True

    def emptied(self) -> None:
        """Note that the last lease of the slot has ended."""
        self.held, self.expected_us, self.closed = 0, 0.0, False


class PoolWorker:
    """A child process and its leases."""

    def __init__(self, name: str, slot: Slot | None) -> None:
        self.name, self.slot = name, slot
        """``slot`` is None for the concurrent worker and for a cold one."""
        self.child: Child
        self.held: dict[int, Task] = {}
        """Its leases by fence, in the order in which it got them."""
        self.output_pending: dict[int, Task] = {}
        """Attempts that have ended and whose output is not in its files yet, by fence."""
        self.endings: dict[int, tuple[Outcome, str]] = {}
        """Attempts that are being ended, by fence, with the outcome and message to record."""
        self.uncertain_requests: dict[int, str] = {}
        """Attempts with a request of which it is not known whether it was committed, by fence, with the reason."""
        self.shown_running: set[int] = set()
        """Fences that the store shows as running."""
        self.stacks_taken: set[int] = set()
        """Fences whose stacks were taken because they have lasted as long as their type sets."""
        self.isolated = False
        """Whether it is for one suspect, and for no other job."""
        self.forced = False
        """Whether the node is ending it by TERM and KILL. An attempt that was asked to end (``endings``) is recorded
        so; what it reports of the others counts only if they passed, since they may have failed because of the
        signal."""
        self.hello_received = False
        """Whether it has reported that it can serve, or cannot."""
        self.loads_long = False
        """Whether it has been loading the application for longer than usual."""
        self.retiring = False
        """Whether it gets no more jobs."""
        self.retired_at: float | None = None
        """When it was told to end after its running attempts (monotonic, s); None: it was not."""
        self.attempts_run = 0
        self.started_at = self.idle_since = time.monotonic()

    @property
    def usable(self) -> bool:
        """Return whether the worker is ready and gets more jobs."""
        return self.child.ready and not self.retiring

    def note_output_pending(self, fence: int) -> None:
        """Note that an attempt has ended whose output is still on its way into its files."""
        task = self.held.get(fence)
        if task is not None:
            self.output_pending[fence] = task

    def take(self, rows: Sequence[Row]) -> tuple[Sequence[Row], list[Task]]:
        """Remove the tasks of these rows from ``held``; return the rows that it had with their tasks, both in
        the same order. A row that it did not have is left out, and logged."""
        pop = self.held.pop
        tasks = [pop(row[0], None) for row in rows]
        held = [task for task in tasks if task is not None]
        if len(held) == len(rows):
            return rows, held
        for row, task in zip(rows, tasks, strict=True):
            if task is None:
                log.warning("worker %s reported attempt %d, which it does not have", self.name, row[0])
        return [row for row, task in zip(rows, tasks, strict=True) if task is not None], held

    def finished(self, attempts: int, now: float) -> None:
        """Count attempts that have ended; from ``now`` (monotonic seconds) on it may be idle."""
        self.attempts_run += attempts
        self.idle_since = now

    def retire(self) -> None:
        """Let the worker finish its running attempts; it hands back the rest and exits. Idempotent."""
        if not self.retiring:
            self.retiring, self.retired_at = True, time.monotonic()
            self.child.end()

    def has_lingered(self, limit_s: float, now: float) -> bool:
        """Return whether the worker has nothing left to do, was told to end, and still runs after so many seconds."""
        idle = self.child.alive and not (self.held or self.forced)
        return idle and self.retired_at is not None and now - max(self.retired_at, self.idle_since) > limit_s
