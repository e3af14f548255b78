"""The candidates that a queue offers for a claim, in the fair order of its shares.

Shares are read by a loose index scan over ``ready``, starting after the last served one, and only as many as can
matter: at most as many shares hold leases as there are slots. So a claim costs the same with one share and with a
hundred thousand.

Until a hold on a tree, a collection or a submitter is swept, jobs that it covers may still be in ``ready``: then each
candidate is checked (``HoldFilter``), which costs nothing when there is no such hold."""

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice

from spinney.scheduling.fairness import deal
from spinney.store.sql.claim.rotation import Rotation
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, nodes
from spinney.store.sql.registry.registry import Lane, Registry
from spinney.store.sql.transitions import ready_moves
from spinney.store.sql.transitions.cascades import Cascade

_ALL_SHARES = -(2**62)
WITHHELD_MOST = 100
"""The most jobs under an unswept hold that one claim makes held."""
# A loose index scan: the shares of a lane and priority that have rows, one seek in the primary key for each,
# from (?3 share, ?4 position) on. Written with "order by … limit 1", because PostgreSQL may read the whole
# table for min().
_SHARES = (
    "with recursive s(share) as ("
    "select (select r.share from ready r where r.lane = ?1 and r.priority = ?2 and (r.share, r.position) >= (?3, ?4) "
    "order by r.share, r.position limit 1) union all "
    "select (select r.share from ready r where r.lane = ?1 and r.priority = ?2 and r.share > s.share "
    "order by r.share limit 1) from s where s.share is not null) select share from s where share is not null limit ?5"
)
TOGETHER = 5
"""The least number of shares for which one statement for all is faster."""
_FIRST_OF_EACH = (
    "select r.position, r.job_id, r.lane, r.share from (select j.value as share, (select p.position from ready p "
    "where p.lane = ?1 and p.priority = ?2 and p.share = j.value order by p.position limit 1 offset ?3 - 1) as last "
    "from json_each(?4) j limit 1000000) s cross join ready r "
    "where r.lane = ?1 and r.priority = ?2 and r.share = s.share and r.position <= coalesce(s.last, '~') "
    "order by r.share, r.position"
)
"""The first rows (as many as the third argument) of each of these shares. Every position consists of digits and dots,
and so sorts before ``~``. The limit keeps the inner select separate: its last positions are computed once for each
share."""
_FIRST_OF_EACH_POSTGRESQL = (
    "select r.position, r.job_id, r.lane, r.share from json_each(?4) j cross join lateral "
    "(select * from ready where lane = ?1 and priority = ?2 and share = j.value order by position limit ?3) r "
    "order by r.share, r.position"
)
"""The same for PostgreSQL, whose planner would scan ``ready`` and look each row up among the shares."""


Candidate = tuple[str, int, int, int]
"""(position, job id, lane, share) of a row in ``ready``."""


class Assignments:
    """The jobs that a claim has assigned so far, by slot and lane, and which share holds which slots."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[int, int], list[int]] = {}
        """(slot, lane) to job ids, in the order in which they are to run."""
        self.holds: dict[int, dict[int, set[int]]] = {}
        """The slots that each share holds, by lane."""

    def add(self, slot: int, lane_id: int, share: int, job_id: int) -> None:
        """Assign a job of a lane to a slot, behind those that the slot has of this lane."""
        self.jobs.setdefault((slot, lane_id), []).append(job_id)
        self.holds.setdefault(lane_id, {}).setdefault(share, set()).add(slot)

    def add_all(self, lane_id: int, slots: Sequence[int], chosen: Sequence[Candidate]) -> Mapping[int, int]:
        """Assign each of a lane's candidates to the slot at the same index; return how many each slot got."""
        numbers = Counter(slots[: len(chosen)])
        jobs_of = {slot: self.jobs.setdefault((slot, lane_id), []) for slot in numbers}
        for slot, candidate in zip(slots, chosen, strict=False):
            jobs_of[slot].append(candidate[1])
        holds = self.holds.setdefault(lane_id, {})
        for slot, share in set(zip(slots, [candidate[3] for candidate in chosen], strict=False)):
            holds.setdefault(share, set()).add(slot)
        return numbers


