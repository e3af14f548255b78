"""What must hold, looked at after every committed transaction, from what the database shows and attempts did.

The oracle keeps a memory of its own: which leases there were, which stages have passed, which attempts run where.
It knows nothing of how the engine comes to its decisions, only what it has promised:

* an accepted job is there (promise 1);
* a stage recorded as passed is leased again only when an operator asked, or it is marked ``again`` (2);
* fences grow, a job has one lease, what bears an old fence is refused (3);
* no lease is granted beyond a queue's limit, a node's slots, a lock's capacity (4), under a hold, or to a job that
  is to be cancelled;
* nothing is recovered whose node has beaten within its own lease period, or still runs something (6);
* user code of one job runs once at a time, in one slot one attempt at a time, and under a lease (3, 6).

The time that counts here is the true one, which no node can see.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import orjson

from spinney.model.jobs import Record
from spinney.model.lineage import ancestors
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.settings.capacities import CapacityRules
from spinney.model.types import TypeSpec
from spinney.store.sql.connection.database import Tx

TOO_LATE_S = 2.5
"""From the moment at which an observer may have found a node dead until he takes its leases away, at most."""


class Violation(AssertionError):
    """The engine has broken a promise."""


class Held(NamedTuple):
    """A lease as the database shows it."""

    fence: int
    job_id: int
    node_id: int
    slot: int
    queue: str
    type: str
    stage: str


class Place(Protocol):
    """Where an attempt runs."""

    @property
    def excused(self) -> bool:
        """It does not run now, or has just thawed with its whole machine, and its guard has not looked yet."""


class Oracle:
    """See the module's docstring."""

    def __init__(
        self,
        types: Iterable[TypeSpec],
        now: Callable[[], float],
        lease_s: Callable[[int], float],
        gone: Callable[[int], bool],
    ) -> None:
        """``lease_s``: the lease period that a node obeys, and ``gone``: whether nothing is left of it; in truth."""
        self._types = {spec.name: spec for spec in types}
        self._now, self._lease_s, self._gone = now, lease_s, gone
        self.violation: str | None = None
        self.leases: dict[int, Held] = {}
        self._last_fence = 0
        self.accepted_ids: set[int] = set()
        """Jobs that were accepted."""
        self.states: dict[int, str] = {}
        self._type_of: dict[int, str] = {}
        self._passed: dict[int, dict[str, int]] = {}
        """Job to stage to the fence under which it passed."""
        self._finished: set[int] = set()
        self._beats: dict[int, tuple[int, float]] = {}
        """Node to its counter, and when that last moved."""
        self._late: dict[int, float] = {}
        """Node to when it beat after it had been silent for its lease period."""
        self._running: dict[int, tuple[Held, Place]] = {}
        """By fence: attempts that run user code."""
        self.runs = 0
        self.grants = 0

    def violated(self, what: str) -> None:
        """Remember the first thing that went wrong, and stop whoever did it."""
        if self.violation is None:
            self.violation = what
        raise Violation(what)

    # --- what the database shows ----------------------------------------------------------

    def committed(self, tx: Tx) -> None:
        """A transaction has been committed: look at all that may have moved."""
        before, rows = self.leases, map(Held._make, tx.all(_LEASES))
        self.leases = {row.fence: row for row in rows}
        committed_rows = tx.all("select id, state, type from jobs")
        states = {job_id: state for job_id, state, _ in committed_rows}
        self._type_of = {job_id: type_ for job_id, _, type_ in committed_rows}
        lost = self.accepted_ids - states.keys()
        if lost:
            self.violated(f"accepted jobs {sorted(lost)} are gone")
        self.states = states
        self._look_at_nodes(tx)
        if self.leases.keys() != before.keys():
            self._look_at_ended(tx, [h for f, h in before.items() if f not in self.leases])
            self._look_at_granted(tx, [h for f, h in self.leases.items() if f not in before])
        self._look_at_locks(tx)

    def _look_at_nodes(self, tx: Tx) -> None:
        for node_id, beat in tx.all("select id, beat from nodes"):
            before, since = self._beats.get(node_id, (None, 0.0))
            if before != beat:
                if before is not None and self._now() - since >= self._lease_s(node_id):
                    self._late[node_id] = self._now()
                self._beats[node_id] = (beat, self._now())

    def _look_at_ended(self, tx: Tx, ended: Sequence[Held]) -> None:
        for lease in ended:
            running = self._running.get(lease.fence)
            if running is not None and not running[1].excused:
                self.violated(
                    f"the lease {lease.fence} of job {lease.job_id} ended while its attempt was running"
                )
            for outcome, superseded in tx.all(
                "select outcome, superseded from history where job_id = ? and fence = ?",
                (lease.job_id, lease.fence),
            ):
                if outcome in PASSED and superseded != 1:
                    self._has_passed(lease, outcome)

    def _has_passed(self, lease: Held, outcome: str) -> None:
        passed = self._passed.setdefault(lease.job_id, {})
        if lease.stage in passed and not self._again(lease):
            first = passed[lease.stage]
            self.violated(f"stage {lease.stage} of job {lease.job_id} was recorded twice: {first}, {lease}")
        passed[lease.stage] = lease.fence
        if outcome == Outcome.FINISH:
            self._finished.add(lease.job_id)

    def _look_at_granted(self, tx: Tx, granted: Sequence[Held]) -> None:
        for lease in granted:
            self.grants += 1
            if lease.fence <= self._last_fence:
                self.violated(f"the fence {lease.fence} was given after {self._last_fence}")
            over = lease.job_id in self._finished or lease.stage in self._passed.get(lease.job_id, {})
            if over and not self._again(lease):
                self.violated(
                    f"stage {lease.stage} of job {lease.job_id} had passed and was leased again: {lease}"
                )
            self._look_at_stops(tx, lease)
        self._last_fence = max([self._last_fence, *(h.fence for h in granted)])
        jobs = Counter(h.job_id for h in self.leases.values())
        twice = [j for j, n in jobs.items() if n > 1]
        if twice:
            self.violated(f"jobs {twice} have two leases each")
        self._look_at_limits(tx, {h.queue for h in granted})
        self._look_at_slots(tx, {h.node_id for h in granted})

    def _look_at_stops(self, tx: Tx, lease: Held) -> None:
        """What is to be cancelled begins nothing more, and what a hold covers begins nothing."""
        # Not where it is a whole tree's: that is swept from below, and its top is the last to hear of it.
        stopped = tx.one("select reason from cancel_requests where job_id = ? and tree = 0", (lease.job_id,))
        if stopped is not None:
            self.violated(f"job {lease.job_id} is to be cancelled and was leased: {lease}")
        hold = tx.one(_HOLD, (lease.queue, lease.type, lease.job_id, lease.job_id))
        if hold is not None:
            self.violated(f"the hold {hold} covers job {lease.job_id}, which was leased: {lease}")

    def _again(self, lease: Held) -> bool:
        stage = self._types[lease.type].stage(lease.stage)
        return stage is not None and stage.again

    def _look_at_limits(self, tx: Tx, queues: set[str]) -> None:
        specs = dict(tx.all("select name, spec from queues"))
        for name, settings in tx.all("select name, settings from queue_settings"):
            specs[name] = orjson.dumps(orjson.loads(specs.get(name, "{}")) | orjson.loads(settings))
        for name in sorted(queues & specs.keys()):
            limit = orjson.loads(specs[name]).get("limit")
            if isinstance(
                limit, str
            ):  # a part of the slots of nodes that take something new; all may serve it
                there = tx.value(
                    "select sum(coalesce(s.slots, n.slots)) from nodes n left join node_settings s on s.name = n.name "
                    "where n.state = 'active' and coalesce(s.drained, 0) = 0"
                )
                limit = max(1, math.ceil((there or 1) * int(limit.removesuffix("%")) / 100))
            if limit is not None:
                taken = {(h.node_id, h.slot) for h in self.leases.values() if h.queue == name}
                if len(taken) > limit:
                    self.violated(f"queue {name} has the limit {limit} and occupies {sorted(taken)}")

    def _look_at_slots(self, tx: Tx, granted_to: set[int]) -> None:
        rows = tx.all(
            "select n.id, n.name, coalesce(s.slots, n.slots), coalesce(s.drained, 0) from nodes n "
            "left join node_settings s on s.name = n.name"
        )
        names = {node_id: (name, slots, drained) for node_id, name, slots, drained in rows}
        for node_id in sorted(granted_to):
            name, slots, drained = names[node_id]
            if drained:
                self.violated(f"node {name} is drained and was given a lease")
            taken = {h.slot for h in self.leases.values() if names[h.node_id][0] == name}
            if len(taken) > slots:
                self.violated(f"node {name} has {slots} slots and leases in {sorted(taken)}")

    def _look_at_locks(self, tx: Tx) -> None:
        rules = CapacityRules.of(tx.all("select name, coalesce(set_to, declared) from lock_capacities"))
        owners: dict[str, list[tuple[int, int | None, int]]] = {}
        for name, *had in tx.all("select name, job_id, fence, amount from locks order by name, job_id"):
            owners.setdefault(name, []).append(tuple(had))
        for name, having in owners.items():
            if len(having) < 2:
                continue
            above: set[int] = set()
            for job_id, _, _ in having:
                above.update(ancestors(tx.value("select lineage from jobs where id = ?", (job_id,))))
            # One that keeps it until it settles shares it with those below.
            used = sum(amount for job_id, fence, amount in having if fence is not None or job_id not in above)
            if used > (rules.about(name) or 1):
                self.violated(f"the lock {name} is held by {having}")

    # --- what stores were asked and answered ----------------------------------------------

    def accepted(self, ids: Sequence[int]) -> None:
        self.accepted_ids.update(ids)
        missing = [job_id for job_id in ids if job_id not in self.states]
        if missing:
            self.violated(f"jobs {missing} were accepted and are not there")

    def exchanged(
        self, records: Sequence[Record], refused: Sequence[Record], leased_before: Mapping[int, Held]
    ) -> None:
        """An exchange that began with these leases was given these records, and refused those."""
        owned = {(h.job_id, h.fence) for h in leased_before.values()}
        expected = []
        for record in records:
            if (record.job_id, record.fence) in owned:
                owned.discard((record.job_id, record.fence))
            else:
                expected.append(record.fence)
        if sorted(r.fence for r in refused) != sorted(expected):
            self.violated(
                f"records of the attempts {expected} had to be refused, {[r.fence for r in refused]} were"
            )

    def recovering(self, node_id: int) -> None:
        """Somebody takes the leases of this node away."""
        silent_s = self._now() - self._beats.get(node_id, (0, 0.0))[1]
        # Who saw it silent for so long may have looked just before a beat that came too late.
        late = self._now() - self._late.get(node_id, 0.0) < TOO_LATE_S
        if silent_s < self._lease_s(node_id) and not late and not self._gone(node_id):
            self.violated(
                f"node {node_id} is recovered {silent_s:.3f} s after its last beat, and it lives by a lease of "
                f"{self._lease_s(node_id):g} s"
            )

    @contextmanager
    def asked_again(
        self, job_ids: Sequence[int], stage: str | None, *, rerun: bool
    ) -> Iterator[Callable[[Collection[int]], None]]:
        """An operator wants passed stages again; the block gets what to call with the jobs that stay as they are."""
        before = {j: (dict(self._passed.get(j, {})), j in self._finished) for j in job_ids}
        for job_id in job_ids:
            if rerun or stage is not None:
                self._forget(job_id, stage)

        def left(job_ids: Collection[int]) -> None:
            for job_id in job_ids:
                self._passed[job_id], finished = before[job_id]
                (self._finished.add if finished else self._finished.discard)(job_id)

        yield left

    def _forget(self, job_id: int, stage: str | None) -> None:
        """What has passed counts no more, from that stage on (None: from the first)."""
        spec = self._types.get(self._type_of.get(job_id, ""))
        order = [s.name for s in spec.stages] if spec is not None else []
        behind = order[order.index(stage) :] if stage in order else order if stage is None else []
        for name in behind:
            self._passed.get(job_id, {}).pop(name, None)
        if behind:
            self._finished.discard(job_id)

    # --- what attempts do -----------------------------------------------------------------

    def began(self, job_id: int, fence: int, place: Place) -> None:
        """User code begins."""
        lease = self.leases.get(fence)
        if lease is None:
            if not place.excused:
                self.violated(f"attempt {fence} of job {job_id} begins without a lease")
            return
        self.runs += 1
        for other, where in self._running.values():
            if where.excused:
                continue
            if other.job_id == job_id:
                self.violated(f"attempts {other.fence} and {fence} of job {job_id} run at once")
            if (other.node_id, other.slot) == (lease.node_id, lease.slot):
                self.violated(
                    f"attempts {other.fence} and {fence} run at once in slot {lease.slot} of {lease.node_id}"
                )
        self._running[fence] = (lease, place)

    def places(self) -> list[Any]:
        """Where attempts run now."""
        return [place for _, place in self._running.values()]

    def at_work(self) -> set[int]:
        """Jobs that are leased now."""
        return {lease.job_id for lease in self.leases.values()}

    def ended(self, fence: int) -> None:
        """User code has ended, in whatever way."""
        self._running.pop(fence, None)


_HOLD = (
    "select h.id, h.scope, h.name from holds h where h.scope = 'everything' or (h.scope = 'queue' and h.name = ?) "
    "or (h.scope = 'type' and h.name = ?) or (h.scope = 'job' and h.name = cast(? as text)) or exists (select 1 from "
    "jobs j where j.id = ? and ((h.scope = 'collection' and h.name = j.collection) or (h.scope = 'tree' and exists "
    "(select 1 from jobs top where cast(top.id as text) = h.name and (j.id = top.id or "
    "(j.lineage > top.lineage || '.' and j.lineage < top.lineage || '/')))))) limit 1"
)
_LEASES = (
    "select l.fence, l.job_id, l.node_id, l.slot, lanes.queue, lanes.type, lanes.stage "
    "from leases l join lanes on lanes.id = l.lane order by l.fence"
)
