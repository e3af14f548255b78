"""Jobs that keep locks until they have settled and wait in a ring: the ring is found when it closes, and broken."""

import json
import random
import time

import pytest

from explanations import explained
from long_tests import LONG
from spinney.model.errors import Refused
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.capacities import LockCapacity
from spinney.model.states import State
from spinney.model.types import TypeSpec

from .words import Site, kind, locked, stage, submission

ANN = Actor(by="ann", call="c1", reason="")


def keeper(name: str = "keeper", *, then: str = "{second}", **policy: str) -> TypeSpec:
    """A type whose jobs keep one lock from their first stage on, and want another for their third."""
    return kind(
        name,
        stage("take", locks=locked("{first}", until="job")),
        "between",
        stage("want", locks=locked(then)),
        **policy,
    )


def keepers(site: Site, *pairs: tuple[str, str], of: str = "keeper") -> list[int]:
    """Jobs that keep their first lock and are about to want their second."""
    ids = site.submit(of, *({"first": first, "second": second} for first, second in pairs))
    for _ in range(2):
        site.pass_(*site.claim())
    return ids


def asks(site: Site, lease: Lease, name: str, amount: int = 1, until: str = "job") -> bool:
    return site.store.take_lock(lease.job_id, lease.fence, name, until, amount=amount, now_us=site.now)


def waits(site: Site, lease: Lease, name: str, amount: int = 1) -> None:
    """The stage asks for a lock, is refused, and ends as ``job.lock`` ends it."""
    assert not asks(site, lease, name, amount)
    site.record(lease, Outcome.LOCKED, lock=name, lock_request=(amount, None))


def running(site: Site, of: str = "one", n: int = 1) -> list[Lease]:
    ids = site.submit(of, n=n)
    leases = site.claim_by_job()
    site.start(*leases.values())
    return [leases[job_id] for job_id in ids]


def run_all(site: Site) -> None:
    """Run whatever is pending. A claim that meets a ring may give nothing, and make jobs pending in turn."""
    for _ in range(1_000):
        leases = site.claim(slots=8)
        site.pass_(*leases)
        if not leases and "pending" not in site.count():
            return
    raise AssertionError("the work does not end")


def reason(site: Site, job_id: int) -> str:
    return explained(site.store, job_id, site.now).sentence


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_younger_of_a_ring_fails_and_is_told_which_ring(site: Site, n: int) -> None:
    site.knows(keeper())
    names = [f"lock-{i}" for i in range(n)]
    ids = keepers(site, *zip(names, [*names[1:], names[0]], strict=True))

    site.claim()  # all of them meet a lock that another keeps

    assert site.state(ids[-1]) is State.FAILED
    for job_id, name in zip(ids, [*names[1:], names[0]], strict=True):
        assert f"job {job_id} waits for the lock '{name}'" in reason(site, ids[-1])
    site.drain()
    assert site.states(ids) == [State.COMPLETED] * (n - 1) + [State.FAILED]
    ((entry, _),) = site.store.audit.entries()
    assert (entry.by, entry.verb, json.loads(entry.what)["job"]) == ("spinney", "deadlock", ids[-1])


def test_the_younger_goes_back_where_its_type_says_so_and_both_complete(site: Site) -> None:
    site.knows(keeper(on_deadlock="restart"))
    older, younger = keepers(site, ("a", "b"), ("b", "a"))

    site.claim()

    assert site.job(younger).stage == "take"
    site.drain()
    assert site.states([older, younger]) == [State.COMPLETED] * 2
    assert site.stages_run(older) == ["take", "between", "want"]
    assert site.stages_run(younger) == ["take", "between", "take", "between", "want"]


def test_it_goes_back_no_further_than_to_the_stage_that_took_the_lock(site: Site) -> None:
    late = kind(
        "late",
        "first",
        stage("take", locks=locked("{first}", until="job")),
        stage("want", locks=locked("{second}")),
        on_deadlock="restart",
    )
    site.knows(late)
    ids = keepers(site, ("a", "b"), ("b", "a"), of="late")

    site.claim()
    site.drain()

    assert site.states(ids) == [State.COMPLETED] * 2
    assert site.stages_run(ids[1]) == ["first", "take", "take", "want"]


