"""The slots of a node: what each holds, and what each may get. No I/O, no clock of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spinney.model.jobs import Lease, SlotRequest

if TYPE_CHECKING:
    from spinney.node.dispatch.lanes import Lane
    from spinney.node.dispatch.pool_worker import PoolWorker


class Task(NamedTuple):
    """A lease that this node holds, with its lane and slot. It is a plain tuple because there are thousands a
    second."""

    lease: Lease
    lane: "Lane"
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
        """Return whether it has neither leases nor a worker."""
        return self.held == 0 and self.worker is None

    def put(self, lane: "Lane", now: float) -> None:
        """Note that it gets jobs of this lane."""
        if not self.held:
            self.moved_at = now  # a backlog does not change how long the running attempt has been running
        if not lane.ahead:
            self.closed = True

    def emptied(self) -> None:
        """Note that its last lease has ended."""
        self.held, self.expected_us, self.closed = 0, 0.0, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """How much work slots get ahead."""

    run_us: float
    """How much expected run time a slot may have, in microseconds."""
    jobs: int
    """The most leases that a slot may have."""
    list_size: int
    """The most jobs in one message to a worker."""

    def expected_us(self, lane: "Lane") -> float:
        """Return the expected run time of an attempt in its slot. One of a lane that has not been measured may take for
        ever, so it counts as all that a slot may get: nothing is put behind it."""
        if not lane.ahead:
            return 0.0  # its slot is closed
        return self.run_us if lane.run_us is None else lane.run_us

    def claim_request(self, slot: Slot, now: float) -> SlotRequest | None:
        """Return what a slot with a warm worker may get now; None: nothing.

        A free slot gets a first job, and others with it when that one is known to be short (the claim decides that). A
        slot with leases claims again when half of its time and a list's worth of jobs are used up: so its worker never
        starves, and claims stay lists. Jobs behind an attempt that takes longer than the look-ahead would wait for
        nothing, so that slot gets nothing."""
        if slot.held == 0:
            return SlotRequest(slot.number, self.jobs, self.run_us, True)
        if slot.closed or now - slot.moved_at > self.run_us / 1e6:
            return None
        jobs, budget_us = self.jobs - slot.held, self.run_us - slot.expected_us
        if jobs < min(self.list_size, self.jobs) or budget_us < self.run_us / 2:
            return None
        return SlotRequest(slot.number, jobs, budget_us, False)


def cold_slot_request(slot: Slot, *, warm: bool) -> SlotRequest:
    """Return the request of a free slot without a warm worker: one job; ``warm``: it may get a worker."""
    return SlotRequest(slot.number, 1, 0.0, True, warm)


def backlogged(slots: Iterable[Slot], *, least_us: float, now: float, pause_s: float) -> list[Slot]:
    """Return the slots with at least ``least_us`` of expected run time behind the running attempt, and no recall within
    the last ``pause_s`` seconds."""
    return [
        slot
        for slot in slots
        if slot.held > 1
        and slot.expected_us * (slot.held - 1) / slot.held >= least_us
        and now - slot.recalled_at >= pause_s
    ]
