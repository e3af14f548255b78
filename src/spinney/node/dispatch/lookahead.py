"""How much work slots get ahead of what runs. No I/O, no clock of its own.

Without it, a worker would be idle between a job of a millisecond and the transaction that brings the next
one. With too much, urgent jobs wait behind a backlog, and the jobs of a dead worker come back late. So a slot
gets a fixed time of work, by measured run times, and what is not begun can be recalled."""

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.model.jobs import SlotRequest
from spinney.node.dispatch.lanes import Lane
from spinney.node.dispatch.slots import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """How much work slots get ahead."""

    run_us: float
    """How much expected run time a slot may have, in microseconds."""
    jobs: int
    """The most leases that a slot may have."""
    list_size: int
    """The most jobs in one message to a worker."""

    def expected_us(self, lane: Lane) -> float:
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