def test_a_ring_of_locks_that_stages_ask_for(site: Site) -> None:
    older, younger = running(site, n=2)
    assert asks(site, older, "a")
    assert asks(site, younger, "b")

    waits(site, older, "b")
    assert site.state(older.job_id) is State.WAITING
    waits(site, younger, "a")

    assert site.state(younger.job_id) is State.FAILED
    assert site.claim_one().job_id == older.job_id


def test_the_older_closes_the_ring_and_the_younger_is_told(site: Site) -> None:
    older, younger = running(site, n=2)
    assert asks(site, older, "a")
    assert asks(site, younger, "b")

    waits(site, younger, "a")
    waits(site, older, "b")

    assert site.states([older.job_id, younger.job_id]) == [State.PENDING, State.FAILED]


@pytest.mark.parametrize("policy", ["fail", "restart"])
@pytest.mark.parametrize("wants", ["itself", "by a subjob"])
def test_the_older_gets_the_lock_before_those_that_would_close_the_ring_anew(
    site: Site, wants: str, policy: str
) -> None:
    tape = locked("tape", until="job")
    site.knows(
        kind("slow", stage("one", locks=locked("disk", until="job")), stage("two", locks=tape)),
        kind("tree", stage("expand", locks=locked("disk", until="job")), "merge"),
        kind("leaf", stage("work", locks=locked("tape"))),
        kind("quick", stage("one", locks=tape), stage("two", locks=locked("disk")), on_deadlock=policy),
    )
    old = site.submit_one("slow" if wants == "itself" else "tree", priority=90)
    lease = site.run(old)
    if wants == "by a subjob":
        site.spawn(lease, "leaf")
    young = site.submit("quick", n=5, priority=10)
    (first,) = site.claim()
    site.pass_(first, lease)

    run_all(site)

    assert site.state(old) is State.COMPLETED
    assert site.states(young).count(State.COMPLETED) == (4 if policy == "fail" else 5)
    assert len(site.store.audit.entries()) == 1, "one ring"


def test_the_lock_of_a_parent_that_fails_with_its_subjob_goes_to_the_older_of_the_ring(site: Site) -> None:
    first, second = locked("a", until="job"), locked("b", until="job")
    site.knows(
        kind("other", stage("one", locks=second), stage("two", locks=first)),
        kind("above", stage("one", locks=first), "two"),
        kind("below", stage("work", locks=second)),
        kind("quick", stage("one", locks=first), stage("two", locks=second)),
    )
    other, above = site.submit_one("other", priority=90), site.submit_one("above")
    leases = site.claim_by_job()
    site.start(*leases.values())
    (below,) = site.spawn(leases[above], "below")
    young = site.submit("quick", n=3, priority=10)
    assert site.claim() == []
    site.pass_(leases[above])
    assert site.claim() == []

    site.pass_(leases[other])
    run_all(site)

    assert site.states([below, above, other]) == [State.FAILED, State.FAILED, State.COMPLETED]
    assert site.states(young) == [State.COMPLETED] * 3


@pytest.mark.parametrize("policy", ["fail", "restart"])
def test_the_older_gets_the_amount_that_it_wants_and_those_before_it_the_rest(
    site: Site, policy: str
) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    site.knows(kind("greedy", "work", on_deadlock=policy))
    (old,) = running(site)
    young, fits, too_much = running(site, "greedy", 3)
    assert asks(site, old, "x")
    assert asks(site, young, "disk", 6)
    site.store.prioritise(old.job_id, old.fence, 90)
    waits(site, old, "disk", 5)
    waits(site, fits, "disk", 5)
    waits(site, too_much, "disk", 6)

    waits(site, young, "x")

    assert site.states([old.job_id, fits.job_id]) == [State.PENDING] * 2
    assert site.state(too_much.job_id) is State.WAITING
    assert site.state(young.job_id) is (State.FAILED if policy == "fail" else State.PENDING)


@pytest.mark.parametrize("policy", ["fail", "restart"])
def test_one_that_waits_behind_the_victim_goes_on_at_once(site: Site, policy: str) -> None:
    site.store.locks.set_capacity("disk", 3, ANN, now_us=site.now)
    site.knows(kind("greedy", "work", on_deadlock=policy))
    (old,) = running(site)
    modest, young = running(site, "greedy", 2)
    assert asks(site, old, "disk", 1)
    assert asks(site, young, "x")
    site.store.prioritise(young.job_id, young.fence, 5)
    waits(site, young, "disk", 3)
    waits(site, modest, "disk", 1)

    waits(site, old, "x")

    assert site.states([old.job_id, modest.job_id]) == [State.PENDING] * 2
    assert site.state(young.job_id) is (State.FAILED if policy == "fail" else State.PENDING)


