"""The doctor raises no false alarm: whatever is lawfully done to a store, it finds nothing, at any time.

A seeded random life of nodes and operators; verbs that the store refuses are part of it.
"""

import random
from collections.abc import Callable, Sequence

import pytest

from long_tests import LONG
from spinney.model.errors import SpinneyError
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule
from spinney.model.states import State
from spinney.store.parts import Store

from .everything import FRAGILE, LAYERED, LINE, PATIENT
from .words import USUAL, Clock, Site, submission

ANN = Actor(by="ann", call="c")
STEPS = 120
SLOW_RULES = frozenset({"database-damaged", "index-damaged", "audit-broken"})
"""Nothing that is done here can touch them, and they take their time."""


class Life:
    """One store, two nodes, an operator, and dice."""

    def __init__(self, store: Store, clock: Clock, seed: int) -> None:
        self.site, self.dice = Site(store, clock), random.Random(seed)
        self.store = store
        self.site.knows(*USUAL, FRAGILE, PATIENT, LINE, LAYERED, queues=[QueueSpec(name="narrow", limit=1)])
        self.nodes = [self.site.node(f"n{i}", 3) for i in range(2)]
        self.leases: list[Lease] = []
        self.jobs: list[int] = []
        self.rules = {check.rule for check in store.doctor.checks()} - SLOW_RULES
        self.after = 0

    def step(self) -> str:
        """Do something; what it was."""
        verb = self.dice.choice(VERBS)
        try:
            verb(self)
        except SpinneyError as refusal:
            return f"{verb.__name__}: {refusal}"
        return verb.__name__

    def findings(self) -> Sequence[object]:
        for node in self.store.nodes():
            self.store.beat(node.id, now_us=self.site.now)
        return list(self.store.doctor.examine(self.rules, now_us=self.site.now))

    def job(self) -> int:
        return self.dice.choice(self.jobs) if self.jobs else 1

    # --- submitters and nodes -------------------------------------------------------------

    def submit(self) -> None:
        of = self.dice.choice([spec.name for spec in self.store.types().values()])
        how: dict[str, object] = {
            "queue": self.dice.choice([None, "narrow"]),
            "priority": self.dice.choice([10, 50]),
            "collection": self.dice.choice([None, "alpha"]),
            "at_us": self.dice.choice([None, None, self.site.now + 2_000_000]),
            "needs": tuple(self.dice.sample(self.jobs, min(len(self.jobs), self.dice.choice([0, 0, 1, 2])))),
        }
        if self.dice.random() < 0.2:
            how |= {"keys": (self.dice.choice("abc"),), "forever": self.dice.random() < 0.3}
        self.jobs += self.site.submit(of, {"serno": self.dice.choice("12")}, **how)

    def submit_many(self) -> None:
        self.jobs += self.site.submit("one", n=700, queue=self.dice.choice([None, "narrow"]))[:3]

    def claim(self) -> None:
        node = self.dice.choice(self.nodes)
        leases = self.site.claim(node, jobs=self.dice.choice([1, 2]), run_us=self.dice.choice([None, 5.0]))
        if self.dice.random() < 0.8:
            self.site.start(*leases)
        self.leases += leases

    def end(self) -> None:
        outcomes = [
            Outcome.OK,
            Outcome.OK,
            Outcome.OK,
            Outcome.ERROR,
            Outcome.HOLD,
            Outcome.DEFER,
            Outcome.RETURNED,
            Outcome.FINISH,
            Outcome.WARNING,
            Outcome.LOST,
            Outcome.CANCELLED,
            Outcome.LOCKED,
        ]
        lease = self._lease()
        if lease is None:
            return
        outcome = self.dice.choice(outcomes)
        more: dict[str, object] = {"delay_s": 1.0, "lane": self.dice.random() < 0.2, "lock": "receiver:1"}
        if outcome is Outcome.RETURNED:
            more["started_us"] = 0
        self.leases.remove(lease)
        self.site.record(lease, outcome, **more)

    def spawn(self) -> None:
        lease = self._lease()
        if lease is not None:
            keys = ("k1", "k2") if self.dice.random() < 0.4 else None
            of = self.dice.choice(["one", "layered", "parent", "locked"])
            params = [{"serno": "1"}, {"serno": "2"}]
            self.jobs += self.site.spawn_all(lease, submission(of, *params, keys=keys))

    def _lease(self) -> Lease | None:
        return self.dice.choice(self.leases) if self.leases else None

    def node_dies(self) -> None:
        which = self.dice.randrange(len(self.nodes))
        self.leases = [lease for lease in self.leases if lease.fence not in self.nodes[which].busy]
        self.site.recover(self.nodes[which])
        self.nodes[which] = self.site.node(f"n{which}", 3)

    # --- time -----------------------------------------------------------------------------

    def time_passes(self) -> None:
        """And nodes do meanwhile what they do by themselves."""
        self.site.later(self.dice.choice([1, 5, 70]))
        while self.store.holds.sweep(now_us=self.site.now):
            pass

    def housekeeping(self) -> None:
        self.store.sweep(now_us=self.site.now)

    # --- operators ------------------------------------------------------------------------

    def cancel(self) -> None:
        self.site.cancel(self.job(), tree=self.dice.random() < 0.5)

    def retry(self) -> None:
        self.site.retry(self.job())

    def rerun(self) -> None:
        self.site.rerun(self.job())

    def release(self) -> None:
        self.site.release(self.job())

    def delete(self) -> None:
        gone = self.site.delete(self.job())
        self.store.note_removed_folders(sorted(gone))

    def in_bulk(self) -> None:
        orders = [
            Order(verb=Verb.PRIORITY, priority=self.dice.choice([10, 50])),
            Order(verb=Verb.MOVE, queue="narrow"),
            Order(verb=Verb.HOLD, reason="look"),
            Order(verb=Verb.RELEASE),
            Order(verb=Verb.RETRY),
        ]
        order = self.dice.choice(orders)
        chosen = self.dice.sample(self.jobs, min(len(self.jobs), 5))
        self.store.bulk.apply(order, chosen, ANN, now_us=self.site.now)

    def hold(self) -> None:
        scope, name = self.dice.choice(
            [
                (Scope.QUEUE, "narrow"),
                (Scope.TYPE, "one"),
                (Scope.COLLECTION, "alpha"),
                (Scope.TREE, str(self.job())),
                (Scope.EVERYTHING, ""),
            ]
        )
        self.store.holds.lay(scope, name, "disk full", ANN, now_us=self.site.now)

    def lift(self) -> None:
        holds = self.store.holds.all()
        if holds:
            self.store.holds.lift(self.dice.choice(holds).id, ANN, now_us=self.site.now)

    def sweep_holds(self) -> None:
        self.store.holds.sweep(now_us=self.site.now)

    def unlock(self) -> None:
        self.store.locks.free("receiver:1", ANN, now_us=self.site.now)

    def keep(self) -> None:
        state = self.dice.choice([State.COMPLETED, State.FAILED, State.CANCELLED, State.DELETED])
        self.store.retention.set("*", state, self.dice.choice([0.0, 60.0, None]), ANN, now_us=self.site.now)

    def remove_old(self) -> None:
        gone, after = self.store.retention.sweep(self.after, ANN, now_us=self.site.now, limit=20)
        self.after = after or 0
        self.jobs = [job for job in self.jobs if job not in set(gone)]

    def schedule(self) -> None:
        self.store.schedules.put(
            Schedule(
                name="often",
                type="one",
                every_s=self.dice.choice([10, 60]),
                overlap=self.dice.choice(list(Overlap)),
                catch_up=self.dice.choice(list(CatchUp)),
            ),
            ANN,
            now_us=self.site.now,
        )

    def tick(self) -> None:
        self.store.schedules.tick(now_us=self.site.now)


VERBS: Sequence[Callable[[Life], None]] = (
    Life.submit,
    Life.submit,
    Life.submit,
    Life.submit_many,
    *[Life.claim] * 6,
    *[Life.end] * 14,
    *[Life.spawn] * 4,
    Life.node_dies,
    *[Life.time_passes] * 2,
    *[Life.housekeeping] * 2,
    Life.cancel,
    *[Life.retry] * 2,
    *[Life.rerun] * 2,
    Life.release,
    Life.delete,
    *[Life.in_bulk] * 2,
    Life.hold,
    *[Life.lift] * 2,
    *[Life.sweep_holds] * 2,
    Life.unlock,
    Life.keep,
    *[Life.remove_old] * 3,
    Life.schedule,
    *[Life.tick] * 2,
)


@pytest.mark.parametrize("seed", range(6 if LONG else 2))
def test_whatever_is_done_nothing_is_found(store: Store, clock: Clock, seed: int) -> None:
    life = Life(store, clock, seed)
    done = []
    for _ in range(STEPS):
        done.append(life.step())
        findings = life.findings()
        assert findings == [], (findings[:2], done[-10:])