class HoldFilter:
    """Keeps jobs that a hold covers from being claimed before they are swept: the claim itself makes some of them held,
    so that others can be claimed even without a sweep; candidates behind the rest wait."""

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade
        self._left = WITHHELD_MOST

    def free(self, candidates: list[Candidate], priority: int) -> tuple[list[Candidate], bool]:
        """Return the first of these candidates of one lane and share that no hold covers, and whether more may follow
        them. The rest is still first in ``ready``.

        At the first covered candidate that this claim may not move any more the list ends: a prefix of the
        share is claimed by position (``claims._PREFIX``), and must not have a covered job in it."""
        tx, holds = self._cascade.tx, self._cascade.registry.holds
        covered = hold_coverage.among(tx, holds, holds.asking, [c[1] for c in candidates])
        if not covered:
            return candidates, False
        out = [c for c in candidates if c[1] in covered][: self._left]
        self._left -= len(out)
        ready_moves.out_of_ready(tx, [(lane, priority, share, position) for position, _, lane, share in out])
        ready_moves.to_held(self._cascade, {c[1]: covered[c[1]] for c in out})
        held = {c[1] for c in out}
        for n, candidate in enumerate(candidates):
            if candidate[1] in covered and candidate[1] not in held:
                return [c for c in candidates[:n] if c[1] not in held], False
        return [c for c in candidates if c[1] not in held], True