def test_what_an_attempt_alone_keeps_closes_no_ring(site: Site) -> None:
    older, younger = running(site, n=2)
    assert asks(site, older, "a", until="attempt")
    assert asks(site, younger, "b")

    waits(site, older, "b")
    assert asks(site, younger, "a")


def test_amounts_that_still_leave_room_close_no_ring(site: Site) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    first, second, third = running(site, n=3)
    assert asks(site, first, "disk", 6)
    assert asks(site, third, "disk", 4)
    assert asks(site, second, "x")

    waits(site, first, "x")
    waits(site, second, "disk", 4)  # the third runs, and what it has will do
    assert site.states([first.job_id, second.job_id]) == [State.WAITING] * 2

    site.pass_(third)
    assert site.claim_one().job_id == second.job_id


def test_amounts_that_leave_no_room_close_one(site: Site) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    first, second = running(site, n=2)
    assert asks(site, first, "disk", 6)
    assert asks(site, second, "x")

    waits(site, first, "x")
    waits(site, second, "disk", 5)

    assert site.states([first.job_id, second.job_id]) == [State.PENDING, State.FAILED]


def test_a_ring_goes_through_one_that_stands_before_it_in_the_line(site: Site) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    first, before, last = running(site, n=3)
    assert asks(site, first, "disk", 6)
    assert asks(site, last, "x")

    waits(site, before, "disk", 8)
    waits(site, first, "x")
    waits(site, last, "disk", 2)  # it would fit, but another comes before it

    assert site.states([first.job_id, before.job_id, last.job_id]) == [
        State.PENDING,
        State.WAITING,
        State.FAILED,
    ]


@pytest.mark.parametrize("moved", ["the one before", "the last"])
def test_a_priority_that_puts_another_job_before_a_keeper_closes_a_ring(site: Site, moved: str) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    first, last, before, passing = running(site, n=4)
    assert asks(site, first, "disk", 6)
    assert asks(site, passing, "disk", 3, until="attempt")
    assert asks(site, last, "x")
    waits(site, last, "disk", 2)
    waits(site, before, "disk", 8)
    waits(site, first, "x")
    assert site.states([first.job_id, last.job_id, before.job_id]) == [State.WAITING] * 3

    job_id, priority = (before.job_id, 10) if moved == "the one before" else (last.job_id, 90)
    site.store.bulk.apply(Order(verb=Verb.PRIORITY, priority=priority), [job_id], ANN, now_us=site.now)

    site.pass_(passing)
    run_all(site)
    assert site.states([first.job_id, last.job_id, before.job_id]) == [
        State.COMPLETED,
        State.FAILED,
        State.COMPLETED,
    ]


@pytest.mark.parametrize("closing", ["the child", "the other", "the parent"])
def test_a_ring_goes_through_subjobs_that_a_keeper_waits_for(site: Site, closing: str) -> None:
    other, parent = running(site, n=1)[0], running(site, "parent")[0]
    assert asks(site, parent, "a")
    assert asks(site, other, "b")
    (child,) = site.spawn(parent, keys=("k",))
    lease = site.claim_one()
    assert lease.job_id == child
    steps = {
        "the child": lambda: waits(site, lease, "b"),
        "the other": lambda: waits(site, other, "a"),
        "the parent": lambda: site.pass_(parent),
    }
    last = steps.pop(closing)
    for step in steps.values():
        step()
    assert site.state(child) is not State.FAILED

    last()

    # The younger of the two keepers is the parent; it is its child that waits for a lock, and is told.
    assert site.state(child) is State.FAILED
    assert f"job {parent.job_id} waits for its subjob {child}" in reason(site, child)
    assert site.states([parent.job_id, other.job_id]) == [State.FAILED, State.PENDING]


def test_what_an_ancestor_keeps_closes_no_ring(site: Site) -> None:
    (parent,) = running(site, "parent")
    assert asks(site, parent, "a")
    (child,) = site.spawn(parent)
    site.pass_(parent)

    assert asks(site, site.claim_one(), "a")
    assert site.state(child) is State.RUNNING or site.state(child) is State.CLAIMED


