"""Holds, driven at random beside all that jobs do: nothing covered is claimed, nothing is stuck.

``SPINNEY_LONG=1`` takes its time.
"""

import sys
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from long_tests import LONG
from spinney.model.errors import Refused, SpinneyError
from spinney.model.jobs import Filter, Job, Lease
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import SETTLED, State

from .conftest import PLACES
from .words import Clock, Node, Site, kind, locked, stage

ANN = Actor(by="ann", call="c")
TYPES = (
    kind("one", "work"),
    kind("two", "fetch", stage("burn", queue="slow")),
    kind("tenacious", stage("work", max_attempts=3)),
    kind("parent", "expand", stage("merge", again=True)),
    kind("line", "expand", "merge", serial=True, children="settled"),
    kind("locked", stage("work", locks=locked("room"))),
)
QUEUES = (QueueSpec(name="slow", order="fifo"), QueueSpec(name="narrow", limit=2, order="lifo"))
KINDS = st.sampled_from([t.name for t in TYPES])
LEAVES = st.sampled_from(["one", "two", "tenacious", "locked"])
LABELS = st.sampled_from([None, "a", "b"])
SHARES = st.sampled_from([None, "s", "t"])
MANY = 12
MOST_HOLDS = 4


class Holding(RuleBasedStateMachine):
    """Two stores on one database, a node at each, an operator."""

    opener = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.place = ExitStack()
        clock = Clock()
        another = self.place.enter_context(PLACES[self.opener]())
        stores = [another() for _ in range(2)]
        self.sites = [Site(store, clock) for store in stores]
        self.site = self.sites[0]
        self.site.knows(*TYPES, queues=QUEUES)
        self.nodes: list[Node] = [site.node(f"n{n}", 3) for n, site in enumerate(self.sites)]
        self.leases: dict[int, tuple[Lease, int]] = {}

    def teardown(self) -> None:
        if not hasattr(self, "leases"):
            return
        try:
            if sys.exc_info()[0] is None:
                self._let_everything_go()
        finally:
            for site in self.sites:
                site.store.close()
            self.place.close()

    # --- work -----------------------------------------------------------------------------

    @precondition(lambda self: len(self._open()) < MANY)
    @rule(
        of=KINDS,
        n=st.integers(1, 4),
        collection=LABELS,
        submitter=LABELS,
        share=SHARES,
        queue=st.sampled_from([None, "narrow"]),
        priority=st.sampled_from([20, 50]),
        later=st.booleans(),
        needy=st.booleans(),
    )
    def submit(
        self,
        of: str,
        n: int,
        collection: str | None,
        submitter: str | None,
        share: str | None,
        queue: str | None,
        priority: int,
        later: bool,
        needy: bool,
    ) -> None:
        needs = tuple(j.id for j in self._jobs() if j.state is not State.DELETED)[-1:] if needy else ()
        self.site.submit(
            of,
            n=n,
            collection=collection,
            submitter=submitter,
            share=share,
            queue=queue,
            priority=priority,
            at_us=self.site.now + 2_000_000 if later else None,
            needs=needs,
        )

    @rule(where=st.integers(0, 1), slots=st.integers(1, 3), ahead=st.sampled_from([1, 1, 5]))
    def claim(self, where: int, slots: int, ahead: int) -> None:
        before = {j.id: j for j in self._jobs()}
        holds = self.site.store.holds.all()
        how = {"jobs": ahead, "run_us": 5.0} if ahead > 1 else {}
        for lease in self.sites[where].claim(self.nodes[where], slots, **how):
            assert not covering(holds, before[lease.job_id]), (lease, holds)
            self.leases[lease.fence] = (lease, where)

    @precondition(lambda self: self.leases)
    @rule(
        outcome=st.sampled_from(
            [Outcome.OK] * 4 + [Outcome.ERROR, Outcome.HOLD, Outcome.DEFER, Outcome.RETURNED]
        ),
        retryable=st.booleans(),
        keep=st.booleans(),
        born=st.integers(0, 2),
        child=LEAVES,
        data=st.data(),
    )
    def record(
        self, outcome: Outcome, retryable: bool, keep: bool, born: int, child: str, data: st.DataObject
    ) -> None:
        fence = data.draw(st.sampled_from(sorted(self.leases)))
        lease, where = self.leases.pop(fence)
        site, node = self.sites[where], self.nodes[where]
        if born and lease.stage == "expand" and outcome is Outcome.OK:
            self._bear(site, lease, child, born)
        times = {"started_us": 0, "ended_us": 0} if outcome is Outcome.RETURNED else {}
        entry = site.entry(lease, outcome, retryable=retryable, delay_s=2.0, keep=keep, **times)
        holds, now = self.site.store.holds.all(), site.want(node, 0)
        answer = site.flush_and_claim([entry], now)
        node.busy.pop(fence, None)
        for kept in answer.leases:
            assert not covering(holds, self.site.job(kept.job_id))
            self.leases[kept.fence] = (kept, where)

    def _bear(self, site: Site, lease: Lease, child: str, n: int) -> None:
        if site.job(lease.job_id).cancelling:
            with pytest.raises(Refused):
                site.spawn(lease, child, n=n)
            return
        site.spawn(lease, child, n=n)

    @rule(seconds=st.sampled_from([1, 3, 20]))
    def later(self, seconds: int) -> None:
        self.site.later(seconds)

    @rule(verb=st.sampled_from(["cancel", "retry", "rerun", "release", "delete"]), data=st.data())
    def operate(self, verb: str, data: st.DataObject) -> None:
        jobs = self._jobs()
        if not jobs:
            return
        job = data.draw(st.sampled_from(jobs))
        try:
            getattr(self.site, verb)(job.id)
        except SpinneyError:
            return

    # --- holds ----------------------------------------------------------------------------

    @precondition(lambda self: len(self.site.store.holds.all()) < MOST_HOLDS)
    @rule(scope=st.sampled_from(Scope), lasts=st.sampled_from([None, None, 2]), data=st.data())
    def lay(self, scope: Scope, lasts: int | None, data: st.DataObject) -> None:
        jobs = [str(j.id) for j in self._open()]
        if scope in (Scope.TREE, Scope.JOB) and not jobs:
            return
        names = {
            Scope.EVERYTHING: st.just(""),
            Scope.QUEUE: st.sampled_from(["default", "slow", "narrow"]),
            Scope.TYPE: KINDS,
            Scope.COLLECTION: st.sampled_from("ab"),
            Scope.SUBMITTER: st.sampled_from("ab"),
        }
        name = names[scope] if scope in names else st.sampled_from(jobs)
        until_us = None if lasts is None else self.site.now + lasts * 1_000_000
        self.site.store.holds.lay(scope, data.draw(name), "why", ANN, until_us=until_us, now_us=self.site.now)

    @precondition(lambda self: self.site.store.holds.all())
    @rule(data=st.data())
    def lift(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(list(self.site.store.holds.all())))
        self.site.store.holds.lift(hold.id, ANN, now_us=self.site.now)

    @rule(where=st.integers(0, 1), limit=st.integers(1, 3))
    def sweep_a_step(self, where: int, limit: int) -> None:
        self.sites[where].store.holds.sweep(now_us=self.site.now, limit=limit)

    @rule(where=st.integers(0, 1))
    def sweep(self, where: int) -> None:
        self._sweep(where)
        holds = self.site.store.holds.all()
        for job in self._jobs():
            over = covering(holds, job)
            if job.state is State.PENDING:
                assert not over, (job, over)
            if job.state is State.HELD and job.waits_for == "hold":
                assert over, job
                assert job.message in map(str, over)
        for hold in holds:
            count = sum(hold in covering(holds, j) and j.waits_for == "hold" for j in self._jobs())
            assert self.site.store.holds.held(hold.id) == count

    def _sweep(self, where: int = 0) -> None:
        for _ in range(500):
            if not self.sites[where].store.holds.sweep(now_us=self.site.now, limit=3):
                return
        raise AssertionError("the sweep does not end")

    # --- the end --------------------------------------------------------------------------

    def _let_everything_go(self) -> None:
        """Whatever was done before: when the holds are gone, all work comes to its end."""
        for hold in self.site.store.holds.all():
            self.site.store.holds.lift(hold.id, ANN, now_us=self.site.now)
        for lease, where in self.leases.values():
            self.sites[where].pass_(lease)
        for site, node in zip(self.sites, self.nodes, strict=True):
            site.recover(node)
        last = self.site.node("last", 20)
        for _ in range(20):
            self._sweep()
            for job in self._jobs():
                if job.state is State.HELD:
                    assert job.waits_for is None, "no hold is left"
                    self.site.release(job.id)
            self.site.later(100)
            self.site.drain(node=last)
            if not self._open():
                return
        raise AssertionError(self._open())

    # --- looking --------------------------------------------------------------------------

    def _jobs(self) -> list[Job]:
        return self.site.store.jobs(Filter(), limit=1_000)

    def _open(self) -> list[Job]:
        return [j for j in self._jobs() if j.state not in SETTLED]


def covering(holds: "list[Hold]", job: Job) -> list[Hold]:
    """The rule, written a second time."""
    line = [int(part) for part in job.lineage.split(".")]
    met = {
        Scope.EVERYTHING: lambda name: True,
        Scope.QUEUE: lambda name: name == job.queue,
        Scope.TYPE: lambda name: name == job.type,
        Scope.COLLECTION: lambda name: name == job.collection,
        Scope.SUBMITTER: lambda name: name == job.submitter,
        Scope.TREE: lambda name: int(name) in line,
        Scope.JOB: lambda name: int(name) == job.id,
    }
    return [hold for hold in holds if met[hold.scope](hold.name)]


@pytest.mark.timeout(3600 if LONG else 120)
def test_holds_keep_their_word_whatever_happens(opener: str) -> None:
    machine = type("HoldingOn", (Holding,), {"opener": opener})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=2_000 if LONG else 15,
            stateful_step_count=60 if LONG else 35,
            deadline=None,
            database=None,
            # As in test_machine: a failure is shown at once, and takes the time to be shrunk in the long form alone.
            phases=list(Phase) if LONG else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
