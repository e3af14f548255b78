"""Leases: who gets which slot, in one short transaction.

Strict priority over all queues that the node serves; within a priority queues in turn; within a
queue shares in turn, fewest slots held first. Free slots get one job each before anything is looked
ahead. Limits and what shares hold are counted from ``leases``, here and now.

The rotation (which queue and which share was served last) lives in the store object: it is a matter
of politeness, not of safety, and is rebuilt by use after a restart.
"""

import math
from collections import Counter
from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

import orjson

from spinney.model import locking
from spinney.model.jobs import LaneWant, Lease, SlotWant, Want
from spinney.model.states import State
from spinney.model.types import PRIORITIES
from spinney.scheduling.fairness import deal
from spinney.scheduling.quota import quota
from spinney.stores.sql import placing, rows
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Lane, Registry
from spinney.stores.sql.settling import RESERVED, Consequences

LOCK_MOVES = 200
"""So many jobs may be moved to waiting for a taken lock in one transaction."""
_ALL_SHARES = -(2**62)
_NO_BOUND_US = 1e18

Candidate = tuple[str, int, int, int]
"""(position, job id, lane, share) of a row in ``ready``."""


SlotBudget = tuple[int, int, float]
"""(slot, how many jobs, how many µs)."""


class Rotation:
    """Who was served last."""

    def __init__(self) -> None:
        self.queue = ""
        self.shares: dict[str, int] = {}

    def queues_in_turn(self, names: Sequence[str]) -> list[str]:
        ordered = sorted(names)
        return [n for n in ordered if n > self.queue] + [n for n in ordered if n <= self.queue]


class Chosen(NamedTuple):
    """A job that was given a slot."""

    slot: int
    priority: int
    position: str
    job_id: int
    lane: int
    share: int


