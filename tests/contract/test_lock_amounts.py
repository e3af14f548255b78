"""Locks of which jobs take amounts: what there is, who gets it next, and what an operator may say of it."""

import json
from collections.abc import Callable

import pytest

from explanations import explained
from spinney.model.errors import BadName, Refused, UsageError
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.capacities import AMOUNT_MAX, CapacityInfo, LockCapacity
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import damage, locks
from .words import Site, kind, locked, stage

DISK = "disk:work"
ANN = Actor(by="ann", call="c1", reason="a larger disk")


@pytest.fixture
def wide(site: Site) -> Site:
    """A site whose disk has a hundred, and that knows a type with three stages."""
    site.store.register([], [], [LockCapacity(name="disk:*", capacity=100)])
    return site


def take(
    site: Site,
    lease: Lease,
    amount: int = 1,
    name: str = DISK,
    *,
    until: str = "attempt",
    capacity: int | None = None,
) -> bool:
    return site.store.take_lock(
        lease.job_id, lease.fence, name, until, amount=amount, capacity=capacity, now_us=site.now
    )


def meets(
    site: Site, lease: Lease, amount: int, *, capacity: int | None = None, until: str = "attempt"
) -> int:
    """It asks, is refused, and ends as ``job.lock`` does; its number."""
    assert not take(site, lease, amount, capacity=capacity, until=until)
    site.record(lease, Outcome.LOCKED, lock=DISK, lock_request=(amount, capacity))
    return lease.job_id


def running(site: Site, n: int = 1, **fields: int) -> list[Lease]:
    ids = site.submit(n=n, **fields)
    claimed = site.claim_by_job()
    leases = [claimed[job_id] for job_id in ids]
    site.start(*leases)
    return leases


def amounts(site: Site, name: str = DISK) -> dict[int | None, int]:
    return {info.owner_id: info.amount for info in site.store.locks.get(name)}


def capacity(site: Site, n: int | None, name: str = DISK) -> int:
    return site.store.locks.set_capacity(name, n, ANN, now_us=site.now)


# --- taking -------------------------------------------------------------------------------------


def test_amounts_are_summed_up_to_the_capacity(wide: Site) -> None:
    first, second, third = running(wide, 3)

    assert take(wide, first, 60)
    assert not take(wide, second, 41)
    assert take(wide, second, 40)
    assert not take(wide, third, 1)
    assert amounts(wide) == {first.job_id: 60, second.job_id: 40}


def test_an_amount_of_nothing_keeps_a_place_and_bars_nobody(wide: Site) -> None:
    first, second, third = running(wide, 3)

    assert take(wide, first, 0)
    assert take(wide, second, 100)
    assert take(wide, third, 0)
    assert amounts(wide) == {first.job_id: 0, second.job_id: 100, third.job_id: 0}


