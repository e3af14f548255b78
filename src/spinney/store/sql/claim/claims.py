"""Claims: which job gets which slot, in one short transaction.

Strict priority over all queues that the node serves; within a priority queues in turn; within a
queue shares in turn, fewest slots held first. Free slots get one job each before slots get jobs ahead. Limits and the
slots of shares are counted from ``leases`` in the same transaction.

A claim has four steps (``Claim.run``): jobs for the free slots with a warm worker, then for those without
one, then jobs ahead for slots that have a short one to run, and last the leases of all of them, which are
written lane by lane. A *ticket* is the number of a slot, once for each job that it may still get. The usual
case, a single lane without locks at a priority, takes a prefix of each share by one statement
(``_deal_uniform``); any other is dealt job by job (``_deal_priority``). Both follow the same rules.

The rotation (which queue and which share was served last) is kept in the store object: it only serves fairness, not
safety, and is rebuilt by use after a restart."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from spinney.model.errors import BadParameters
from spinney.model.jobs import ClaimRequest, LaneRequest, Lease
from spinney.model.types import PRIORITIES
from spinney.store.sql.claim import eligibility
from spinney.store.sql.claim.candidates import Assignments, Candidate, Candidates, HoldFilter
from spinney.store.sql.claim.lane_heads import LaneHeads
from spinney.store.sql.claim.limits import Limits
from spinney.store.sql.claim.rotation import Rotation
from spinney.store.sql.connection.database import RowChange, grouped
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Lane
from spinney.store.sql.transitions import failures, locks, ready_moves
from spinney.store.sql.transitions.cascades import Cascade
from spinney.store.sql.transitions.lease_writes import grant

LOCK_MOVES = 50
"""The most jobs that one transaction lets wait for a taken lock."""
CLAIM_MAX = 1_000
"""The most jobs of one claim: with many slots, further jobs ahead come with the next claim, so that other writers only
wait milliseconds."""
# The budget of a free slot: its one job may run for any time.
_NO_BOUND_US = 1e18
RUN_MAX = 64
RUN_US = 640.0
"""How many jobs of a share, or how much run time, may be assigned ahead one after the other, before it is the next
share's turn: with one job of each share in turn every page of the table would be written for one job. A round of two
slots over a thousand shares takes a third of a second."""
QUEUES_AHEAD = 100
"""The most queues from which one claim assigns jobs ahead: each costs some statements, and the next claim begins behind
them."""
AHEAD_US = 100_000
"""How long slots may be filled ahead while another job waits for a free one."""


# The rows of a share in ``ready`` up to a position: they are the first, so no others lie between.
_PREFIX = RowChange("ready", "lane = ? and priority = ? and share = ? and position >= ? and position <= ?")
SlotBudget = tuple[int, int, float]
"""(slot, number of jobs, run time in µs)."""


class _Offer(NamedTuple):
    """What a queue offers to a claim at one priority."""

    candidates: list[Candidate]
    """The candidates in reverse order; they are removed when they are looked at."""
    removed: int
    """How many jobs had left the queue without a lease when the offer was made."""


class Claim:
    """The claim of jobs for the free slots of one node, made for one transaction.

    ``starved`` says afterwards whether more jobs were found than could be assigned, so that it is worth
    claiming again when a slot is free. Jobs whose lock is taken leave ``ready`` on the way; the caller drains
    ``cascade``. ``claim_again`` says that so many have left that the jobs behind them may not have been looked
    at, so that it is worth claiming again at once."""

    def __init__(
        self,
        cascade: Cascade,
        rotation: Rotation,
        claim_request: ClaimRequest,
        kept_leases: Sequence[Lease] = (),
    ) -> None:
        """``kept_leases``: those that continue with their next stage in their slot, which the node counts as free."""
        tx, registry = cascade.tx, cascade.registry
        self.tx, self.registry, self.cascade, self.now_us = tx, registry, cascade, cascade.now_us
        self.rotation, self.claim_request = rotation, claim_request
        self.starved = False
        self._lock_moves = 0
        self._taken: list[ready_moves.Key] = []
        """Keys of candidates that were taken out of ``ready``; one statement deletes the rows of many
        (``_delete_taken``)."""
        self._removed: Counter[str] = Counter()
        """How many jobs have left ``ready`` without a lease, by queue."""
        self._limits = Limits(tx, registry, claim_request.node_id)
        self._probed: set[tuple[str, str]] = set()
        self._assignments = Assignments()
        self._hold_filter = HoldFilter(cascade) if registry.holds.asking else None
        self._candidates = Candidates(
            tx, registry, rotation, claim_request.node_id, self._assignments, self._hold_filter
        )
        self._heads = LaneHeads(tx, registry, self._candidates)
        # No job is put behind a stage that may take long.
        self._closed = {
            lease.slot
            for lease in kept_leases
            if not _is_quick(claim_request.lanes.get((lease.type, lease.stage)))
        }

    def run(self) -> list[Lease]:
        """Fill the slots; return the leases, in the order in which each slot is to run them."""
        if not self.claim_request.slots:
            return []
        lanes = eligibility.lanes(self.tx, self.registry, self.claim_request, self.now_us)
        if not lanes:
            return []
        free, ahead = eligibility.slots(self.tx, self.registry, self.claim_request)
        ahead = [s for s in ahead if s.slot not in self._closed]
        if not free and not ahead:
            return []
        if any(s.warm for s in free):
            self.rotation.freed_us = self.now_us
        idle = self._fill(lanes, [(s.slot, 1, _NO_BOUND_US) for s in free if s.warm])
        if any(not s.warm for s in free):
            cold = [lane for lane in lanes if not self._lane_request(lane).warm]
            self._fill(cold, [(s.slot, 1, _NO_BOUND_US) for s in free if not s.warm])
        quick = [lane for lane in lanes if self._quick(lane)]
        # No job is put behind one that may take long, or that takes locks.
        first = {
            slot: self._run_us(lane_id)
            for slot, lane_id in self._assignments.jobs
            if self._quick(self.registry.lanes[lane_id])
        }
        more = [
            (s.slot, s.jobs - 1, s.budget_us - first[s.slot]) for s in free if s.jobs > 1 and s.slot in first
        ]
        more += [(s.slot, s.jobs, s.budget_us) for s in ahead]
        # When a slot got no job at all, there is none to put behind others either.
        if quick and more and (self.starved or not idle):
            room = max(0, CLAIM_MAX - len(free)) // len(more)
            self.starved = self.starved or not room
            self._look_ahead(lanes, quick, [(slot, min(jobs, room), us) for slot, jobs, us in more])
        return grant(self.tx, self.registry, self.claim_request, self._assignments.jobs, self.now_us)

    @property
    def claim_again(self) -> bool:
        """Whether as many jobs have left ``ready`` as candidates are read beyond the slots (``_offer``)."""
        return self._removed.total() >= LOCK_MOVES

    # --- lanes ------------------------------------------------------------------

    def _lane_request(self, lane: Lane) -> LaneRequest:
        return self.claim_request.lanes[(lane.type, lane.stage)]

    def _quick(self, lane: Lane) -> bool:
        """Return whether its jobs may be assigned ahead."""
        return _is_quick(self._lane_request(lane))

    def _run_us(self, lane_id: int) -> float:
        return self._lane_request(self.registry.lanes[lane_id]).run_us or 0.0

    # --- filling slots --------------------------------------------------------------------

    def _look_ahead(self, lanes: list[Lane], quick: list[Lane], slots: list[SlotBudget]) -> None:
        """Assign jobs ahead, only at the most urgent priority: they must not overtake a job that waits for a slot (a
        job that waits for its queue's limit is not overtaken)."""
        urgent = [
            lane
            for lane in lanes
            if self._limits.below(lane.queue)
            # A queue at its limit may still get more in its own slots.
            or (self._quick(lane) and any(self._limits.has_room(lane.queue, slot) for slot, _, _ in slots))
        ]
        until = self._most_urgent(urgent)
        if until is not None and not self._others_wait(urgent, until):
            self._fill(quick, slots, until=until, ahead=True)

    def _others_wait(self, urgent: list[Lane], until: int) -> bool:
        """Return whether a job of the same priority that cannot be assigned ahead (a thread, a lock) has waited long
        for a free slot: if slots were filled ahead again and again, none would ever become free."""
        if self.now_us < self.rotation.freed_us:
            self.rotation.freed_us = self.now_us  # the clock was put back
        others = [lane for lane in urgent if not self._quick(lane)]
        if not others or self.now_us - self.rotation.freed_us < AHEAD_US:
            return False
        return until in self._heads.of(others, until - 1).values()

    def _most_urgent(self, lanes: list[Lane]) -> int | None:
        """Return the priority of the most urgent job; jobs that a hold covers do not count."""
        heads = self._heads.of(lanes, -1)
        while heads and self._hold_filter is not None:
            first = min(heads.values())
            at_first = [lane for lane in lanes if heads.get(lane.id) == first]
            if any(self._candidates.of(lane.queue, [lane], first, 1) for lane in at_first):
                break
            heads = self._heads.of(lanes, first)
        return min(heads.values(), default=None)

    def _fill(
        self, lanes: list[Lane], slots: list[SlotBudget], until: int = PRIORITIES[-1], *, ahead: bool = False
    ) -> list[int]:
        """Assign each slot up to so many jobs (and µs), most urgent first, up to a priority; return the tickets that
        got none. ``ahead``: the jobs are assigned ahead.

        Each round finds the most urgent priority that is left (``LaneHeads``) and deals its jobs, so that
        priorities without jobs cost nothing."""
        tickets = _tickets(slots)
        budget = {slot: us for slot, _, us in slots}
        floor = -1
        while tickets:
            heads = self._heads.of(lanes, floor)
            floor = min(heads.values(), default=PRIORITIES.stop)
            if floor > until:
                break
            at_floor = grouped((lane.queue, lane) for lane in lanes if heads.get(lane.id) == floor)
            if len(at_floor) == 1 and self._uniform(only_lanes := next(iter(at_floor.values()))):
                tickets = self._deal_uniform(only_lanes[0], floor, tickets, budget, ahead=ahead)
                continue
            tickets = self._deal_priority(at_floor, floor, tickets, budget, ahead=ahead)
        return tickets

    # --- the common case: one lane without limits ---------------------------------

    def _uniform(self, lanes: list[Lane]) -> bool:
        lane = lanes[0]
        return len(lanes) == 1 and not lane.probing and not self._lane_request(lane).locks

    def _deal_uniform(
        self, lane: Lane, priority: int, tickets: list[int], budget: dict[int, float], *, ahead: bool
    ) -> list[int]:
        """Do what ``_deal_priority`` does, by sets: a prefix of each share's order is taken.

        One candidate more is read than there are tickets: it says whether jobs are left. Return the tickets
        that got none."""
        run_us = self._run_us(lane.id)
        if run_us:
            capacity = {slot: math.ceil(us / run_us) for slot, us in budget.items() if us > 0}
            if sum(capacity.values()) < len(tickets):
                tickets = _within(tickets, capacity)
        allowed, barred = self._limits.split(lane.queue, tickets)
        if not allowed:
            self.starved = True  # the jobs at this priority have no room
            return barred
        run = max(1, min(RUN_MAX, int(RUN_US / run_us))) if ahead and run_us else 1
        candidates = self._offered(lane, priority, len(allowed) + 1, run)
        chosen = candidates[: len(allowed)]
        if not chosen:
            return tickets
        last = {share: position for position, _, _, share in chosen}
        low = self.registry.watermarks.low
        self.tx.change(
            _PREFIX,
            [(lane.id, priority, share, low(lane.id, priority, share), at) for share, at in last.items()],
        )
        for slot, jobs in self._assignments.add_all(lane.id, allowed, chosen).items():
            budget[slot] -= jobs * run_us
        self._limits.occupy(lane.queue, allowed[: len(chosen)])
        self._served_last(lane.queue, chosen[-1][3])
        self.starved = self.starved or len(candidates) > len(chosen) or bool(barred)
        self._heads.note_taken(lane)
        return allowed[len(chosen) :] + barred

    def _offered(self, lane: Lane, priority: int, n: int, run: int) -> list[Candidate]:
        """Return the next ``n`` candidates of a lane, in order."""
        alone = self._heads.alone.get(lane.id)
        # A quota may exclude even the only one, and so may a hold that is not swept yet.
        if alone and alone[0] == priority and self._hold_filter is None and self._sharing(lane) != "quota":
            return [alone[1]]
        return self._candidates.of(lane.queue, [lane], priority, n, run)[::-1]

    def _sharing(self, lane: Lane) -> str:
        return self.registry.queue(lane.queue).shared

    def _deal_priority(
        self,
        queues: dict[str, list[Lane]],
        priority: int,
        tickets: list[int],
        budget: dict[int, float],
        *,
        ahead: bool,
    ) -> list[int]:
        """Deal slots to queues in turn at one priority; return the tickets that got no job. A queue offers its
        candidates when its turn comes: beside thousands of queues a claim costs what its slots cost."""
        order = self.rotation.queues_in_turn(list(queues))
        bounded = ahead and len(order) > QUEUES_AHEAD
        if bounded:
            order, self.starved = order[:QUEUES_AHEAD], True
        offers: dict[str, _Offer] = {}
        unserved: list[int] = []
        turn = 0
        for slot in tickets:
            if budget[slot] <= 0:
                continue
            for step in range(len(order)):
                name = order[(turn + step) % len(order)]
                candidate = self._candidate(name, queues[name], slot, priority, offers, len(tickets) + 1)
                if candidate is not None:
                    self._give(name, slot, priority, candidate)
                    budget[slot] -= self._run_us(candidate[2])
                    turn = (turn + step + 1) % len(order)
                    if self.registry.lanes[candidate[2]].probing:
                        offers.clear()  # others of its stage are offered no more
                        self._delete_taken()
                    break
            else:
                unserved.append(slot)
        self._delete_taken()
        if bounded and order[-1] in offers:
            self.rotation.queue = order[-1]
        # Their heads say that queues whose turn did not come have jobs.
        not_reached = (name for name in order if name not in offers)
        self.starved = (
            self.starved
            or any(offer.candidates for offer in offers.values())
            or any(self._limits.limit(name) != 0 for name in not_reached)
        )
        return unserved

    def _candidate(
        self, queue: str, lanes: list[Lane], slot: int, priority: int, offers: dict[str, _Offer], n: int
    ) -> Candidate | None:
        """Return a queue's next candidate for a slot, from its offer or from a new one of up to ``n``."""
        offer = offers.get(queue)
        candidate = None if offer is None else self._next(queue, slot, priority, offer.candidates)
        while candidate is None and (offer is None or self._used_up(queue, offer)):
            if offer is not None:
                self._delete_taken()  # an offer is read from ``ready``
            before = self._removed[queue]
            offer = offers[queue] = _Offer(self._offer(queue, lanes, priority, n), before)
            candidate = self._next(queue, slot, priority, offer.candidates)
        return candidate

    def _used_up(self, queue: str, offer: _Offer) -> bool:
        """Return whether jobs that found their lock taken have used up an offer, or the quota of their share in it.
        Then the queue offers others, unless as many have left as one transaction removes."""
        return not offer.candidates and offer.removed != self._removed[queue] and not self.claim_again

    def _offer(self, queue: str, lanes: list[Lane], priority: int, n: int) -> list[Candidate]:
        """Return a queue's candidates for so many slots; more where some may find their lock taken."""
        lanes = [lane for lane in lanes if (lane.type, lane.stage) not in self._probed]
        if not lanes or self._limits.limit(queue) == 0:
            return []
        if any(self._lane_request(lane).locks for lane in lanes):
            n += LOCK_MOVES
        return self._candidates.of(queue, lanes, priority, n)

    def _next(self, queue: str, slot: int, priority: int, candidates: list[Candidate]) -> Candidate | None:
        """Return the queue's next candidate for this slot; jobs whose lock is taken are put aside. None: the
        queue is at its limit, or has no more candidates. ``candidates`` are in reverse order and lose what
        was looked at."""
        while candidates and self._limits.has_room(queue, slot):
            candidate = candidates.pop()
            lane = self.registry.lanes[candidate[2]]
            if not self._lane_request(lane).locks or self._locks_free(priority, candidate, lane):
                if lane.probing:  # only now: a job that waits for a lock does not probe, and another may
                    self._probed.add((lane.type, lane.stage))
                return candidate
            _keep_turn(candidates, candidate[3])
        return None

    def _give(self, queue: str, slot: int, priority: int, candidate: Candidate) -> None:
        """Assign a candidate to a slot, and take it out of ``ready``; its lease is written at the end."""
        _, job_id, lane, share = candidate
        self._take_out(priority, candidate)
        self._assignments.add(slot, lane, share, job_id)
        self._limits.occupy(queue, [slot])
        self._served_last(queue, share)

    def _take_out(self, priority: int, candidate: Candidate) -> None:
        """Let a candidate leave ``ready``, with others: see ``_delete_taken``."""
        position, _, lane, share = candidate
        self._taken.append((lane, priority, share, position))

    def _delete_taken(self) -> None:
        """Delete the rows in ``ready`` of the candidates that were taken out since the last call."""
        ready_moves.out_of_ready(self.tx, self._taken)
        self._taken.clear()

    def _served_last(self, queue: str, share: int) -> None:
        """Note whose turn it was. Share 0 is that of queues without shares, in which nobody has a turn."""
        self.rotation.queue = queue
        if share:
            self.rotation.shares[queue] = share

    # --- locks ----------------------------------------------------------------------------

    def _locks_free(self, priority: int, candidate: Candidate, lane: Lane) -> bool:
        """Take the job's locks; when one is taken, the job waits for it, and no slot does. A row without a job (in a
        damaged database) is removed from ``ready``: nothing is leased for it."""
        lock_templates = self._lane_request(lane).locks
        row = job_rows.existing(self.tx, candidate[1])
        if row is None:
            self._take_out(priority, candidate)
            self._removed[lane.queue] += 1
            return False
        try:
            busy_lock = locks.take(self.tx, self.registry, row.id, lock_templates, self.now_us)
        except BadParameters as error:
            # The claim's other jobs must not be affected, and a retry would fail again.
            self.cascade.withdraw(row)
            mark = failures.of_engine(self.tx, row.type, row.stage, "BadParameters", str(error), self.now_us)
            self.cascade.fail(row, str(error), mark=mark)
            self._removed[lane.queue] += 1
            return False
        if busy_lock is None:
            return True
        if self._lock_moves < LOCK_MOVES:
            self._lock_moves += 1
            self._removed[lane.queue] += 1
            self.cascade.withdraw(row)
            self.cascade.wait(row, f"lock:{busy_lock}", f"waits for the lock {busy_lock!r}")
        return False


def _is_quick(lane_request: LaneRequest | None) -> bool:
    """Return whether jobs of a lane may be put behind others in one slot: the node has measured how long they
    run, and allows it, and they take no locks, because a job would keep its locks from others while it waits
    in the slot."""
    return lane_request is not None and lane_request.run_us is not None and not lane_request.locks


def _keep_turn(candidates: list[Candidate], share: int) -> None:
    """Let the next candidate of a share come first, because the one before it has found its lock taken: the turn is
    still that of the share."""
    for place in range(len(candidates) - 1, -1, -1):
        if candidates[place][3] == share:
            candidates.append(candidates.pop(place))
            return


def _tickets(slots: list[SlotBudget]) -> list[int]:
    """Return slot numbers in the order in which they are served: one each, round after round."""
    tickets: list[int] = []
    remaining = [(slot, jobs) for slot, jobs, us in slots if jobs > 0 and us > 0]
    while remaining:
        rounds = min(jobs for _, jobs in remaining)
        tickets += [slot for slot, _ in remaining] * rounds
        remaining = [(slot, jobs - rounds) for slot, jobs in remaining if jobs > rounds]
    return tickets


def _within(tickets: list[int], remaining: dict[int, int]) -> list[int]:
    """Return the tickets of slots whose count is not used up."""
    within = []
    for slot in tickets:
        if remaining.get(slot, 0) > 0:
            remaining[slot] -= 1
            within.append(slot)
    return within