class Claim:
    """One claim: made for a transaction, run once."""

    def __init__(
        self,
        tx: Tx,
        registry: Registry,
        rotation: Rotation,
        consequences: Consequences,
        want: Want,
        now_us: int,
    ) -> None:
        self.tx, self.registry, self.rotation, self.want, self.now_us = tx, registry, rotation, want, now_us
        self.consequences = consequences
        self.starved = False
        self._lock_moves = 0
        self._occupying: dict[str, set[tuple[int, int]]] = {}
        self._held: dict[str, dict[int, set[tuple[int, int]]]] = {}
        self._probed: set[int] = set()
        self._chosen: list[Chosen] = []

    def run(self) -> list[Lease]:
        """Fill the slots; returns the leases, in the order in which each slot shall run them."""
        lanes = self._served()
        if not lanes or not self.want.slots or not self._active():
            return []
        free, ahead = self._slots()
        self._fill(lanes, [(s.slot, 1, _NO_BOUND_US) for s in free])
        given = {c.slot: self._run_us(c.lane) for c in self._chosen}
        more = [(s.slot, s.jobs - 1, s.budget_us - given[s.slot]) for s in free if s.slot in given]
        more += [(s.slot, s.jobs, s.budget_us) for s in ahead]
        quick = [lane for lane in lanes if self._wish(lane).run_us is not None and not self._wish(lane).locks]
        if quick and more:
            self._look_ahead(lanes, quick, more)
        return self._lease()

    # --- which slots and lanes ------------------------------------------------------------

    def _active(self) -> bool:
        return bool(self.tx.value("select state from nodes where id = ?", (self.want.node_id,)) == "active")

    def _slots(self) -> tuple[list[SlotWant], list[SlotWant]]:
        """Free slots and those to look ahead for; no more than the node has, over all its incarnations
        (one that is being replaced shares the slots of its successor)."""
        node = self.want.node_id
        own: set[int] = set()
        others: set[int] = set()
        for owner, slot in self.tx.all(
            "select distinct l.node_id, l.slot from nodes n join leases l on l.node_id = n.id "
            "where n.name = (select name from nodes where id = ?)",
            (node,),
        ):
            (own if owner == node else others).add(slot)
        room = self.tx.value("select slots from nodes where id = ?", (node,)) - len(own | others)
        slots = [s for s in self.want.slots if s.slot not in others and s.jobs > 0]
        free = [s for s in slots if s.free and s.slot not in own][: max(0, room)]
        return free, [s for s in slots if s.slot in own]

    def _served(self) -> list[Lane]:
        wanted, now = self.want.lanes, self.now_us
        return [
            lane
            for lane in self.registry.lanes.values()
            if (lane.type, lane.stage) in wanted
            and (lane.asleep_until_us is None or lane.asleep_until_us <= now)
            and not (lane.probing and self._probe_is_out(lane))
        ]

    def _probe_is_out(self, lane: Lane) -> bool:
        """Of a lane that was put to sleep one job probes before the others go on."""
        return self.tx.value("select 1 from leases where lane = ? limit 1", (lane.id,)) is not None

    def _wish(self, lane: Lane) -> LaneWant:
        return self.want.lanes[(lane.type, lane.stage)]

    def _run_us(self, lane_id: int) -> float:
        return self._wish(self.registry.lanes[lane_id]).run_us or 0.0

    # --- filling slots --------------------------------------------------------------------

    def _look_ahead(self, lanes: list[Lane], quick: list[Lane], slots: list[SlotBudget]) -> None:
        """Only at the most urgent priority there is: looking ahead must not overtake what waits for
        a slot (but what waits for its queue's limit is not overtaken by it)."""
        urgent = [lane for lane in lanes if self._below_limit(lane.queue)]
        heads = self._heads(urgent, -1)
        if heads:
            self._fill(quick, slots, until=min(heads.values()))

    def _fill(self, lanes: list[Lane], slots: list[SlotBudget], until: int = PRIORITIES[-1]) -> None:
        """Give each slot up to so many jobs (and µs), most urgent first, up to a priority."""
        tickets = _tickets(slots)
        budget = {slot: us for slot, _, us in slots}
        floor = -1
        while tickets:
            heads = self._heads(lanes, floor)
            floor = min(heads.values(), default=PRIORITIES.stop)
            if floor > until:
                break
            at_floor: dict[str, list[Lane]] = {}
            for lane in lanes:
                if heads.get(lane.id) == floor:
                    at_floor.setdefault(lane.queue, []).append(lane)
            if len(at_floor) == 1 and self._uniform(lanes_there := next(iter(at_floor.values()))):
                tickets = self._deal_uniform(lanes_there[0], floor, tickets, budget)
                continue
            start = len(self._chosen)
            tickets = self._deal_priority(at_floor, floor, tickets, budget)
            self.tx.many(
                "delete from ready where lane = ? and priority = ? and share = ? and position = ?",
                [(c.lane, c.priority, c.share, c.position) for c in self._chosen[start:]],
            )

    # --- the common case: one lane, nothing that limits it ---------------------------------

    def _uniform(self, lanes: list[Lane]) -> bool:
        lane = lanes[0]
        queue = self.registry.queue(lane.queue)
        return len(lanes) == 1 and queue.limit is None and not lane.probing and not self._wish(lane).locks

    def _deal_uniform(
        self, lane: Lane, priority: int, tickets: list[int], budget: dict[int, float]
    ) -> list[int]:
        """What ``_deal_priority`` does, by sets: of each share a prefix of its order is taken."""
        run_us = self._run_us(lane.id)
        if run_us:
            left = {slot: math.ceil(us / run_us) for slot, us in budget.items() if us > 0}
            if sum(left.values()) < len(tickets):
                tickets = _within(tickets, left)
        supply = self._supply(lane.queue, [lane], priority, len(tickets) + 1)
        supply.reverse()
        taken = [Chosen(slot, priority, *c) for slot, c in zip(tickets, supply, strict=False)]
        if not taken:
            return tickets
        last = {c.share: c.position for c in taken}
        self.tx.many(
            "delete from ready where lane = ? and priority = ? and share = ? and position <= ?",
            [(lane.id, priority, share, position) for share, position in last.items()],
        )
        for slot, jobs in Counter(c.slot for c in taken).items():
            budget[slot] -= jobs * run_us
        self._chosen += taken
        self._served_last(lane.queue, taken[-1].share)
        self.starved = self.starved or len(supply) > len(taken)
        return tickets[len(taken) :]

    def _heads(self, lanes: list[Lane], above: int) -> dict[int, int]:
        """The most urgent priority (beyond ``above``) of each lane that has any."""
        sql = (
            "select l.value, (select min(r.priority) from ready r where r.lane = l.value and r.priority > ?) "
            "from json_each(?) l"
        )
        found = self.tx.all(sql, (above, orjson.dumps([lane.id for lane in lanes]).decode()))
        return {lane: head for lane, head in found if head is not None}

    def _deal_priority(
        self, queues: dict[str, list[Lane]], priority: int, tickets: list[int], budget: dict[int, float]
    ) -> list[int]:
        """Queues in turn at one priority; returns the tickets that found nothing."""
        order = self.rotation.queues_in_turn(list(queues))
        supplies = {q: self._supply(q, queues[q], priority, len(tickets) + 1) for q in order}
        left: list[int] = []
        turn = 0
        for slot in tickets:
            if budget[slot] <= 0:
                continue
            for step in range(len(order)):
                name = order[(turn + step) % len(order)]
                candidate = self._next(name, slot, supplies[name])
                if candidate is not None:
                    self._give(name, slot, priority, candidate)
                    budget[slot] -= self._run_us(candidate[2])
                    turn = (turn + step + 1) % len(order)
                    break
            else:
                left.append(slot)
        self.starved = self.starved or any(supplies.values())
        return left

    def _next(self, queue: str, slot: int, supply: list[Candidate]) -> Candidate | None:
        """The next of the queue that may have this slot; those that meet a taken lock are put aside."""
        while supply and self._has_room(queue, slot):
            candidate = supply.pop()
            lane = self.registry.lanes[candidate[2]]
            if lane.probing:
                if lane.id in self._probed:
                    continue
                self._probed.add(lane.id)
            if not self._wish(lane).locks or self._locks_free(candidate, lane):
                return candidate
        return None

    def _give(self, queue: str, slot: int, priority: int, candidate: Candidate) -> None:
        position, job_id, lane, share = candidate
        self._chosen.append(Chosen(slot, priority, position, job_id, lane, share))
        if self.registry.queue(queue).limit is not None:
            self._occupied(queue).add((self.want.node_id, slot))
        self._served_last(queue, share)

    def _served_last(self, queue: str, share: int) -> None:
        self.rotation.queue = queue
        if share:
            self.rotation.shares[queue] = share

    # --- limits ---------------------------------------------------------------------------

    def _occupied(self, queue: str) -> set[tuple[int, int]]:
        """The slots that a limited queue occupies now, this claim's included."""
        if queue not in self._occupying:
            found = self.tx.all(
                "select distinct node_id, slot from leases where lane in (select j.value from json_each(?) j)",
                (self._lanes_of(queue),),
            )
            self._occupying[queue] = {(n, s) for n, s in found}
        return self._occupying[queue]

    def _lanes_of(self, queue: str) -> str:
        return orjson.dumps(
            [lane.id for lane in self.registry.lanes.values() if lane.queue == queue]
        ).decode()

    def _below_limit(self, queue: str) -> bool:
        limit = self.registry.queue(queue).limit
        return limit is None or (limit > 0 and len(self._occupied(queue)) < limit)

    def _has_room(self, queue: str, slot: int) -> bool:
        if self._below_limit(queue):
            return True
        limit = self.registry.queue(queue).limit or 0
        return limit > 0 and (self.want.node_id, slot) in self._occupied(queue)

    # --- what a queue offers, fair share by fair share ------------------------------------

    def _supply(self, queue: str, lanes: list[Lane], priority: int, n: int) -> list[Candidate]:
        """Up to ``n`` candidates (more where some may meet a taken lock), the next to serve last."""
        if self.registry.queue(queue).limit == 0:
            return []
        if any(self._wish(lane).locks for lane in lanes):
            n += LOCK_MOVES
        sharing = self.registry.queue(queue).shared
        if sharing == "none":
            found = self._of_share(lanes, priority, 0, n)
        else:
            shares = self._shares_in_turn(queue, lanes, priority, n)
            if len(shares) == 1 and sharing == "shares":
                found = self._of_share(lanes, priority, shares[0], n)
            else:
                found = self._dealt(queue, lanes, priority, shares, n)
        found.reverse()
        return found

    def _dealt(
        self, queue: str, lanes: list[Lane], priority: int, shares: list[int], n: int
    ) -> list[Candidate]:
        held = {share: len(slots) for share, slots in self._held_by(queue).items()}
        at_most = None
        if self.registry.queue(queue).shared == "quota":
            at_most = quota(self._slots_serving(), len(set(shares) | set(held)))
        # Each round reads a share no deeper than it is dealt; who turns out short is dealt no more.
        supply = dict.fromkeys(shares, n)
        while True:
            picks = deal(held, shares, supply, n, at_most)
            wanted = Counter(picks)
            found = {s: self._of_share(lanes, priority, s, k) for s, k in wanted.items()}
            short = {s: len(found[s]) for s, k in wanted.items() if len(found[s]) < k}
            if not short:
                break
            supply |= short
        each = {s: iter(c) for s, c in found.items()}
        return [next(each[s]) for s in picks]

    def _held_by(self, queue: str) -> dict[int, set[tuple[int, int]]]:
        if queue not in self._held:
            held: dict[int, set[tuple[int, int]]] = {}
            for share, node, slot in self.tx.all(
                "select distinct share, node_id, slot from leases where lane in (select j.value from json_each(?) j)",
                (self._lanes_of(queue),),
            ):
                held.setdefault(share, set()).add((node, slot))
            self._held[queue] = held
        held = self._held[queue]
        for c in self._chosen:
            if self.registry.lanes[c.lane].queue == queue:
                held.setdefault(c.share, set()).add((self.want.node_id, c.slot))
        return held

    def _slots_serving(self) -> int:
        return int(self.tx.value("select coalesce(sum(slots), 0) from nodes where state = 'active'")) or 1

    def _shares_in_turn(self, queue: str, lanes: list[Lane], priority: int, n: int) -> list[int]:
        """Shares with something to do, from behind the last served: as many as could matter."""
        after = self.rotation.shares.get(queue, _ALL_SHARES)
        enough = n + 1
        if self.registry.queue(queue).shared == "quota":
            enough = max(enough, self._slots_serving())
        found = self._scan_shares(lanes, priority, after, enough)
        if len(found) < enough and after != _ALL_SHARES:
            wrapped = self._scan_shares(lanes, priority, _ALL_SHARES, enough)
            found += [s for s in wrapped if s <= after]
        if len(found) <= 1:
            return found
        held = self._held_by(queue)
        if len(found) >= enough and any(held.get(s) for s in found):
            # Those that hold something number at most the slots: behind them come enough that do not.
            found = self._scan_shares(lanes, priority, after, enough + len(held))
        return found

    def _scan_shares(self, lanes: list[Lane], priority: int, after: int, limit: int) -> list[int]:
        sql = (
            "with recursive s(share) as ("
            "select min(share) from ready where lane = ?1 and priority = ?2 and share > ?3 union all "
            "select (select min(r.share) from ready r where r.lane = ?1 and r.priority = ?2 and r.share > s.share) "
            "from s where s.share is not null) select share from s where share is not null limit ?4"
        )
        per_lane = [[s for (s,) in self.tx.all(sql, (lane.id, priority, after, limit))] for lane in lanes]
        if len(per_lane) == 1:
            return per_lane[0]
        return list(islice(dict.fromkeys(merge(*per_lane)), limit))

    def _of_share(self, lanes: list[Lane], priority: int, share: int, n: int) -> list[Candidate]:
        """The first ``n`` of a share, over its lanes, in the order of the queue."""
        sql = (
            "select position, job_id, lane, share from ready where lane = ? and priority = ? and share = ? "
            "order by position limit ?"
        )
        if len(lanes) == 1:
            return list(self.tx.all(sql, (lanes[0].id, priority, share, n)))
        return list(islice(merge(*(self.tx.all(sql, (lane.id, priority, share, n)) for lane in lanes)), n))

    # --- locks ----------------------------------------------------------------------------

    def _locks_free(self, candidate: Candidate, lane: Lane) -> bool:
        """Take the job's locks for it; when one is taken, the job waits for it and no slot does."""
        wanted = self._wish(lane).locks
        row = rows.find(self.tx, candidate[1])
        taken = take_locks(self.tx, row.id, wanted, None, self.now_us)
        if taken is None:
            return True
        if self._lock_moves < LOCK_MOVES:
            self._lock_moves += 1
            placing.leave_ready(self.tx, self.registry, row)
            self.consequences.free_locks(row.id, RESERVED)
            placing.park(
                self.tx, row, State.WAITING, now_us=self.now_us, waits_for=f"lock:{taken}",
                reason=f"for the lock {taken}",
            )  # fmt: skip
        return False

    # --- granting -------------------------------------------------------------------------

    def _lease(self) -> list[Lease]:
        chosen = self._chosen
        if not chosen:
            return []
        tx, lanes = self.tx, self.registry.lanes
        sql = (
            "select jobs.id, jobs.attempts, jobs.params, jobs.parent_id, jobs.root_id from json_each(?) j "
            "join jobs on jobs.id = j.value"
        )
        found = {r[0]: r for r in tx.all(sql, (orjson.dumps([c.job_id for c in chosen]).decode(),))}
        groups: dict[tuple[int, int], list[int]] = {}
        for c in chosen:
            groups.setdefault((c.slot, c.lane), []).append(c.job_id)
        fence = tx.take("fence", len(chosen))
        leases: list[Lease] = []
        for (slot, lane_id), ids in groups.items():
            lane = lanes[lane_id]
            locks = self._wish(lane).locks
            shared = self.registry.queue(lane.queue).shared != "none"
            tx.run(
                _INSERT_LEASES,
                (
                    fence,
                    self.want.node_id,
                    slot,
                    lane_id,
                    shared,
                    not locks,
                    self.now_us,
                    orjson.dumps(ids).decode(),
                ),
            )
            if locks:
                for n, job_id in enumerate(ids):
                    tx.run("update locks set fence = ? where job_id = ? and fence = -1", (fence + n, job_id))
            type_, stage = lane.type, lane.stage
            leases += [
                Lease(i, n, slot, type_, stage, r[1] + 1, r[2], r[3], r[4])
                for n, (i, r) in enumerate(((i, found[i]) for i in ids), fence)
            ]
            fence += len(ids)
        return leases