class Candidates:
    """The candidates for one claim; its ``assignments`` count as held.

    Nothing is written or reserved: a candidate is a row of ``ready`` that stays there until the claim takes
    it. Slots that shares hold are read once for each queue."""

    def __init__(
        self,
        tx: Tx,
        registry: Registry,
        rotation: Rotation,
        node_id: int,
        assignments: Assignments,
        withholding: HoldFilter | None,
    ) -> None:
        self.tx, self.registry, self.rotation = tx, registry, rotation
        self.node_id, self.assignments, self.withholding = node_id, assignments, withholding
        self._serving = nodes.ServingSlots(tx)
        self._held: dict[str, dict[int, set[tuple[int, int]]]] = {}
        self.least: dict[tuple[int, int], int] = {}
        """(lane, priority) to its first share, where the claim knows it."""

    def of(self, queue: str, lanes: list[Lane], priority: int, n: int, run: int = 1) -> list[Candidate]:
        """Return up to ``n`` candidates of these lanes at this priority, in reverse order. ``run``: how many jobs of
        one share may follow one another, when they are so short that no other share waits long."""
        sharing = self.registry.queue(queue).shared
        if sharing == "none":
            candidates = self._of_share(lanes, priority, 0, n)
        else:
            shares = self._shares_in_turn(queue, lanes, priority, -(-n // run))
            if len(shares) == 1 and sharing == "shares":
                candidates = self._of_share(lanes, priority, shares[0], n)
            else:
                candidates = self._dealt(queue, lanes, priority, shares, n, run)
            if run > 1 and len(candidates) < n <= len(shares) * run:
                # They have fewer each than that: more shares, with what those have on average.
                return self.of(
                    queue, lanes, priority, n, max(1, min(run // 2, len(candidates) // len(shares)))
                )
        candidates.reverse()
        return candidates

    def _dealt(
        self, queue: str, lanes: list[Lane], priority: int, shares: list[int], n: int, run: int
    ) -> list[Candidate]:
        """Return up to ``n`` candidates in the order in which ``fairness.deal`` gives the shares their turns.

        ``deal`` needs to know how many jobs each share has, and counting them could cost more than the claim.
        So it first assumes that each has enough; shares that turn out to have fewer are dealt again with what
        they have."""
        held = {share: len(slots) for share, slots in self._held_by(queue).items()}
        at_most, spec = None, self.registry.queue(queue)
        if spec.shared == "quota":
            at_most = self._serving.most_per_share(spec, len(set(shares) | set(held)))
        # A share is read as deep as it is dealt; when others have too few, twice as deep, so that few rounds suffice.
        supply, depth = dict.fromkeys(shares, n), dict.fromkeys(shares, 0)
        candidates: dict[int, list[Candidate]] = {}
        while True:
            picks = deal(held, shares, supply, n, at_most, run, spec.turn)
            deeper = {s: max(k, 2 * depth[s]) for s, k in Counter(picks).items() if k > depth[s]}
            if not deeper:
                break
            candidates |= self._of_shares(lanes, priority, deeper)
            depth |= deeper
            short = {s: len(candidates[s]) for s, k in deeper.items() if len(candidates[s]) < k}
            if not short:
                break
            supply |= short
        iterators = {s: iter(c) for s, c in candidates.items()}
        return [next(iterators[s]) for s in picks]

    def _held_by(self, queue: str) -> dict[int, set[tuple[int, int]]]:
        """Return by share the (node, slot) pairs that it holds in this queue, those of this claim
        included."""
        if queue not in self._held:
            held: dict[int, set[tuple[int, int]]] = {}
            for share, node, slot in self.tx.all(
                "select distinct share, node_id, slot from leases where fence >= ? "
                "and lane in (select j.value from json_each(?) j)",
                (self.registry.watermarks.fence, self.registry.lanes_of(queue)),
            ):
                held.setdefault(share, set()).add((node, slot))
            self._held[queue] = held
        held = self._held[queue]
        for lane_id, shares in self.assignments.holds.items():
            if self.registry.lanes[lane_id].queue == queue:
                for share, slots in shares.items():
                    held.setdefault(share, set()).update((self.node_id, slot) for slot in slots)
        return held

    def _shares_in_turn(self, queue: str, lanes: list[Lane], priority: int, n: int) -> list[int]:
        """Return the shares with ready jobs, starting after the last served one: as many as can matter."""
        after = self.rotation.shares.get(queue, _ALL_SHARES)
        enough = n + 1
        if self.registry.queue(queue).shared == "quota":
            enough = max(enough, self._serving.count(self.registry.queue(queue)))
        # At most as many shares hold leases as there are slots: after them come enough that hold none.
        counted = len(self._held[queue]) if queue in self._held else 0
        shares = self._scan_around(lanes, priority, after, enough + counted)
        if len(shares) <= 1:
            return shares
        held = self._held_by(queue)
        if len(shares) >= enough + counted and len(held) > counted and any(held.get(s) for s in shares):
            shares = self._scan_around(lanes, priority, after, enough + len(held))
        # More would only shorten the runs, and the next claim would find still more that hold leases.
        free = [place for place, share in enumerate(shares) if not held.get(share)]
        return shares if len(free) < enough else shares[: free[enough - 1] + 1]

    def _scan_around(self, lanes: list[Lane], priority: int, after: int, limit: int) -> list[int]:
        """Return the shares after ``after``, continuing with the first ones after the last."""
        shares = self._scan_shares(lanes, priority, after, limit)
        around = any(self.least.get((lane.id, priority), after) <= after for lane in lanes)
        if len(shares) < limit and after != _ALL_SHARES and around:
            shares += [
                s for s in self._scan_shares(lanes, priority, _ALL_SHARES, limit - len(shares)) if s <= after
            ]
        return shares

    def _scan_shares(self, lanes: list[Lane], priority: int, after: int, limit: int) -> list[int]:
        """Return up to ``limit`` shares after ``after``, in ascending order, merged over the lanes."""
        per_lane = []
        for lane in lanes:
            share, low = self.registry.watermarks.start_of(lane.id, priority, after)
            per_lane.append(self.tx.column(_SHARES, (lane.id, priority, share, low, limit)))
        if len(per_lane) == 1:
            return per_lane[0]
        return list(islice(dict.fromkeys(merge(*per_lane)), limit))

    def _of_shares(
        self, lanes: list[Lane], priority: int, counts: Mapping[int, int]
    ) -> dict[int, list[Candidate]]:
        """Return the first candidates of each share, by one statement for all shares with the same number."""
        if len(lanes) > 1 or len(counts) < TOGETHER or self.withholding is not None:
            return {share: self._of_share(lanes, priority, share, n) for share, n in counts.items()}
        first_of_each = _FIRST_OF_EACH_POSTGRESQL if self.tx.postgresql else _FIRST_OF_EACH
        candidates: dict[int, list[Candidate]] = {share: [] for share in counts}
        for n in set(counts.values()):
            shares = list_text(share for share, k in counts.items() if k == n)
            for candidate in self.tx.all(first_of_each, (lanes[0].id, priority, n, shares)):
                candidates[candidate[3]].append(candidate)
        return candidates

    def _of_share(self, lanes: list[Lane], priority: int, share: int, n: int) -> list[Candidate]:
        """Return the first ``n`` candidates of a share, over its lanes, in the order of the queue."""
        per_lane = [self._of_lane(lane.id, priority, share, n) for lane in lanes]
        return per_lane[0] if len(per_lane) == 1 else list(islice(merge(*per_lane), n))

    def _of_lane(self, lane_id: int, priority: int, share: int, n: int) -> list[Candidate]:
        """Return the first ``n`` candidates of a share in one lane. With holds that are not swept yet there
        may be fewer, or another round is read after covered ones have left ``ready``."""
        sql = (
            "select position, job_id, lane, share from ready where lane = ? and priority = ? and share = ? "
            "and position >= ? order by position limit ?"
        )
        low = self.registry.watermarks.low(lane_id, priority, share)
        while True:
            candidates: list[Candidate] = self.tx.all(sql, (lane_id, priority, share, low, n))
            if self.withholding is None:
                return candidates
            free, more = self.withholding.free(candidates, priority)
            if not more or len(candidates) < n:
                return free
