"""Locks seen from outside: who has them, who waits, and how one is taken away from an owner that is gone."""

import json
from typing import Any

import pytest

from spinney.model.errors import BadName, Refused
from spinney.model.jobs import Lease
from spinney.model.operators.locks import LockInfo
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.states import State

from .behind import damage
from .words import Site, kind, locked, stage

SERNO = {"serno": "SG-1"}
LOCK = "receiver:SG-1"
ANN = Actor(by="ann", call="c1", reason="the receiver was rebooted")


@pytest.fixture
def keeping(site: Site) -> Site:
    """A site that knows a type which keeps its lock over stages."""
    site.knows(kind("keeper", stage("first", locks=locked("receiver:{serno}", until="job")), "second"))
    return site


def rivals(site: Site, n: int = 3) -> tuple[Lease, list[int]]:
    """The lease of the one that has the lock, and those that wait for it."""
    ids = site.submit("locked", *[SERNO] * n)
    (lease,) = site.claim()
    site.start(lease)
    return lease, ids[1:]


def listed(site: Site, **how: Any) -> list[LockInfo]:
    return list(site.store.locks.all(**how))


def free(site: Site, name: str = LOCK, job_id: int | None = None) -> int:
    return site.store.locks.free(name, ANN, job_id=job_id, now_us=site.now)


def of_capacity(site: Site, name: str, capacity: int) -> None:
    site.store.locks.set_capacity(name, capacity, ANN, now_us=site.now)


# --- looking ------------------------------------------------------------------------------------


def test_a_lock_is_listed_with_its_owner_and_who_waits(site: Site) -> None:
    lease, _ = rivals(site)

    assert listed(site) == [
        LockInfo(name=LOCK, owner_id=lease.job_id, until="attempt", node="here", since_us=site.now, waiting=2)
    ]


def test_where_nothing_is_locked_nothing_is_listed(site: Site) -> None:
    site.submit_one("locked", SERNO)

    assert listed(site) == []


def test_a_lock_that_was_taken_inside_a_stage_says_since_when(site: Site) -> None:
    lease = site.run(site.submit_one())
    site.clock.forward(60)

    site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now)

    assert [(i.owner_id, i.since_us) for i in listed(site)] == [(lease.job_id, site.now)]


def test_a_lock_that_is_kept_between_stages_runs_on_no_node(keeping: Site) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    keeping.pass_(keeping.run(keeper))

    assert [(i.owner_id, i.until, i.node) for i in listed(keeping)] == [(keeper, "job", None)]


def test_a_lock_that_is_kept_for_a_woken_job_is_reserved(site: Site) -> None:
    lease, (first, _) = rivals(site)
    site.pass_(lease)

    assert [(i.owner_id, i.until, i.node, i.waiting) for i in listed(site)] == [(first, "reserved", None, 1)]


def test_a_lock_that_is_waited_for_but_nobody_has_is_listed_too(site: Site) -> None:
    """As long as nobody has been woken for it."""
    lease, waiting = rivals(site)
    damage(site.store, "delete from locks where job_id = ?", lease.job_id)

    assert [(i.name, i.owner_id, i.until, i.since_us, i.waiting) for i in listed(site)] == [
        (LOCK, None, "", None, len(waiting))
    ]


def test_each_owner_of_a_wide_lock_has_a_line(site: Site) -> None:
    of_capacity(site, LOCK, 2)
    ids = site.submit("locked", *[SERNO] * 4)
    site.claim()

    assert [(i.owner_id, i.waiting) for i in listed(site)] == [(ids[0], 2), (ids[1], 2)]


def test_locks_are_listed_by_name_a_page_at_a_time(site: Site) -> None:
    numbers = [f"SG-{n}" for n in range(5)]
    site.submit("locked", *[{"serno": s} for s in numbers], *[SERNO] * 3)
    site.claim()

    first = listed(site, limit=2)
    second = listed(site, after=first[-1].name, limit=2)
    rest = listed(site, after=second[-1].name)

    assert [i.name for i in [*first, *second, *rest]] == [f"receiver:{s}" for s in numbers]
    assert [i.waiting for i in [*first, *second, *rest]] == [0, 3, 0, 0, 0]


def test_one_lock_is_looked_at_by_its_name(site: Site) -> None:
    lease, _ = rivals(site)

    assert [i.owner_id for i in site.store.locks.get(LOCK)] == [lease.job_id]
    assert list(site.store.locks.get("receiver:SG-2")) == []


