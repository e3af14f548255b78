"""The slots of a node: what each holds, and what each may be given. No I/O, no clock of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spinney.model.jobs import Lease, SlotRequest

if TYPE_CHECKING:
    from spinney.node.dispatch.lanes import Lane
    from spinney.node.dispatch.worker_pool import Worker


class Task(NamedTuple):
    """A lease that this node holds, and where it stands. A plain tuple: thousands a second."""

    lease: Lease
    lane: "Lane"
    slot: "Slot"
    expected_us: float
    """Run time that was expected when it was given to the slot."""


class Slot:
    """A place for one attempt at a time, with those waiting behind it."""

    __slots__ = ("closed", "expected_us", "held", "leaving", "moved_at", "number", "recalled_at", "worker")

    def __init__(self, number: int) -> None:
        self.number = number
        self.worker: Worker | None = None
        """Its warm worker, when it has one."""
        self.held = 0
        """Leases in it: one runs, the others stand behind it in its worker."""
        self.expected_us = 0.0
        """Expected run time of what it holds."""
        self.leaving = False
        """It is one too many: it is given nothing, and is gone when it is empty."""
        self.closed = False
        """It holds something behind which nothing may stand."""
        self.moved_at = 0.0
        """When what runs in it began at the latest: it was given something while empty, or got something done
        (monotonic, s)."""
        self.recalled_at = 0.0
        """When its backlog was last asked back (monotonic, s)."""

    @property
    def warm(self) -> bool:
        """Whether its worker can take work at once."""
        return self.worker is not None and self.worker.usable

    @property
    def empty(self) -> bool:
        """Whether nothing is left of it but its number."""
        return self.held == 0 and self.worker is None

    def put(self, lane: "Lane", now: float) -> None:
        """It is being given jobs of this lane."""
        if not self.held:
            self.moved_at = (
                now  # what is put behind others changes nothing of how long they have been running
            )
        if not lane.ahead:
            self.closed = True

    def emptied(self) -> None:
        """Its last lease is gone."""
        self.held, self.expected_us, self.closed = 0, 0.0, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """How far ahead slots are given work."""

    run_us: float
    jobs: int
    list_size: int

    def expected_us(self, lane: "Lane") -> float:
        """What an attempt counts in its slot. One of a lane that has not been measured may take for ever, so it
        counts as all that a slot may be given: nothing is put behind it."""
        if not lane.ahead:
            return 0.0  # its slot is closed
        return self.run_us if lane.run_us is None else lane.run_us

    def claim_request(self, slot: Slot, now: float) -> SlotRequest | None:
        """What a slot with a warm worker may be given now; None: nothing.

        A free one gets a first job, and others with it when that one is known to be short (the claim sees
        to it). One that holds work asks again when half of its time and a list's worth of jobs are used up: so
        its worker never starves, and requests stay lists. What stands behind an attempt that takes
        longer than the look-ahead would wait for nothing, so that slot is given nothing.
        """
        if slot.held == 0:
            return SlotRequest(slot.number, self.jobs, self.run_us, True)
        if slot.closed or now - slot.moved_at > self.run_us / 1e6:
            return None
        jobs, budget_us = self.jobs - slot.held, self.run_us - slot.expected_us
        if jobs < min(self.list_size, self.jobs) or budget_us < self.run_us / 2:
            return None
        return SlotRequest(slot.number, jobs, budget_us, False)


def cold_slot_request(slot: Slot, *, warm: bool) -> SlotRequest:
    """What a free slot without a warm worker may be given: one job; ``warm``: it may get a worker."""
    return SlotRequest(slot.number, 1, 0.0, True, warm)


def backlogged(slots: Iterable[Slot], *, least_us: float, now: float, pause_s: float) -> list[Slot]:
    """Slots with at least so much expected work behind what runs, and not asked for it just now."""
    return [
        slot
        for slot in slots
        if slot.held > 1
        and slot.expected_us * (slot.held - 1) / slot.held >= least_us
        and now - slot.recalled_at >= pause_s
    ]
