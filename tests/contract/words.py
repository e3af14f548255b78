"""The words in which the contract is told: a site with a store, a clock set by hand, and nodes.

A ``Node`` here keeps the books that a real one keeps (which of its slots are taken), so that a test
says ``site.claim(slots=2)`` and need not number slots.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import job_verbs
from job_verbs import Changed
from spinney.model.homes import FolderRoot
from spinney.model.jobs import (
    ClaimRequest,
    Filter,
    FlushResult,
    Job,
    LaneRequest,
    Lease,
    NodeInfo,
    Record,
    SlotRequest,
    Submission,
)
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.types import Backoff, LockSpec, StageSpec, TypeSpec
from spinney.store.parts import Store

SECOND_US = 1_000_000
BUDGET_US = 100_000.0
STEADY = Backoff(base_s=1.0, factor=2.0, cap_s=3.0, jitter=0.0)
"""A backoff without chance: 1, 2, 3, 3, … seconds."""


class Clock:
    """Wall time in microseconds, moved by hand."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def forward(self, seconds: float) -> int:
        self.now_us += round(seconds * SECOND_US)
        return self.now_us


class RealClock(Clock):
    """The time of day, which nobody moves: for a store on which a server or a node works as well."""

    def __init__(self) -> None:
        pass

    @property
    def now_us(self) -> int:  # type: ignore[override]  # what others move is a plain field
        return time.time_ns() // 1000


def stage(name: str, **policy: Any) -> StageSpec:
    return StageSpec(name=name, **{"backoff": STEADY} | policy)


def kind(name: str, *stages: str | StageSpec, **policy: Any) -> TypeSpec:
    """A job type; a stage may be given by its name alone."""
    made = tuple(s if isinstance(s, StageSpec) else stage(s) for s in stages)
    return TypeSpec(name=name, stages=made, **policy)


def locked(template: str, until: str = "attempt") -> tuple[LockSpec, ...]:
    return (LockSpec(template=template, until=until),)


ONE = kind("one", "work")
THREE = kind("three", "first", "second", "third")
TENACIOUS = kind("tenacious", stage("work", max_attempts=3))
PARENT = kind("parent", "expand", "merge")
"""Goes on only when all its children completed."""
BATCH = kind("batch", "expand", stage("report", again=True), children="settled")
"""Goes on whatever became of its children, and reports again when they regrew."""
LOCKED = kind("locked", stage("work", locks=locked("receiver:{serno}")))
USUAL = (ONE, THREE, TENACIOUS, PARENT, BATCH, LOCKED)


@dataclass
class Node:
    """What a test's node knows of itself."""

    id: int
    name: str
    slots: int
    busy: dict[int, int] = field(default_factory=dict)
    """Fence to slot of every lease it has."""

    def free(self) -> list[int]:
        taken = set(self.busy.values())
        return [s for s in range(self.slots) if s not in taken]