# --- taking away --------------------------------------------------------------------------------


def test_a_freed_lock_goes_to_the_next_that_waits(site: Site) -> None:
    lease, (first, second) = rivals(site)

    assert free(site) == 1

    assert site.states([first, second]) == [State.PENDING, State.WAITING]
    assert [le.job_id for le in site.claim()] == [first]
    assert site.state(lease.job_id) is State.RUNNING, "the old owner's lease stays"


def test_the_old_owner_gives_back_nothing_that_is_not_its_own(site: Site) -> None:
    lease, (first, second) = rivals(site)
    free(site)
    (new,) = site.claim()

    site.pass_(lease)

    assert site.state(lease.job_id) is State.COMPLETED
    assert site.claim() == []
    assert [i.owner_id for i in listed(site)] == [first]
    site.pass_(new)
    assert [le.job_id for le in site.claim()] == [second]


@pytest.mark.parametrize(
    "outcome", [Outcome.ERROR, Outcome.DEFER, Outcome.HOLD, Outcome.LOST, Outcome.LOCKED]
)
def test_however_the_old_owner_ends_the_new_one_keeps_it(site: Site, outcome: Outcome) -> None:
    lease, (first, second) = rivals(site)
    free(site)
    site.claim()

    site.record(lease, outcome, lock=LOCK)

    site.sweep()
    assert [i.owner_id for i in listed(site)] == [first]
    assert site.state(second) is State.WAITING


def test_the_old_owner_no_longer_has_it(site: Site) -> None:
    lease, _ = rivals(site)
    free(site)
    site.claim()

    assert site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now) is False


def test_a_keeper_loses_a_lock_that_it_would_keep_until_it_settles(keeping: Site) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    keeping.pass_(keeping.run(keeper))
    rival = keeping.submit_one("locked", SERNO)

    free(keeping)

    assert rival in keeping.claim_by_job()


def test_a_reservation_is_taken_away_too(site: Site) -> None:
    lease, (first, second) = rivals(site)
    site.pass_(lease)

    free(site)

    assert [i.owner_id for i in listed(site)] == [second]
    assert [le.job_id for le in site.claim()] == [second]
    assert site.job(first).waits_for == f"lock:{LOCK}"


def test_of_several_owners_one_may_be_named(site: Site) -> None:
    of_capacity(site, LOCK, 2)
    ids = site.submit("locked", *[SERNO] * 4)
    site.claim()

    assert free(site, job_id=ids[0]) == 1

    assert [i.owner_id for i in listed(site)] == [ids[1], ids[2]]


def test_of_several_owners_all_lose_it_where_none_is_named(site: Site) -> None:
    of_capacity(site, LOCK, 2)
    ids = site.submit("locked", *[SERNO] * 5)
    site.claim()

    assert free(site) == 2

    site.claim()
    assert [i.owner_id for i in listed(site)] == [ids[2], ids[3]]


def test_a_lock_that_nobody_has_is_refused_with_the_nearest_there_is(site: Site) -> None:
    rivals(site)

    with pytest.raises(
        Refused, match=r"no job has the lock 'receiver:SG-2' \(did you mean 'receiver:SG-1'\?\)"
    ):
        free(site, "receiver:SG-2")
    with pytest.raises(BadName):
        free(site, "../etc")


def test_a_job_that_does_not_have_it_is_refused_with_who_has(site: Site) -> None:
    lease, (first, _) = rivals(site)

    with pytest.raises(Refused, match=f"job {first} does not have .*: job {lease.job_id} has it"):
        free(site, job_id=first)

    assert [i.owner_id for i in listed(site)] == [lease.job_id]


def test_it_is_in_the_audit_with_who_lost_it_and_why(site: Site) -> None:
    lease, _ = rivals(site)
    before = site.store.audit.head()

    free(site)

    (entry, _), *_ = site.store.audit.entries(newest=True, limit=1)
    assert (entry.by, entry.verb, entry.count, entry.reason) == ("ann", "unlock", 1, ANN.reason)
    assert json.loads(entry.what) == {"lock": LOCK, "jobs": [lease.job_id]}
    assert site.store.audit.verify(before) == entry.seq


def test_what_is_refused_is_not_in_the_audit(site: Site) -> None:
    before = site.store.audit.head()

    with pytest.raises(Refused):
        free(site)

    assert site.store.audit.head() == before