def test_a_ring_goes_through_needs_and_the_order_of_a_serial_tree(site: Site) -> None:
    site.knows(kind("serial", "expand", "merge", serial=True))
    serial, (first, second) = site.family("serial")
    lease = site.run(first)
    (parent,) = running(site, "parent")
    assert asks(site, parent, "a")
    (child,) = site.spawn(parent, keys=("k",), needs=(second,))
    site.pass_(parent)
    assert [site.job(job_id).waits_for for job_id in (parent.job_id, child, second)] == [
        "children",
        "needs",
        "serial",
    ]

    waits(site, lease, "a")

    assert site.state(first) is State.FAILED
    for part in (
        f"job {child} waits for job {second}, which it needs",
        f"job {second} waits for job {first}, which",
    ):
        assert part in reason(site, first)
    assert site.claim_one().job_id == second
    assert site.state(serial) is State.WAITING


MANY_CHILDREN = 350
"""More than the transaction that records their stage places."""


@pytest.mark.parametrize("beside", [0, MANY_CHILDREN])
def test_a_subjob_that_keeps_no_lock_closes_a_ring_by_a_subjob_of_its_own_that_needs_another_job(
    site: Site, beside: int
) -> None:
    site.knows(
        kind("above", stage("a", locks=locked("l", "job")), "b"),
        kind("below", "a", "b"),
        kind("other", stage("work", locks=locked("l"))),
    )
    above = site.submit_one("above")
    lease = site.run(above)
    (below,) = site.spawn(lease, "below")
    site.pass_(lease)
    lease = site.run(below)
    other = site.submit_one("other")
    assert site.claim() == []
    born = site.spawn_all(lease, submission(needs=(other,)), *([submission(n=beside)] if beside else []))

    site.pass_(lease)
    site.sweep()

    assert site.state(other) is State.FAILED
    assert f"job {above} waits for its subjob {below}" in reason(site, other)
    assert site.state(born[0]) is State.FAILED


@pytest.mark.parametrize("how", ["deferred", "passed"])
def test_a_keeper_that_comes_back_and_waits_for_an_opened_subjob_closes_a_ring(site: Site, how: str) -> None:
    site.knows(
        kind("above", stage("a", locks=locked("l", "job")), stage("b", max_attempts=5)),
        kind("other", stage("a", locks=locked("m", "job")), stage("b", locks=locked("l"))),
        kind("below", stage("work", locks=locked("m"))),
    )
    above = site.submit_one("above")
    lease = site.run(above)
    (below,) = site.spawn(lease, "below")
    site.pass_(lease)
    site.pass_(site.run(below))
    lease = site.run(above)
    other = site.submit_one("other")
    site.pass_(site.run(other))
    assert site.claim() == []
    site.rerun(below)
    assert site.claim() == []

    if how == "passed":
        site.pass_(lease)
    else:
        site.record(lease, Outcome.DEFER, delay_s=1.0)
        site.later(5)

    # The ring is above, below, other: the younger of the two keepers is told, and lets go of what below wants.
    assert site.state(other) is State.FAILED
    site.drain()
    assert site.states([above, below]) == [State.COMPLETED] * 2


