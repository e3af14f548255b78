"""The life of jobs, driven at random against a plain model, every job compared after every step.

``SPINNEY_LONG=1`` takes its time.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from long_tests import LONG
from spinney.model.errors import DuplicateKey, SpinneyError
from spinney.model.jobs import Filter, Lease
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import SETTLED, State, lawful

from .conftest import PLACES
from .memory_jobs import ModelJob, Refusal
from .memory_model import Model
from .words import Clock, Node, Site, kind, locked, stage

TYPES = (
    kind("one", "work"),
    kind("tenacious", stage("work", max_attempts=3), poison_after=2),
    kind("three", "first", "second", stage("third", max_attempts=2)),
    kind("parent", "expand", stage("merge", again=True), "publish"),
    kind("batch", "expand", stage("report", again=True), stage("tell", max_attempts=2), children="settled"),
    kind("line", "expand", "merge", serial=True, children="settled"),
    kind("fragile", "work", on_lost="orphan"),
)
LOCKED = (
    kind("locked", stage("work", locks=locked("place:{place}"))),
    kind("keeper", stage("work", locks=locked("place:{place}", until="job")), "after"),
)
QUEUES = (QueueSpec(name="free"), QueueSpec(name="narrow", limit=2, sharing="none"))
MENDABLE = (State.FAILED, State.CANCELLED, State.ORPHANED, State.HELD)
NAMES = st.sampled_from([t.name for t in TYPES] + ["parent", "batch", "line"])
LEAVES = st.sampled_from(["one", "tenacious", "three", "parent", "fragile"])
SLOTS = 3
"""Slots of each of the two nodes."""
AHEAD = 2
"""So many jobs a slot is given in an exchange."""
ENDS = st.lists(st.sampled_from([Outcome.OK] * 4 + [Outcome.ERROR]), min_size=SLOTS, max_size=SLOTS)
MANY = 10
"""So many open jobs are enough to begin with: what matters is how far they get."""


class JobLife(RuleBasedStateMachine):
    """One store, two nodes, one operator, and a clock."""

    opener = "sqlite"

    model: Model

    @initialize()
    def begin(self) -> None:
        self.place = ExitStack()
        self.clock = Clock()
        self.store = self.place.enter_context(PLACES[self.opener]())()
        self.site = Site(self.store, self.clock)
        self.site.knows(*TYPES, *LOCKED, queues=QUEUES)
        self.model = Model({t.name: t for t in (*TYPES, *LOCKED)}, {"narrow": 2})
        self.model.now_us = self.clock.now_us
        self.nodes = [self.site.node(f"n{i}", SLOTS) for i in range(2)]
        self.leases: dict[int, Lease] = {}
        self.stale: list[Lease] = []
        self.seen: dict[int, State] = {}

    def teardown(self) -> None:
        if not hasattr(self, "seen"):
            return
        try:
            if sys.exc_info()[0] is None:
                self._run_everything_to_its_end()
        finally:
            self.store.close()
            self.place.close()

    # --- making jobs ----------------------------------------------------------------------

    @precondition(lambda self: sum(job.open for job in self.model.jobs.values()) < MANY)
    @rule(
        of=NAMES,
        n=st.integers(1, 2),
        queue=st.sampled_from(["free", "narrow"]),
        priority=st.sampled_from([10, 50]),
        delay_s=st.sampled_from([None, None, None, 2]),
        share=st.sampled_from([None, "ann", "bob"]),
        data=st.data(),
    )
    def submit(
        self,
        of: str,
        n: int,
        queue: str,
        priority: int,
        delay_s: int | None,
        share: str | None,
        data: st.DataObject,
    ) -> None:
        needs = (
            data.draw(st.lists(st.sampled_from(self._ids()), max_size=2, unique=True)) if self._ids() else []
        )
        needs = [n for n in needs if self.model.jobs[n].state is not State.DELETED]
        at_us = None if delay_s is None else self.clock.now_us + delay_s * 1_000_000
        ids = self.site.submit(
            of, n=n, queue=queue, priority=priority, needs=tuple(needs), at_us=at_us, share=share
        )
        self.model.submitted([self.model.new(i, of, None, queue, priority, needs, at_us) for i in ids])

    @precondition(lambda self: sum(job.open for job in self.model.jobs.values()) < MANY)
    @rule(of=st.sampled_from(["locked", "locked", "keeper"]), n=st.integers(1, 3), place=st.integers(1, 2))
    def submit_with_a_lock(self, of: str, n: int, place: int) -> None:
        ids = self.site.submit(of, *[{"place": place}] * n, queue="free", priority=50)
        made = [self.model.new(i, of, None, "free", 50) for i in ids]
        for job in made:
            job.place = place
        self.model.submitted(made)

    @precondition(lambda self: sum(job.open for job in self.model.jobs.values()) < MANY)
    @rule(of=st.sampled_from(["one", "three"]), key=st.sampled_from("ab"), forever=st.booleans())
    def submit_with_a_key(self, of: str, key: str, forever: bool) -> None:
        owner = self.model.key_owner(key)
        if owner is not None:
            with pytest.raises(DuplicateKey) as refusal:
                self.site.submit_one(of, keys=(key,), forever=forever)
            assert refusal.value.job_id == owner.id
            return
        made = self.model.new(
            self.site.submit_one(of, keys=(key,), forever=forever, queue="free", priority=50),
            of,
            None,
            "free",
            50,
        )
        made.key, made.forever = key, forever
        self.model.submitted([made])

    @precondition(lambda self: self.leases)
    @rule(of=LEAVES, n=st.integers(1, 3), data=st.data())
    def spawn(self, of: str, n: int, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        if job.key is None:  # what it means for a parent that its key has gone is not told here
            self._spawn(lease, of, n)

    def _spawn(self, lease: Lease, of: str, n: int) -> None:
        job = self.model.jobs[lease.job_id]
        try:
            ids = self.site.spawn(lease, of, n=n)
        except SpinneyError:
            assert not self.model.may_spawn(job)
            return
        assert self.model.may_spawn(job)
        self.model.spawned(job, [self.model.new(i, of, job.id, job.queue, job.priority) for i in ids])

    @precondition(lambda self: self.leases and sum(job.open for job in self.model.jobs.values()) < MANY)
    @rule(of=LEAVES, key=st.sampled_from("xy"), data=st.data())
    def spawn_with_a_key(self, of: str, key: str, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        if job.key is not None:
            return
        owner = self.model.child_of_key(job, key)
        is_free = owner is None or owner.type == of
        try:
            (child,) = self.site.spawn(lease, of, keys=(key,))
        except SpinneyError:
            assert not (self.model.may_spawn(job) and is_free)
            return
        assert self.model.may_spawn(job)
        assert is_free
        if owner is None:
            made = self.model.new(child, of, job.id, job.queue, job.priority)
            self.model.spawned_at_once(job, made, key)
        else:
            assert child == owner.id
            self.model.spawned_again(owner)

    @precondition(lambda self: self.leases and sum(job.open for job in self.model.jobs.values()) < MANY)
    @rule(of=LEAVES, n=st.integers(1, 2), priority=st.sampled_from([10, 50]), data=st.data())
    def submit_from_a_stage(self, of: str, n: int, priority: int, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        needs = data.draw(st.lists(st.sampled_from(self._ids()), max_size=1))
        needs = [n for n in needs if self.model.jobs[n].state is not State.DELETED]
        ids = self.site.submit_from(lease, of, n, priority=priority, needs=tuple(needs))
        self.model.sent(job, [self.model.new(i, of, None, "default", priority, needs) for i in ids])

    @precondition(lambda self: self.leases)
    @rule(priority=st.sampled_from([10, 50]), data=st.data())
    def prioritise(self, priority: int, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        if job.place is None:  # who waits for a lock is asked by priority
            self.site.store.prioritise(lease.job_id, lease.fence, priority)
            self.model.prioritised(job, priority)

    # --- attempts -------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), slots=st.integers(1, SLOTS), ahead=st.sampled_from([1, 1, 3]))
    def claim(self, which: int, slots: int, ahead: int) -> None:
        node = self.nodes[which]
        free = node.free()[:slots]
        leases = self.site.claim(node, slots, jobs=ahead, run_us=10.0)
        self._judge(leases, node, free, ahead)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        self.site.start(lease)
        self.model.started(job)

    @precondition(lambda self: self.leases)
    @rule(
        outcome=st.sampled_from(
            [
                Outcome.OK,
                Outcome.OK,
                Outcome.OK,
                Outcome.OK,
                Outcome.WARNING,
                Outcome.NOT_APPLICABLE,
                Outcome.ERROR,
                Outcome.ERROR,
                Outcome.DEFER,
                Outcome.HOLD,
                Outcome.FINISH,
                Outcome.RETURNED,
            ]
        ),
        retryable=st.booleans(),
        data=st.data(),
    )
    def record(self, outcome: Outcome, retryable: bool, data: st.DataObject) -> None:
        lease, _ = self._some_lease(data)
        times = {"started_us": 0, "ended_us": 0} if outcome is Outcome.RETURNED else {}
        self._record(lease, outcome, retryable=retryable, delay_s=2.0, **times)

    @precondition(lambda self: self.leases)
    @rule(delay_s=st.sampled_from([1.0, 5.0]), data=st.data())
    def put_the_stage_to_sleep(self, delay_s: float, data: st.DataObject) -> None:
        lease, job = self._some_lease(data)
        if (
            job.place is None
        ):  # one that waits in a sleeping stage has its lock kept for it, which is not told here
            self._record(lease, Outcome.DEFER, delay_s=delay_s, lane=True)

    def _record(
        self,
        lease: Lease,
        outcome: Outcome,
        *,
        delay_s: float,
        retryable: bool = True,
        lane: bool = False,
        **times: int,
    ) -> None:
        answer = self.site.record(lease, outcome, retryable=retryable, delay_s=delay_s, lane=lane, **times)
        assert answer.refused == []
        self._lost(lease)
        job = self.model.jobs[lease.job_id]
        self.model.recorded(job, outcome, retryable=retryable, delay_s=delay_s, lane=lane)

    @rule(of=LEAVES, n=st.integers(0, 2), outcomes=ENDS)
    def first_node_works(self, of: str, n: int, outcomes: list[Outcome]) -> None:
        self._work(self.nodes[0], of, n, outcomes)

    @rule(of=LEAVES, n=st.integers(0, 2), outcomes=ENDS)
    def second_node_works(self, of: str, n: int, outcomes: list[Outcome]) -> None:
        self._work(self.nodes[1], of, n, outcomes)

    @rule(of=LEAVES, n=st.integers(1, 3))
    def both_nodes_work_and_time_passes(self, of: str, n: int) -> None:
        for node in self.nodes * 2:
            self._work(node, of, n, [Outcome.OK] * SLOTS)
        self.time_passes(1)

    def _work(self, node: Node, of: str, n: int, outcomes: list[Outcome]) -> None:
        """What a busy node does: what it has ends, goes on in its slot where it may, and as much is claimed, in one
        exchange."""
        ended = [lease for lease in self.leases.values() if lease.fence in node.busy][: len(outcomes)]
        for lease in ended:
            if lease.stage == "expand" and n:
                self._spawn(lease, of, n)
        records = [
            self.site.entry(lease, outcome, retryable=False, keep=True)
            for lease, outcome in zip(ended, outcomes, strict=False)
        ]
        for lease in ended:
            del node.busy[lease.fence]
            self._lost(lease)
        free = node.free()
        answer = self.site.flush_and_claim(records, self.site.want(node, jobs=AHEAD, run_us=10.0))
        assert answer.refused == []
        for record in records:
            self.model.recorded(self.model.jobs[record.job_id], record.outcome, retryable=False)
        self._judge(answer.leases, node, free, AHEAD, went_on=[record.job_id for record in records])

    @precondition(lambda self: self.stale)
    @rule(outcome=st.sampled_from([Outcome.OK, Outcome.ERROR]), data=st.data())
    def late_record(self, outcome: Outcome, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.stale))
        record = self.site.entry(lease, outcome)
        assert self.site.flush_and_claim([record]).refused == [record]

    # --- time and operators ---------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 2, 5]))
    def time_passes(self, seconds: int) -> None:
        self.model.now_us = self.clock.forward(seconds)
        self._sweep()

    @precondition(lambda self: self.model.jobs)
    @rule(how=st.sampled_from(["cancel", "cancel tree", "delete", "node dies"]), data=st.data())
    def trouble(self, how: str, data: st.DataObject) -> None:
        if how == "node dies":
            self._die(data.draw(st.integers(0, 1)))
        elif how == "delete":
            job = self._some_job(data, lambda j: not j.open or j.state is State.HELD)
            if job is not None:
                self._both(lambda: self.model.deleted(job), lambda: self.site.delete(job.id))
        else:
            job, tree = self._some_job(data, lambda j: j.open), how == "cancel tree"
            if job is not None:
                self._both(
                    lambda: self.model.cancelled(job, tree=tree), lambda: self.site.cancel(job.id, tree)
                )
                self._sweep()

    def _die(self, which: int) -> None:
        node = self.nodes[which]
        gone = [lease for lease in self.leases.values() if lease.fence in node.busy]
        expected = self.model.recovered(node.id)
        assert sorted(self.site.recover(node)) == sorted(expected)
        for lease in gone:
            self._lost(lease)
        self.nodes[which] = self.site.node(node.name, SLOTS)

    @precondition(lambda self: any(j.state in MENDABLE for j in self.model.jobs.values()))
    @rule(data=st.data())
    def mend(self, data: st.DataObject) -> None:
        """Retry what failed, release what is held."""
        job = self._some_job(data, lambda j: j.state in MENDABLE)
        assert job is not None
        if job.state is State.HELD:
            self._both(lambda: self.model.released(job), lambda: self.site.release(job.id))
        else:
            self._both(lambda: self.model.retried(job), lambda: self.site.retry(job.id))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        """Retry from a stage, or rerun."""
        job = self._some_job(data, lambda j: not j.open and j.state is not State.DELETED and self._at_rest(j))
        if job is None:
            return
        name = data.draw(st.sampled_from([None, *(s.name for s in self.model.types[job.type].stages)]))
        if job.state in MENDABLE and data.draw(st.booleans()):
            self._both(lambda: self.model.retried(job, name), lambda: self.site.retry(job.id, name))
        else:
            self._both(lambda: self.model.rerun(job, name), lambda: self.site.rerun(job.id, name))

    # --- comparing ------------------------------------------------------------------------

    @invariant()
    def every_job_stands_where_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = self.store.jobs(Filter(states=tuple(State)), limit=100_000)
        assert [job.id for job in stored] == sorted(self.model.jobs), "nothing is lost, nothing made up"
        for job in stored:
            expected = self.model.jobs[job.id]
            in_line = job.waits_for is not None and job.waits_for.startswith(("serial", "lock:"))
            shown = State.PENDING if in_line else job.state
            assert shown is expected.shown, (
                f"job {job.id} ({job.type}): {job.state}, the model says {expected.shown}"
            )
            if expected.state is not State.DELETED:
                self._compare(job, expected)
            self._step_is_lawful(job.id, job.state)

    def _compare(self, job: object, model_job: ModelJob) -> None:
        for name in ("stage", "attempts", "wake_us"):
            assert getattr(job, name) == getattr(model_job, name), f"{name} of job {model_job.id}: {job}"
        if model_job.state is State.WAITING:
            assert job.waits_for == model_job.waits, str(job)  # type: ignore[attr-defined]

    def _step_is_lawful(self, job_id: int, after: State) -> None:
        """In one step of this machine a transaction may take a job over one state in between."""
        before = self.seen.get(job_id)
        if before is not after:
            over = any(lawful(before, mid) and lawful(mid, after) for mid in State)
            assert over or lawful(before, after), f"job {job_id}: {before} -> {after}"
            self.seen[job_id] = after

    @invariant()
    def children_are_those_that_count(self) -> None:
        if not hasattr(self, "model"):
            return
        for job in self.model.jobs.values():
            if job.type in ("parent", "batch", "line") and job.state is not State.DELETED:
                assert self.site.children(job.id) == sorted(c.id for c in self.model.children(job))

    # --- helping --------------------------------------------------------------------------

    def _ids(self) -> list[int]:
        return list(self.model.jobs)

    def _some_lease(self, data: st.DataObject) -> tuple[Lease, ModelJob]:
        lease = self.leases[data.draw(st.sampled_from(sorted(self.leases)))]
        return lease, self.model.jobs[lease.job_id]

    def _some_job(self, data: st.DataObject, fits: Callable[[ModelJob], object]) -> ModelJob | None:
        ids = [i for i, job in self.model.jobs.items() if fits(job)]
        return self.model.jobs[data.draw(st.sampled_from(ids))] if ids else None

    def _at_rest(self, job: ModelJob) -> bool:
        """Nothing below it is open: what a rerun does to open children is not told here."""
        return not any(below.open for below in self.model.below(job))

    def _lost(self, lease: Lease) -> None:
        del self.leases[lease.fence]
        self.stale.append(lease)

    def _judge(
        self, leases: list[Lease], node: Node, free: list[int], ahead: int = 1, went_on: Collection[int] = ()
    ) -> None:
        slots = {lease.slot for lease in leases}
        lease_counts = Counter(lease.slot for lease in leases if lease.job_id not in went_on)
        assert lease_counts.keys() <= set(free)
        assert max(lease_counts.values(), default=0) <= ahead
        self.model.claimed(leases, node.id)
        self.leases |= {lease.fence: lease for lease in leases}
        left = self.model.claimable()
        assert slots >= set(free) or not left, f"a slot idles while {left[0].id} could use it"
        last = max((self.model.jobs[lease.job_id].priority for lease in leases), default=0)
        assert all(job.priority >= last for job in left), "strict priority"

    def _both(self, model_step: Callable[[], object], store_step: Callable[[], object]) -> None:
        """Take the step in the model and in the store: both must refuse it, or neither."""
        try:
            model_step()
        except Refusal:
            with pytest.raises(SpinneyError):
                store_step()
            return
        store_step()

    def _sweep(self) -> None:
        self.site.sweep()
        self.model.swept()

    def _run_everything_to_its_end(self) -> None:
        """Promise 1: whatever has happened, everything can still be brought to an end."""
        for lease in list(self.leases.values()):
            job = self.model.jobs[lease.job_id]
            self.site.pass_(lease)
            self._lost(lease)
            self.model.recorded(job, Outcome.OK)
        for _ in range(200):
            self.time_passes(5)
            for job in [j for j in self.model.jobs.values() if j.state is State.HELD]:
                self.release_one(job)
            node = self.nodes[0]
            free = node.free()
            leases = self.site.claim(node)
            self._judge(leases, node, free)
            for lease in leases:
                self.site.pass_(lease)
                self._lost(lease)
                self.model.recorded(self.model.jobs[lease.job_id], Outcome.OK)
            self.every_job_stands_where_the_model_says()
            if not any(job.open for job in self.model.jobs.values()):
                break
        stuck = [job.id for job in self.model.jobs.values() if job.open]
        assert not stuck, f"jobs {stuck} never end"
        assert {job.state for job in self.store.jobs(Filter(), limit=100_000)} <= SETTLED

    def release_one(self, job: ModelJob) -> None:
        self.model.released(job)
        self.site.release(job.id)


@pytest.mark.timeout(3600 if LONG else 120)
def test_a_store_agrees_with_the_plain_model_whatever_is_done(opener: str) -> None:
    machine = type("JobLife", (JobLife,), {"opener": opener})

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=2000 if LONG else 25 if opener == "sqlite" else 8,
            stateful_step_count=80 if LONG else 40,
            deadline=None,
            database=None,
            # A failure is shown as it was found, at once; the long form takes the time to shrink it.
            phases=list(Phase) if LONG else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