@pytest.mark.parametrize("few", [0, 32])
def test_sums_beyond_64_bits_are_compared_exactly(
    site: Site, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they come about where jobs below share what one above keeps; whether few have some of it or many."""
    monkeypatch.setattr(locks, "_FEW", few)
    site.store.register([], [], [LockCapacity(name=DISK, capacity=AMOUNT_MAX)])
    (parent,) = running(site)
    assert take(site, parent, AMOUNT_MAX, until="job")
    site.spawn(parent, n=2)
    site.pass_(parent)
    one, two = site.claim()

    assert take(site, one, AMOUNT_MAX - 5)
    assert not take(site, two, 6)
    assert take(site, two, 5)
    assert site.store.locks.get(DISK)[0].used == 2 * AMOUNT_MAX


@pytest.mark.parametrize("amount", [-1, AMOUNT_MAX + 1])
def test_what_is_no_amount_is_refused(wide: Site, amount: int) -> None:
    (lease,) = running(wide)

    with pytest.raises(UsageError, match="a whole number from 0"):
        take(wide, lease, amount)


def test_more_than_there_is_is_an_error_at_once(wide: Site) -> None:
    (lease,) = running(wide)

    with pytest.raises(
        UsageError, match=r"'disk:work' has a capacity of 100, so that nobody can take 101 of it"
    ):
        take(wide, lease, 101)
    assert amounts(wide) == {}


def test_more_than_there_is_is_an_error_too_where_only_one_above_has_some(wide: Site) -> None:
    """It waits for this job, so that nothing would ever come free."""
    (parent,) = running(wide)
    assert take(wide, parent, 10, until="job")
    wide.spawn(parent)
    wide.pass_(parent)

    with pytest.raises(UsageError, match="nobody can take 101"):
        take(wide, wide.claim_one(), 101)


def test_who_wants_more_than_there_is_while_another_has_some_is_told_when_that_has_gone(wide: Site) -> None:
    """A measured capacity may be more by then; and nobody waits for what never comes."""
    holder, other = running(wide, 2)
    assert take(wide, holder, 10)
    meets(wide, other, 101)
    wide.pass_(holder)

    again = wide.run(other.job_id)

    with pytest.raises(UsageError, match="nobody can take 101"):
        take(wide, again, 101)
    assert take(wide, again, 101, capacity=200)


def test_what_a_job_has_becomes_what_it_takes_again(wide: Site) -> None:
    first, second = running(wide, 2)
    assert take(wide, first, 60)
    assert take(wide, second, 30)

    assert take(wide, first, 70)
    assert not take(wide, first, 71)
    assert amounts(wide)[first.job_id] == 70
    assert take(wide, first, 20)
    assert take(wide, second, 80)
    assert amounts(wide) == {first.job_id: 20, second.job_id: 80}


def test_who_lowers_its_amount_lets_those_that_wait_go_on(wide: Site) -> None:
    holder, first, second, third = running(wide, 4)
    assert take(wide, holder, 100, until="job")
    waiting = [meets(wide, lease, amount) for lease, amount in ((first, 30), (second, 30), (third, 60))]

    assert take(wide, holder, 20, until="job")

    assert wide.states(waiting) == [State.PENDING, State.PENDING, State.WAITING]
    assert amounts(wide) == {holder.job_id: 20, first.job_id: 30, second.job_id: 30}, (
        "kept for them until they come"
    )


def test_a_stage_that_passes_with_its_amount_gives_it_back_and_keeps_what_is_the_jobs(site: Site) -> None:
    site.store.register([], [], [LockCapacity(name="disk:*", capacity=100)])
    (job_id,) = site.submit("three")
    lease = site.run(job_id)
    assert take(site, lease, 60, until="job")
    assert take(site, lease, 40, "disk:other")
    site.pass_(lease)

    assert (amounts(site), amounts(site, "disk:other")) == ({job_id: 60}, {})
    site.drain()
    assert amounts(site) == {}


def test_what_one_above_keeps_is_no_obstacle_below(wide: Site) -> None:
    (parent,) = running(wide)
    assert take(wide, parent, 90, until="job")
    wide.spawn(parent, n=2)
    wide.pass_(parent)
    one, two = wide.claim()
    (stranger,) = running(wide)

    assert not take(wide, stranger, 20)
    assert take(wide, one, 60)
    assert not take(wide, two, 60)
    assert take(wide, two, 40)


def test_a_stage_with_a_lock_by_name_takes_one(wide: Site) -> None:
    wide.knows(kind("slow", stage("work", locks=locked("disk:{n}"))))
    holder = running(wide)[0]
    assert take(wide, holder, 98, "disk:1")

    ids = wide.submit("slow", *[{"n": "1"}] * 3)

    assert [lease.job_id for lease in wide.claim()] == ids[:2]
    assert amounts(wide, "disk:1") == {holder.job_id: 98, ids[0]: 1, ids[1]: 1}


def test_a_stage_with_a_lock_by_name_keeps_the_amount_that_its_job_has_of_it(wide: Site) -> None:
    wide.knows(kind("slow", "first", stage("second", locks=locked(DISK))))
    lease = wide.run(wide.submit_one("slow"))
    assert take(wide, lease, 60, until="job")
    wide.pass_(lease)

    wide.claim_one()

    assert amounts(wide) == {lease.job_id: 60}


# --- who is next --------------------------------------------------------------------------------


def test_who_wants_much_is_not_passed_by_who_comes_later_and_wants_little(wide: Site) -> None:
    holder, much, little = running(wide, 3)
    assert take(wide, holder, 50)
    meets(wide, much, 80)

    assert not take(wide, little, 1)
    meets(wide, little, 1)
    wide.pass_(holder)

    assert wide.states([much.job_id, little.job_id]) == [State.PENDING, State.PENDING]
    assert amounts(wide) == {much.job_id: 80, little.job_id: 1}


def test_a_steady_stream_of_little_ones_ends_for_one_that_wants_all(wide: Site) -> None:
    """Given that some of a lock is always taken, the one that wants all of it has it once they have ended."""
    before = running(wide, 5)
    assert all(take(wide, lease, 20) for lease in before)
    (much,) = running(wide)
    meets(wide, much, 100)

    for lease in before:
        (newcomer,) = running(wide)
        meets(wide, newcomer, 20)
        wide.pass_(lease)

    assert wide.state(much.job_id) is State.PENDING
    assert amounts(wide) == {much.job_id: 100}


def test_a_more_urgent_newcomer_goes_first(wide: Site) -> None:
    holder, much = running(wide, 2)
    assert take(wide, holder, 50)
    meets(wide, much, 80)
    (urgent,) = running(wide, priority=1)

    assert take(wide, urgent, 50)


def test_a_job_that_becomes_the_first_of_the_queue_by_its_priority_gets_what_there_is_room_for(
    wide: Site,
) -> None:
    holder, passing, much, little = running(wide, 4)
    assert take(wide, holder, 60)
    assert take(wide, passing, 30)
    meets(wide, much, 80)
    meets(wide, little, 40)
    wide.pass_(passing)
    assert wide.states([much.job_id, little.job_id]) == [State.WAITING] * 2

    wide.store.bulk.apply(Order(verb=Verb.PRIORITY, priority=1), [little.job_id], ANN, now_us=wide.now)

    assert wide.states([much.job_id, little.job_id]) == [State.WAITING, State.PENDING]


def test_a_cancelled_job_lets_those_behind_it_have_what_there_is_room_for(wide: Site) -> None:
    holder, much, little = running(wide, 3)
    assert take(wide, holder, 60)
    meets(wide, much, 80)
    meets(wide, little, 40)
    assert wide.states([much.job_id, little.job_id]) == [State.WAITING] * 2

    wide.store.bulk.apply(Order(verb=Verb.CANCEL), [much.job_id], ANN, now_us=wide.now)

    assert wide.states([much.job_id, little.job_id]) == [State.CANCELLED, State.PENDING]


def test_who_has_some_may_have_more_though_others_wait(wide: Site) -> None:
    """They may wait for what it has."""
    holder, other = running(wide, 2)
    assert take(wide, holder, 50, until="job")
    meets(wide, other, 80)

    assert take(wide, holder, 60, until="job")


def test_who_keeps_some_and_waits_for_more_does_not_stand_behind_who_waits_for_that(wide: Site) -> None:
    holder, stranger, keeper = running(wide, 3)
    assert take(wide, holder, 40)
    assert take(wide, keeper, 40, until="job")
    meets(wide, stranger, 70)
    meets(wide, keeper, 90, until="job")
    assert wide.states([stranger.job_id, keeper.job_id]) == [State.WAITING, State.WAITING]

    wide.pass_(holder)

    assert wide.states([stranger.job_id, keeper.job_id]) == [State.WAITING, State.PENDING]
    again = wide.run(keeper.job_id)
    assert take(wide, again, 90, until="job")
    wide.pass_(again)
    assert wide.run(stranger.job_id)


def test_one_below_a_keeper_does_not_stand_behind_a_stranger(wide: Site) -> None:
    (parent,) = running(wide)
    (holder,) = running(wide)
    assert take(wide, parent, 40, until="job")
    assert take(wide, holder, 50)
    (child_id,) = wide.spawn(parent)
    (stranger,) = running(wide)
    meets(wide, stranger, 70)
    wide.pass_(parent)
    child = wide.run(child_id)
    meets(wide, child, 60)

    wide.pass_(holder)

    assert wide.states([stranger.job_id, child_id]) == [State.WAITING, State.PENDING]


def test_what_comes_free_between_refusal_and_record_is_given_at_once(wide: Site) -> None:
    holder, other, third = running(wide, 3)
    assert take(wide, holder, 60)
    assert take(wide, third, 10)
    assert not take(wide, other, 60)
    wide.pass_(holder)

    wide.record(other, Outcome.LOCKED, lock=DISK, lock_request=(60, None))

    assert wide.state(other.job_id) is State.PENDING


def test_what_was_kept_for_a_woken_job_and_not_taken_is_free_when_its_attempt_ends(wide: Site) -> None:
    holder, other, third = running(wide, 3)
    assert take(wide, holder, 100)
    meets(wide, other, 100)
    meets(wide, third, 100)
    wide.pass_(holder)

    wide.pass_(wide.run(other.job_id))

    assert wide.state(third.job_id) is State.PENDING


def test_very_many_that_fit_are_let_go_in_bounded_steps(wide: Site) -> None:
    holder, *others = running(wide, 61)
    assert take(wide, holder, 100)
    waiting = [meets(wide, lease, 1) for lease in others]

    wide.pass_(holder)
    at_once = wide.states(waiting).count(State.PENDING)
    wide.sweep()

    assert 0 < at_once < 60
    assert set(wide.states(waiting)) == {State.PENDING}


def test_a_hold_on_the_first_lets_the_others_go(wide: Site) -> None:
    holder, first, second = running(wide, 3)
    assert take(wide, holder, 100)
    meets(wide, first, 60)
    meets(wide, second, 60)
    wide.store.bulk.apply(Order(verb=Verb.HOLD, reason="look at it"), [first.job_id], ANN, now_us=wide.now)

    wide.pass_(holder)

    assert wide.states([first.job_id, second.job_id]) == [State.HELD, State.PENDING]


def test_a_recovered_nodes_amounts_are_free(wide: Site) -> None:
    node = wide.node("n")
    (job_id,) = wide.submit()
    lease = wide.run(job_id, node)
    assert take(wide, lease, 100)
    (other,) = running(wide)
    meets(wide, other, 50)

    wide.recover(node)

    assert wide.state(other.job_id) is State.PENDING


# --- whose word counts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("set_", "declared", "job_capacity", "counts"),
    [
        ({}, {}, None, 1),
        ({}, {"disk:*": 5}, None, 5),
        ({}, {"disk:*": 5, "disk:work": 7}, None, 7),
        ({}, {"d*": 3, "disk:*": 5}, None, 5),
        ({}, {"disk:*": 5}, 9, 9),
        ({"disk:*": 4}, {"disk:*": 5}, None, 4),
        ({"disk:*": 4}, {"disk:work": 7}, None, 4),
        ({"disk:*": 4, "disk:work": 6}, {}, None, 6),
        ({"disk:*": 4}, {}, 9, 4),
        ({"disk:other": 4}, {}, None, 1),
    ],
)
def test_the_longest_name_of_the_strongest_party_counts(
    site: Site, set_: dict[str, int], declared: dict[str, int], job_capacity: int | None, counts: int
) -> None:
    site.store.register([], [], [LockCapacity(name=name, capacity=n) for name, n in declared.items()])
    for name, n in set_.items():
        capacity(site, n, name)

    first, second = running(site, 2)
    assert take(site, first, counts, capacity=job_capacity)
    assert not take(site, second, 1, capacity=job_capacity)


def test_a_capacity_given_by_the_taker_counts_for_that_taking(site: Site) -> None:
    first, second = running(site, 2)

    assert take(site, first, 60, capacity=100)
    assert not take(site, second, 60, capacity=110)
    assert take(site, second, 60, capacity=120)


def test_who_waits_is_measured_by_the_capacity_that_it_gave(site: Site) -> None:
    one, two, other = running(site, 3)
    assert take(site, one, 50, capacity=100)
    assert take(site, two, 50, capacity=100)
    meets(site, other, 60, capacity=100)

    site.pass_(one)
    assert site.state(other.job_id) is State.WAITING
    site.pass_(two)
    assert site.state(other.job_id) is State.PENDING


def test_a_larger_capacity_lets_those_that_wait_go_on(wide: Site) -> None:
    holder, first, second = running(wide, 3)
    assert take(wide, holder, 90)
    waiting = [meets(wide, first, 60), meets(wide, second, 60)]

    assert capacity(wide, 150, "disk:*") == 150

    assert wide.states(waiting) == [State.PENDING, State.WAITING]


def test_a_capacity_that_is_lowered_takes_nothing_away_and_grants_nothing(wide: Site) -> None:
    first, second, third = running(wide, 3)
    assert take(wide, first, 60)
    assert take(wide, second, 30)

    capacity(wide, 50)

    assert amounts(wide) == {first.job_id: 60, second.job_id: 30}
    assert not take(wide, third, 1)
    assert not take(wide, second, 31)
    assert take(wide, second, 20)
    meets(wide, third, 20)
    wide.pass_(first)
    assert wide.state(third.job_id) is State.PENDING


def test_what_an_operator_set_outlasts_what_is_declared_anew(wide: Site) -> None:
    capacity(wide, 7, "disk:*")

    wide.store.register([], [], [LockCapacity(name="disk:*", capacity=200)])

    assert wide.store.locks.capacities() == [
        CapacityInfo(name="disk:*", capacity=7, declared=200, by="ann", at_us=wide.now)
    ]
    assert capacity(wide, None, "disk:*") == 200
    assert wide.store.locks.capacities() == [
        CapacityInfo(name="disk:*", capacity=200, declared=200, by=None, at_us=None)
    ]


def test_what_was_set_and_never_declared_is_forgotten_when_it_is_taken_back(site: Site) -> None:
    capacity(site, 7)

    assert capacity(site, None) == 1
    assert site.store.locks.capacities() == []


def test_every_change_is_in_the_audit_and_what_changes_nothing_is_not(site: Site) -> None:
    capacity(site, 7)
    capacity(site, 7)
    capacity(site, None)

    entries = [(e.verb, json.loads(e.what), e.by, e.reason) for e, _ in site.store.audit.entries()]
    assert entries == [
        ("lock", {"lock": DISK, "capacity": 7}, "ann", "a larger disk"),
        ("lock", {"lock": DISK, "capacity": "as declared"}, "ann", "a larger disk"),
    ]


@pytest.mark.parametrize(
    ("name", "n", "error", "message"),
    [
        (DISK, 0, UsageError, "from 1 to"),
        (DISK, AMOUNT_MAX + 1, UsageError, "from 1 to"),
        ("*", 1, BadName, "no family"),
        ("a*b", 1, BadName, "no family"),
        ("../x*", 1, BadName, "no family"),
        ("disk:wrok", None, Refused, "did you mean 'disk:work'"),
    ],
)
def test_what_is_no_capacity_is_refused(
    site: Site, name: str, n: int | None, error: type[Exception], message: str
) -> None:
    capacity(site, 3)

    with pytest.raises(error, match=message):
        capacity(site, n, name)
    assert len(site.store.audit.entries()) == 1


def test_another_process_goes_by_it_at_once(site: Site, open_another: Callable[[], Store]) -> None:
    elsewhere = open_another()
    (owner,) = running(site, 1)
    take(site, owner, 1)
    assert [info.capacity for info in elsewhere.locks.get(DISK)] == [1]

    capacity(site, 7)

    assert [info.capacity for info in elsewhere.locks.get(DISK)] == [7]


# --- looking ------------------------------------------------------------------------------------


def test_a_lock_is_listed_with_what_each_has_of_what_there_is(wide: Site) -> None:
    first, second, third = running(wide, 3)
    assert take(wide, first, 60)
    assert take(wide, second, 30, until="job")
    meets(wide, third, 20)

    owners = [
        (i.owner_id, i.until, i.amount, i.used, i.capacity, i.waiting) for i in wide.store.locks.get(DISK)
    ]
    assert owners == [(first.job_id, "attempt", 60, 90, 100, 1), (second.job_id, "job", 30, 90, 100, 1)]


def test_a_freed_lock_goes_to_all_that_fit(wide: Site) -> None:
    holder, first, second = running(wide, 3)
    assert take(wide, holder, 100)
    waiting = [meets(wide, first, 50), meets(wide, second, 50)]

    assert wide.store.locks.free(DISK, ANN, now_us=wide.now) == 1

    assert wide.states(waiting) == [State.PENDING, State.PENDING]


def test_who_waits_for_some_is_told_how_much_there_is_and_who_has_it(wide: Site) -> None:
    one, two, much, little = running(wide, 4)
    assert take(wide, one, 60)
    assert take(wide, two, 10)
    meets(wide, much, 50)
    meets(wide, little, 5)

    explanation = explained(wide.store, much.job_id, wide.now)
    assert explanation.sentence == (
        f"it wants 50 of the lock 'disk:work', which has a capacity of 100: 2 jobs, the first of them {one.job_id}, "
        "have 70 of it"
    )
    assert (explanation.cause, explanation.command, explanation.facts["used"]) == (
        "lock",
        "spinney lock disk:work",
        70,
    )
    explanation = explained(wide.store, little.job_id, wide.now)
    assert (
        explanation.sentence == f"it wants 5 of the lock 'disk:work', and job {much.job_id} comes before it"
    )


def test_one_that_waits_for_room_that_is_there_is_found_by_the_doctor(wide: Site) -> None:
    holder, other = running(wide, 2)
    assert take(wide, holder, 60)
    meets(wide, other, 60)
    wide.clock.forward(3600)
    assert list(wide.store.doctor.examine(["stuck-for-lock", "lock-of-nobody"], now_us=wide.now)) == []
    damage(wide.store, "update locks set amount = 10 where job_id = ?", holder.job_id)

    (violation,) = wide.store.doctor.examine(["stuck-for-lock"], now_us=wide.now)

    assert violation.subject == f"job {other.job_id}"
    assert wide.store.doctor.repair(violation, ANN, now_us=wide.now)
    assert wide.state(other.job_id) is State.PENDING