def test_a_need_that_is_opened_again_closes_a_ring(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.knows(
        kind("above", stage("a", locks=locked("l", "job")), "b"),
        kind("other", stage("work", locks=locked("l"))),
    )
    other = site.submit_one("other")
    site.pass_(site.run(other))
    need = site.submit_one("one", needs=(other,))
    site.fail(site.run(need))
    above = site.submit_one("above")
    lease = site.run(above)
    (child,) = site.spawn(lease, needs=(need,))
    site.spawn(lease, "tenacious", keys=("k",))
    site.record(lease, Outcome.FINISH)
    assert site.state(child) is State.FAILED
    site.rerun(other)
    (busy,) = site.claim()
    assert (busy.type, site.job(other).waits_for) == ("tenacious", "lock:l")

    with pytest.raises(Refused, match=f"would fail again at once, since job {other}, which it needs, failed"):
        site.retry(need)

    assert f"job {other} fails because of a deadlock" in caplog.text
    assert f"job {above} waits for its subjob {child}" in caplog.text


def test_a_ring_is_found_although_others_that_begin_to_wait_wait_for_very_many(site: Site) -> None:
    site.knows(kind("keeps", "work", "more"))
    a, b = site.submit("keeps", n=2)
    blocker = site.submit_one("tenacious")
    batches = site.submit("batch", n=60)
    leases = site.claim_by_job(slots=100)
    site.start(*leases.values())
    for job, lock in ((a, "l1"), (b, "l2")):
        assert site.store.take_lock(job, leases[job].fence, lock, "job", amount=1, now_us=site.now)
    site.record(leases[a], Outcome.LOCKED, lock="l2", lock_request=(1, None))
    for batch in batches:
        site.spawn(leases[batch], n=20, needs=(blocker,))

    site.flush_and_claim(
        [
            *(site.entry(leases[batch]) for batch in batches),
            site.entry(leases[b], Outcome.LOCKED, lock="l1", lock_request=(1, None)),
        ]
    )

    assert sorted(site.states([a, b])) == [State.FAILED, State.PENDING]


def test_a_smaller_capacity_that_closes_a_ring_breaks_it(site: Site) -> None:
    site.store.locks.set_capacity("disk", 10, ANN, now_us=site.now)
    older, younger, other = running(site, n=3)
    assert asks(site, older, "disk", 4)
    assert asks(site, other, "disk", 3)
    assert asks(site, younger, "b")
    waits(site, older, "b")
    waits(site, younger, "disk", 5)
    assert site.states([older.job_id, younger.job_id]) == [State.WAITING] * 2

    site.store.locks.set_capacity("disk", 8, ANN, now_us=site.now)

    site.pass_(other)
    run_all(site)
    assert site.states([older.job_id, younger.job_id]) == [State.COMPLETED, State.FAILED]


def test_explain_names_a_ring_that_stands(site: Site) -> None:
    site.store.register([], [], [LockCapacity(name="disk", capacity=10)])
    older, younger = running(site, n=2)
    assert asks(site, older, "disk", 4)
    assert asks(site, younger, "b")
    waits(site, older, "b")
    other = running(site)[0]
    assert asks(site, other, "disk", 6)
    waits(site, younger, "disk", 6)
    site.store.register(
        [], [], [LockCapacity(name="disk", capacity=5)]
    )  # closes what nobody closed by waiting
    site.pass_(other)

    explanation = explained(site.store, older.job_id, site.now)

    assert explanation.cause == "deadlock"
    assert f"job {younger.job_id} waits for the lock 'disk'" in explanation.sentence
    assert explanation.facts["ring"] == sorted(explanation.facts["ring"])


@pytest.mark.parametrize("kept", [False, True])
def test_that_many_wait_for_a_lock_of_several_costs_no_time(site: Site, kept: bool) -> None:
    """Each of them waits behind all that came before it."""
    site.store.locks.set_capacity("api", 2, ANN, now_us=site.now)
    site.knows(kind("caller", stage("call", locks=locked("api"))))
    owners = running(site, "parent", 2)
    assert all(asks(site, owner, "api") for owner in owners)
    if kept:  # by one that waits itself
        site.spawn(owners[0])
        site.pass_(owners[0])
    # Where statements run elsewhere, it is not them that are timed: there it is that they are right.
    timed = LONG or site.store.facts()["database"] == "SQLite"
    ids = site.submit("caller", n=300 if timed else 60)
    began_s = time.process_time()

    while site.state(ids[-1]) is State.PENDING:
        site.claim(slots=8)

    assert time.process_time() - began_s < 5.0  # followed link by link, they took a minute
    site.pass_(owners[1])
    site.drain()
    assert set(site.states(ids)) == {State.COMPLETED}


@pytest.mark.parametrize("policy", ["fail", "restart"])
@pytest.mark.parametrize("priorities", [(40,), (10, 40, 90)], ids=["of one priority", "of any priority"])
def test_however_jobs_want_locks_none_waits_for_ever(
    site: Site, policy: str, priorities: tuple[int, ...]
) -> None:
    """Jobs that take one lock after the other, in any order: the oldest always gets through."""
    stages = [stage(f"s{i}", locks=locked(f"{{l{i}}}", until="job")) for i in range(3)]
    site.knows(kind("grasping", *stages, on_deadlock=policy))
    chance = random.Random(7)
    wants = [{f"l{i}": str(name) for i, name in enumerate(chance.sample(range(6), 3))} for _ in range(24)]
    ids = [site.submit_one("grasping", want, priority=chance.choice(priorities)) for want in wants]

    run_all(site)

    states = site.states(ids)
    assert states[0] is State.COMPLETED
    assert set(states) <= ({State.COMPLETED} if policy == "restart" else {State.COMPLETED, State.FAILED})
    assert len(site.store.audit.entries()) > 1, "there were rings"
    assert site.store.locks.all() == []