_INSERT_LEASES = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select jobs.id, ? + j.key, ?, ?, ?, jobs.share * ?, jobs.attempts + 1, jobs.parent_id, "
    "? and jobs.special is null, ? from json_each(?) j join jobs on jobs.id = j.value"
)


def take_locks(
    tx: Tx, job_id: int, wanted: Sequence[tuple[str, str]], fence: int | None, now_us: int
) -> str | None:
    """All of these (template, until) locks for the job, or none: returns the name that was taken.

    In order of name, so that two jobs that want the same ones never each hold half. ``fence`` None:
    the claim fills in the fence when it has one (until then -1).
    """
    params = orjson.loads(tx.value("select params from jobs where id = ?", (job_id,)))
    named = sorted({(locking.render(template, params), until) for template, until in wanted})
    for name, _ in named:
        if not placing.lock_room(tx, name, job_id):
            return name
    for name, until in named:
        owner_fence = None if until == "job" else (-1 if fence is None else fence)
        tx.run(
            "insert into locks (name, job_id, fence, since_us) values (?, ?, ?, ?) on conflict (name, job_id) "
            "do update set fence = case when locks.fence is null then null else excluded.fence end, "
            "since_us = excluded.since_us",
            (name, job_id, owner_fence, now_us),
        )
    return None


def _tickets(slots: list[SlotBudget]) -> list[int]:
    """Slot numbers in the order in which they are served: one each, round after round."""
    tickets: list[int] = []
    left = [(slot, jobs) for slot, jobs, us in slots if jobs > 0 and us > 0]
    while left:
        tickets += [slot for slot, _ in left]
        left = [(slot, jobs - 1) for slot, jobs in left if jobs > 1]
    return tickets


def _within(tickets: list[int], left: dict[int, int]) -> list[int]:
    """The tickets of slots that have some of their count left."""
    kept = []
    for slot in tickets:
        if left.get(slot, 0) > 0:
            left[slot] -= 1
            kept.append(slot)
    return kept