class Site:
    """A store as tests use it: verbs with the usual arguments filled in."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self._here: Node | None = None
        self._nodes: dict[int, Node] = {}
        self._owner: dict[int, Node] = {}

    # --- declaring ------------------------------------------------------------------------

    def knows(self, *types: TypeSpec, queues: Iterable[QueueSpec] = ()) -> None:
        self.store.register(types, queues)

    @property
    def here(self) -> Node:
        """A node with room for whatever a test does not care to count."""
        if self._here is None:
            self._here = self.node("here", slots=64)
        return self._here

    def node(
        self,
        name: str,
        slots: int = 4,
        types: tuple[str, ...] = (),
        serves: QueueSelection = ALL,
        root: FolderRoot | None = None,
        **more: Any,
    ) -> Node:
        info = NodeInfo(
            **{"boot_id": "boot-1", "host": "host", "lease_s": 15.0} | more,
            id=0,
            name=name,
            pid=1,
            slots=slots,
            state="active",
            beat=0,
            started_us=self.now,
            seen_us=self.now,
            version="0",
            types=types,
            serves=serves,
            root=root,
        )
        made = Node(self.store.join(info, now_us=self.now), name, slots)
        self._nodes[made.id] = made
        return made

    # --- making jobs ----------------------------------------------------------------------

    def submit(self, of: str = "one", *params: Mapping[str, Any], n: int = 1, **fields: Any) -> list[int]:
        """One call with one submission; ``n`` jobs with empty parameters unless some are given."""
        return list(self.store.submit([submission(of, *params, n=n, **fields)], now_us=self.now).ids)

    def submit_one(self, of: str = "one", params: Mapping[str, Any] | None = None, **fields: Any) -> int:
        (job_id,) = self.submit(of, params or {}, **fields)
        return job_id

    def submit_all(self, *submissions: Submission) -> list[int]:
        return list(self.store.submit(submissions, now_us=self.now).ids)

    def spawn(self, lease: Lease, of: str = "one", n: int = 1, **fields: Any) -> list[int]:
        return self.spawn_all(lease, submission(of, n=n, **fields))

    def spawn_all(self, lease: Lease, *submissions: Submission) -> list[int]:
        return list(self.store.spawn(lease.job_id, lease.fence, submissions, now_us=self.now))

    def submit_from(self, lease: Lease, of: str = "one", n: int = 1, **fields: Any) -> list[int]:
        """Jobs of their own, submitted by a running attempt."""
        made = [submission(of, n=n, **fields)]
        return list(self.store.submit_from(lease.job_id, lease.fence, made, now_us=self.now))

    # --- claiming -------------------------------------------------------------------------

    def want(
        self,
        node: Node,
        slots: int | None = None,
        lanes: Collection[tuple[str, str]] | None = None,
        jobs: int = 1,
        run_us: float | None = None,
        budget_us: float = BUDGET_US,
    ) -> ClaimRequest:
        """``slots``: how many of the free ones ask (None: all)."""
        asking = node.free() if slots is None else node.free()[:slots]
        return ClaimRequest(
            node_id=node.id,
            slots=[SlotRequest(s, jobs, budget_us, True) for s in asking],
            lanes=self.lanes(lanes, run_us),
        )

    def lanes(
        self, only: Collection[tuple[str, str]] | None = None, run_us: float | None = None
    ) -> dict[tuple[str, str], LaneRequest]:
        return {
            (spec.name, s.name): LaneRequest(
                run_us=run_us, locks=tuple((lock.template, lock.until) for lock in s.locks)
            )
            for spec in self.store.types().values()
            for s in spec.stages
            if only is None or (spec.name, s.name) in only
        }

    def claim(self, node: Node | None = None, slots: int | None = None, **how: Any) -> list[Lease]:
        node = node or self.here
        return self.flush_and_claim([], self.want(node, slots, **how)).leases

    def claim_one(self, node: Node | None = None, **how: Any) -> Lease:
        (lease,) = self.claim(node, 1, **how)
        return lease

    def claim_by_job(self, node: Node | None = None, **how: Any) -> dict[int, Lease]:
        return {lease.job_id: lease for lease in self.claim(node, **how)}

    def run(self, job_id: int, node: Node | None = None) -> Lease:
        """Claim one job and mark it as running; it must be this one."""
        lease = self.claim_one(node)
        assert lease.job_id == job_id, f"claimed {lease.job_id} where {job_id} was due"
        self.start(lease)
        return lease

    def start(self, *leases: Lease) -> None:
        self.store.started([lease.fence for lease in leases], now_us=self.now)

    def flush_and_claim(self, records: Sequence[Record], want: ClaimRequest | None = None) -> FlushResult:
        """Talk to the store and keep the nodes' books."""
        answer = self.store.flush_and_claim(records, want, now_us=self.now)
        for record in records:
            if record not in answer.refused and record.fence in self._owner:
                node = self._owner[record.fence]
                slot = node.busy.pop(record.fence, None)
                for lease in answer.leases:
                    if lease.job_id == record.job_id and lease.slot == slot and want is None:
                        self._own(node, lease)
        if want is not None:
            for lease in answer.leases:
                self._own(self._nodes[want.node_id], lease)
        return answer

    def _own(self, node: Node, lease: Lease) -> None:
        node.busy[lease.fence] = lease.slot
        self._owner[lease.fence] = node

    # --- recording ------------------------------------------------------------------------

    def entry(self, lease: Lease, outcome: Outcome = Outcome.OK, **fields: Any) -> Record:
        """A record as its node would write it."""
        if "result" in fields:
            fields["result"] = json.dumps(fields["result"])
        if "error" in fields:
            fields["error"] = json.dumps(fields["error"])
        times = {"started_us": self.now, "ended_us": self.now}
        return Record(job_id=lease.job_id, fence=lease.fence, outcome=outcome, **times | fields)

    def record(self, lease: Lease, outcome: Outcome, **fields: Any) -> FlushResult:
        return self.flush_and_claim([self.entry(lease, outcome, **fields)])

    def pass_(self, *leases: Lease, **fields: Any) -> FlushResult:
        return self.flush_and_claim([self.entry(lease, **fields) for lease in leases])

    def fail(self, *leases: Lease, **fields: Any) -> FlushResult:
        """For good: no further attempt."""
        how = {"retryable": False, "message": "it broke"} | fields
        return self.flush_and_claim([self.entry(lease, Outcome.ERROR, **how) for lease in leases])

    def drain(self, failing: Collection[int] = (), node: Node | None = None) -> list[tuple[int, str]]:
        """Run whatever can be claimed until nothing is left; returns (job, stage) in that order."""
        ran: list[tuple[int, str]] = []
        for _ in range(1000):
            leases = self.claim(node)
            if not leases:
                return ran
            for lease in leases:
                ran.append((lease.job_id, lease.stage))
                (self.fail if lease.job_id in failing else self.pass_)(lease)
        raise AssertionError("the work does not end")

    # --- time and operators ---------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.clock.now_us

    def later(self, seconds: float) -> None:
        """Let time pass, and let housekeeping see it."""
        self.clock.forward(seconds)
        self.sweep()

    def sweep(self) -> None:
        for _ in range(1000):
            if not self.store.sweep(now_us=self.now).more:
                return
        raise AssertionError("housekeeping does not end")

    def cancel(self, job_id: int, tree: bool = False) -> Changed:
        return job_verbs.cancel(
            self.store, job_id, tree=tree, by="ann", reason="wrong batch", now_us=self.now
        )

    def retry(self, job_id: int, stage: str | None = None) -> Changed:
        return job_verbs.retry(self.store, job_id, stage=stage, by="ann", now_us=self.now)

    def rerun(self, job_id: int, stage: str | None = None) -> Changed:
        return job_verbs.rerun(self.store, job_id, stage=stage, by="ann", now_us=self.now)

    def release(self, job_id: int) -> Changed:
        return job_verbs.release(self.store, job_id, by="ann", now_us=self.now)

    def delete(self, job_id: int) -> set[int]:
        return set(job_verbs.delete(self.store, job_id, by="ann", now_us=self.now))

    def recover(self, node: Node, running: Mapping[int, int] | None = None) -> list[int]:
        node.busy.clear()
        return list(self.store.recover(node.id, running, now_us=self.now))

    # --- looking --------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        return self.store.job(job_id)

    def state(self, job_id: int) -> State:
        return self.store.job(job_id).state

    def states(self, job_ids: Iterable[int]) -> list[State]:
        return [self.state(job_id) for job_id in job_ids]

    def children(self, job_id: int) -> list[int]:
        return [job.id for job in self.store.children(job_id)]

    def ids(self, **which: Any) -> list[int]:
        return [job.id for job in self.store.jobs(Filter(**which), limit=100_000)]

    def stages_run(self, job_id: int) -> list[str]:
        return [attempt.stage for attempt in self.store.attempts(job_id)]

    def count(self, **which: Any) -> dict[str, int]:
        """Without the zeros, which a store may give or leave out."""
        return {str(k): v for k, v in self.store.counts(Filter(**which)).items() if v}

    # --- whole situations -----------------------------------------------------------------

    def family(
        self, of: str = "parent", n: int = 2, child: str = "one", **fields: Any
    ) -> tuple[int, list[int]]:
        """A parent that waits for the ``n`` children which its first stage bore."""
        parent = self.submit_one(of, **fields)
        lease = self.run(parent)
        born = self.spawn(lease, child, n=n)
        self.pass_(lease)
        return parent, born


def submission(of: str = "one", *params: Mapping[str, Any], n: int = 1, **fields: Any) -> Submission:
    texts = tuple(json.dumps(p) for p in params) or ("{}",) * n
    return Submission(type=of, params=texts, **fields)
