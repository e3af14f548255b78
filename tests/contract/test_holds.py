"""Holds: under one nothing new starts, what runs finishes its stage, what is submitted is held."""

from collections.abc import Callable
from typing import Any

import pytest

from explanations import explained
from spinney.model.errors import BadName, NoSuch, NoSuchJob, Refused, UnknownType, UsageError
from spinney.model.jobs import Submission
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import rows
from .words import SECOND_US, Site, kind, stage, submission

ANN = Actor(by="ann", call="c1")
BOB = Actor(by="bob", call="c2")


def lay(site: Site, scope: Scope, name: str | int = "", reason: str = "disk swap", **more: Any) -> Hold:
    actor = more.pop("actor", ANN)
    return site.store.holds.lay(scope, str(name), reason, actor, now_us=site.now, **more)


def lift(site: Site, hold: Hold) -> None:
    site.store.holds.lift(hold.id, ANN, now_us=site.now)


def swept(site: Site, limit: int = 1000) -> int:
    """Sweep to the end; how many steps it took."""
    for steps in range(1, 10_000):
        if not site.store.holds.sweep(now_us=site.now, limit=limit):
            return steps
    raise AssertionError("the sweep does not end")


def held(site: Site, *jobs: int) -> bool:
    return all((job.state, job.waits_for) == (State.HELD, "hold") for job in map(site.job, jobs))


Scoped = Callable[[Site], tuple[Scope, str | int, list[int], list[int]]]
"""Makes jobs; says what to hold, and which of them that covers and which not."""


def _of_queue(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    return Scope.QUEUE, "q", site.submit(n=3, queue="q"), site.submit(n=3)


def _of_type(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    return Scope.TYPE, "one", site.submit(n=3), site.submit("three", n=3)


def _of_collection(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    return (
        Scope.COLLECTION,
        "c",
        site.submit(n=3, collection="c"),
        site.submit(n=2) + site.submit(n=1, collection="d"),
    )


def _of_submitter(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    return Scope.SUBMITTER, "eve", site.submit(n=3, submitter="eve"), site.submit(n=2, submitter="ann")


def _of_tree(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    top, children = site.family(n=3)
    return Scope.TREE, top, children, site.submit(n=3)


def _of_tree_whose_top_is_pending(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    top = site.submit_one()
    return Scope.TREE, top, [top], site.submit(n=2)


def _of_job(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    first, *others = site.submit(n=3)
    return Scope.JOB, first, [first], others


def _of_everything(site: Site) -> tuple[Scope, str | int, list[int], list[int]]:
    return Scope.EVERYTHING, "", site.submit(n=3) + site.submit("three", n=2, queue="q"), []


SCOPES = {
    f.__name__[4:]: f
    for f in (
        _of_queue,
        _of_type,
        _of_collection,
        _of_submitter,
        _of_tree,
        _of_tree_whose_top_is_pending,
        _of_job,
        _of_everything,
    )
}
scopes = pytest.mark.parametrize("scoped", SCOPES.values(), ids=SCOPES)


# --- nothing starts ---------------------------------------------------------------------------


@scopes
def test_from_the_first_moment_nothing_that_it_covers_is_claimed(site: Site, scoped: Scoped) -> None:
    scope, name, _, others = scoped(site)

    lay(site, scope, name)

    assert {lease.job_id for lease in site.claim()} == set(others)


@scopes
def test_the_same_where_slots_are_given_many_ahead(site: Site, scoped: Scoped) -> None:
    scope, name, _, others = scoped(site)

    lay(site, scope, name)

    assert {lease.job_id for lease in site.claim(slots=2, jobs=50, run_us=5.0)} == set(others)


@scopes
def test_a_sweep_shows_them_as_held_and_says_why(site: Site, scoped: Scoped) -> None:
    scope, name, under, others = scoped(site)
    hold = lay(site, scope, name)

    swept(site, limit=2)

    assert held(site, *under)
    assert {site.job(job).message for job in under} == {str(hold)}
    assert "disk swap" in str(hold)
    assert "ann" in str(hold)
    assert set(site.states(others)) <= {State.PENDING}
    assert site.store.holds.held(hold.id) == len(under)


@scopes
def test_once_it_is_lifted_all_of_them_go_on(site: Site, scoped: Scoped) -> None:
    scope, name, under, others = scoped(site)
    hold = lay(site, scope, name)
    swept(site)

    lift(site, hold)
    swept(site, limit=2)

    assert set(site.states(under + others)) == {State.PENDING}
    assert {job for job, _ in site.drain()} >= {*under, *others}
    assert site.store.holds.all() == []


@scopes
def test_lifted_before_it_was_swept_it_leaves_nothing_behind(site: Site, scoped: Scoped) -> None:
    scope, name, under, others = scoped(site)
    hold = lay(site, scope, name)
    site.claim(slots=1)

    lift(site, hold)
    swept(site)

    site.recover(site.here)
    assert {job for job, _ in site.drain(node=site.node("another", slots=64))} >= {*under, *others}


@scopes
def test_what_covers_a_job_is_told(site: Site, scoped: Scoped) -> None:
    scope, name, under, others = scoped(site)
    hold = lay(site, scope, name)

    assert [site.store.holds.covering(job) for job in under] == [[hold]] * len(under)
    assert [site.store.holds.covering(job) for job in others] == [[]] * len(others)


def test_another_store_object_claims_nothing_either(site: Site, open_another: Callable[[], Store]) -> None:
    another = Site(open_another(), site.clock)
    site.submit(n=3)
    elsewhere = another.node("elsewhere")
    another.claim(elsewhere, 1)

    lay(site, Scope.TYPE, "one")

    assert another.claim(elsewhere) == []


def test_a_stage_that_runs_finishes_and_the_next_does_not_start(site: Site) -> None:
    job = site.submit_one("three")
    lease = site.run(job)
    lay(site, Scope.TYPE, "three")

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here))

    assert answer.leases == []
    assert held(site, job)
    assert site.job(job).stage == "second"


@scopes
def test_a_sweep_leaves_alone_what_runs(site: Site, scoped: Scoped) -> None:
    scope, name, under, others = scoped(site)
    leases = site.claim_by_job()
    lay(site, scope, name)

    swept(site)

    assert set(site.states([*under, *others])) == {State.CLAIMED}
    assert site.ids(states=(State.HELD,)) == []
    assert not site.pass_(*(leases[job] for job in under)).refused
    assert not {State.HELD, State.CLAIMED} & {
        s for job, s in zip(under, site.states(under), strict=True) if leases[job].type == "one"
    }


def test_what_is_handed_back_unbegun_is_held(site: Site) -> None:
    jobs = site.submit(n=5)
    leases = site.claim(slots=1, jobs=5, run_us=5.0)
    hold = lay(site, Scope.TYPE, "one")

    site.flush_and_claim([site.entry(lease, Outcome.RETURNED, started_us=0, ended_us=0) for lease in leases])

    assert held(site, *jobs)
    assert {site.job(job).attempts for job in jobs} == {0}
    lift(site, hold)
    swept(site)
    assert [job for job, _ in site.drain()] == jobs


def test_what_is_handed_back_under_a_hold_of_others_stands_where_it_stood(site: Site) -> None:
    jobs = site.submit(n=5)
    leases = site.claim(slots=1, jobs=5, run_us=5.0)
    lay(site, Scope.TYPE, "three")
    lay(site, Scope.JOB, jobs[1])

    site.flush_and_claim([site.entry(lease, Outcome.RETURNED, started_us=0, ended_us=0) for lease in leases])

    assert held(site, jobs[1])
    assert [job for job, _ in site.drain()] == [jobs[0], *jobs[2:]]


def test_what_a_dead_node_ran_is_held(site: Site) -> None:
    job = site.submit_one()
    site.run(job)
    lay(site, Scope.EVERYTHING)

    site.recover(site.here)

    assert held(site, job)


def test_a_more_urgent_job_under_a_hold_does_not_keep_others_from_being_given_ahead(site: Site) -> None:
    urgent = site.submit(n=300, collection="c", priority=1)
    others = site.submit(n=50, priority=60)
    lay(site, Scope.COLLECTION, "c")

    leases = site.claim(slots=1, jobs=50, run_us=5.0)

    assert {lease.job_id for lease in leases} == set(others)
    assert not {lease.job_id for lease in leases} & set(urgent)


def test_behind_covered_jobs_of_the_same_share_the_others_come_up_claim_by_claim(site: Site) -> None:
    under = site.submit(n=450, collection="c", share="s")
    others = site.submit(n=5, share="s")
    lay(site, Scope.COLLECTION, "c")

    claimed: set[int] = set()
    for _ in range(10):
        claimed |= {lease.job_id for lease in site.claim(slots=5)}

    assert claimed == set(others)
    assert not {job for job in under if site.job(job).fence}


# --- what only waits --------------------------------------------------------------------------


def test_scheduled_and_waiting_jobs_stay_so_until_they_would_become_claimable(site: Site) -> None:
    timed = site.submit_one(at_us=site.now + 5_000_000)
    need = site.submit_one("three")
    needy = site.submit_one(needs=(need,))
    lease = next(lease for lease in site.claim() if lease.job_id == need)
    lay(site, Scope.TYPE, "one")
    swept(site)
    assert site.states([timed, needy]) == [State.SCHEDULED, State.WAITING]

    site.later(6)
    site.record(lease, Outcome.FINISH)

    assert held(site, timed, needy)


def test_a_retry_that_comes_due_is_held(site: Site) -> None:
    job = site.submit_one("tenacious")
    site.record(site.run(job), Outcome.ERROR)
    lay(site, Scope.TYPE, "tenacious")

    site.later(2)

    assert held(site, job)


def test_a_parent_waits_for_children_that_are_held_and_is_held_itself_then(site: Site) -> None:
    parent, _ = site.family(n=2)
    one = lay(site, Scope.TYPE, "one")
    other = lay(site, Scope.TYPE, "parent")
    swept(site)
    assert site.state(parent) is State.WAITING

    lift(site, one)
    swept(site)
    site.drain()

    assert held(site, parent)
    lift(site, other)
    swept(site)
    assert site.drain() == [(parent, "merge")]


# --- submissions ------------------------------------------------------------------------------


def test_a_submission_is_accepted_and_held_and_says_how_many(site: Site) -> None:
    lay(site, Scope.TYPE, "one")

    done = site.store.submit([submission_of("one", 3), submission_of("three", 2)], now_us=site.now)

    assert done.held == 3
    assert held(site, *done.ids[:3])
    assert set(site.states(done.ids[3:])) == {State.PENDING}


@pytest.mark.parametrize("how", ["flat", "keyed", "late"])
def test_a_long_submission_is_held_whole(site: Site, how: str) -> None:
    hold = lay(site, Scope.COLLECTION, "c")
    n = 5_000 if how == "flat" else 700
    fields: dict[str, Any] = {"collection": "c"}
    if how == "keyed":
        fields["keys"] = tuple(f"k{i}" for i in range(n))
    if how == "late":
        fields["at_us"] = site.now - 1

    done = site.store.submit([submission_of("one", n, **fields)], now_us=site.now)

    assert (done.held, site.count()) == (n, {"held": n})
    lift(site, hold)
    swept(site)
    assert site.count() == {"pending": n}


def test_a_submission_of_which_a_hold_covers_a_part(site: Site) -> None:
    lay(site, Scope.SUBMITTER, "eve")

    done = site.store.submit(
        [submission_of("one", 1_500, submitter="eve"), submission_of("one", 1_500)], now_us=site.now
    )

    assert done.held == 1_500
    assert site.count(submitter="eve") == {"held": 1_500}
    assert site.count() == {"held": 1_500, "pending": 1_500}


def test_without_a_hold_no_submission_says_held(site: Site) -> None:
    site.record(site.run(site.submit_one()), Outcome.HOLD)

    assert site.store.submit([submission_of("one", 2)], now_us=site.now).held == 0


@pytest.mark.parametrize("n", [3, 400])
def test_children_are_born_held_below_a_tree_that_is_held(site: Site, n: int) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    born = site.spawn(lease, n=n)
    lay(site, Scope.TREE, parent)

    site.pass_(lease)
    site.sweep()

    assert held(site, *born)
    assert site.state(parent) is State.WAITING
    assert site.store.holds.held(1) == n


def test_children_that_are_not_born_yet_are_not_touched_by_a_sweep(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    site.spawn(lease, n=3)
    lay(site, Scope.TREE, parent)

    swept(site)
    site.fail(lease)
    site.sweep()

    assert site.count() == {"failed": 1}


def test_a_parent_waits_for_a_child_that_was_held_before_it_was_put_in_its_place(site: Site) -> None:
    """A long call's jobs are there before all of them can be claimed."""
    parent = site.submit_one("parent")
    lease = site.run(parent)
    children = site.spawn(lease, n=2_500)
    site.pass_(lease)
    hold = lay(site, Scope.JOB, children[-1])

    site.sweep()
    while leases := site.claim():
        site.pass_(*leases)

    assert site.count() == {"completed": 2_499, "held": 1, "waiting": 1}
    lift(site, hold)
    assert site.drain() == [(children[-1], "work"), (parent, "merge")]


def test_children_with_keys_are_born_held(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    hold = lay(site, Scope.TYPE, "one")

    (child,) = site.spawn(lease, keys=("k",))

    assert held(site, child)
    site.pass_(lease)
    assert site.state(lease.job_id) is State.WAITING
    lift(site, hold)
    swept(site)
    assert site.drain() == [(child, "work"), (lease.job_id, "merge")]


# --- overlaps and ends ------------------------------------------------------------------------


def test_a_job_goes_on_when_the_last_hold_over_it_is_gone(site: Site) -> None:
    job = site.submit_one(collection="c", submitter="eve", queue="q")
    laid = [
        lay(site, Scope.TYPE, "one"),
        lay(site, Scope.COLLECTION, "c"),
        lay(site, Scope.JOB, job),
        lay(site, Scope.SUBMITTER, "eve"),
        lay(site, Scope.QUEUE, "q"),
        lay(site, Scope.TREE, job),
        lay(site, Scope.EVERYTHING),
    ]
    swept(site)
    assert site.store.holds.covering(job) == laid

    for hold in laid[:-1]:
        lift(site, hold)
        swept(site)
        assert held(site, job)
    lift(site, laid[-1])
    swept(site)

    assert site.drain() == [(job, "work")]


def test_the_job_names_another_hold_when_the_one_it_named_has_ended(site: Site) -> None:
    job = site.submit_one()
    first = lay(site, Scope.TYPE, "one", "disk swap")
    second = lay(site, Scope.EVERYTHING, "", "the network is down")
    swept(site)
    assert site.job(job).message == str(first)

    lift(site, first)
    swept(site)

    assert site.job(job).message == str(second)


def test_a_hold_ends_by_itself(site: Site) -> None:
    job = site.submit_one()
    hold = lay(site, Scope.TYPE, "one", until_us=site.now + 60_000_000)
    swept(site)
    assert site.flush_and_claim([], site.want(site.here)).wake_us == hold.until_us

    site.clock.forward(61)
    swept(site)

    assert site.store.holds.all() == []
    assert site.drain() == [(job, "work")]
    (ended,) = (e for e, _ in site.store.audit.entries() if e.verb == "release")
    assert (ended.by, ended.reason) == ("spinney", "its time is over")


def test_holds_on_single_jobs_end_by_themselves_too(site: Site) -> None:
    jobs = site.submit(n=250)
    for job in jobs:
        lay(site, Scope.JOB, job, until_us=site.now + 1_000_000)
    assert held(site, *jobs)

    site.clock.forward(2)
    swept(site)

    assert site.count() == {"pending": 250}


def test_the_end_of_a_hold_on_a_job_can_be_put_off(site: Site) -> None:
    job = site.submit_one()
    lay(site, Scope.JOB, job, until_us=site.now + 1_000_000)
    lay(site, Scope.JOB, job, until_us=site.now + 60_000_000)

    site.clock.forward(2)
    swept(site)
    assert held(site, job)

    site.clock.forward(60)
    swept(site)
    assert site.drain() == [(job, "work")]


def test_before_its_time_nothing_ends(site: Site) -> None:
    site.submit_one()
    lay(site, Scope.TYPE, "one", until_us=site.now + 60_000_000)

    site.clock.forward(59)
    swept(site)

    assert site.count() == {"held": 1}


def test_laid_again_by_the_same_person_for_the_same_reason_it_is_the_same(site: Site) -> None:
    job = site.submit_one()
    first = lay(site, Scope.TYPE, "one")
    again = lay(site, Scope.TYPE, "one", until_us=site.now + 5)
    other = lay(site, Scope.TYPE, "one", actor=BOB)
    single, single_again = (lay(site, Scope.JOB, job) for _ in range(2))

    assert again.id == first.id
    assert single.id == single_again.id
    assert [h.id for h in site.store.holds.all()] == [first.id, other.id, single.id]
    assert site.store.holds.all()[0].until_us == site.now + 5


def test_who_laid_and_lifted_what_is_in_the_audit(site: Site) -> None:
    job = site.submit_one()
    hold, single = lay(site, Scope.QUEUE, "default"), lay(site, Scope.JOB, job)
    lift(site, hold)
    lift(site, single)

    entries = [(e.verb, e.by, e.count, e.what) for e, _ in site.store.audit.entries()]

    assert [t[:3] for t in entries] == [("hold", "ann", 1)] * 2 + [("release", "ann", 1)] * 2
    assert '"scope":"queue"' in entries[0][3]
    assert f'"name":"{job}"' in entries[3][3]


def test_a_hold_that_is_not_there_cannot_be_lifted(site: Site) -> None:
    with pytest.raises(Refused, match="there is no hold 7"):
        site.store.holds.lift(7, ANN, now_us=site.now)


# --- release looks afresh ---------------------------------------------------------------------


def test_a_job_whose_need_was_opened_again_waits_for_it_when_released(site: Site) -> None:
    need = site.submit_one("three")
    needy = site.submit_one(needs=(need,))
    site.drain(failing=())  # the need and the needy complete
    site.rerun(needy)
    hold = lay(site, Scope.TYPE, "one")
    swept(site)
    assert held(site, needy)
    site.rerun(need)

    lift(site, hold)
    swept(site)

    assert (site.state(needy), site.job(needy).waits_for) == (State.WAITING, "needs")
    assert [job for job, _ in site.drain()][-1] == needy


def test_a_job_whose_need_failed_meanwhile_fails_when_released(site: Site) -> None:
    need = site.submit_one("three")
    needy = site.submit_one(needs=(need,))
    site.drain()
    site.rerun(needy)
    hold = lay(site, Scope.TYPE, "one")
    swept(site)
    site.rerun(need)
    site.fail(site.claim_one())

    lift(site, hold)
    swept(site)

    assert site.state(needy) is State.FAILED


def test_a_parent_whose_child_was_opened_again_waits_for_it_when_released(site: Site) -> None:
    parent, (child, _) = site.family("batch", n=2)
    for lease in site.claim():
        site.pass_(lease)
    hold = lay(site, Scope.TYPE, "batch")
    swept(site)
    assert held(site, parent)
    site.rerun(child)

    lift(site, hold)
    swept(site)

    assert (site.state(parent), site.job(parent).waits_for) == (State.WAITING, "children")
    assert [job for job, _ in site.drain()] == [child, parent]


def test_a_job_that_is_wished_cancelled_is_cancelled_not_released(site: Site) -> None:
    parent, children = site.family(n=2)
    lay(site, Scope.TYPE, "one")
    swept(site)

    site.cancel(parent, tree=True)

    assert set(site.states([parent, *children])) == {State.CANCELLED}


def test_jobs_with_needs_and_those_without_are_released_alike(site: Site) -> None:
    """Some go by sets, some one by one: all go, and none twice."""
    need = site.submit_one()
    site.drain()
    hold = lay(site, Scope.TYPE, "one")
    plain = site.submit(n=450)
    needy = site.submit(n=450, needs=(need,))
    swept(site)

    lift(site, hold)
    steps = swept(site, limit=100)

    assert steps > 9
    assert site.count() == {"completed": 1, "pending": 900}
    assert sorted(job for job, _ in site.drain()) == sorted([*plain, *needy])


def test_more_that_go_one_by_one_than_a_step_takes_all_go(site: Site) -> None:
    need = site.submit_one()
    site.drain()
    hold = lay(site, Scope.TYPE, "one")
    site.submit(n=110, needs=(need,))
    site.submit(n=50)

    lift(site, hold)
    steps = swept(site)

    assert steps == 3
    assert site.count() == {"completed": 1, "pending": 160}


# --- locks and lines --------------------------------------------------------------------------


def test_a_lock_kept_for_a_job_that_is_held_goes_to_the_next(site: Site) -> None:
    first = site.submit_one("locked", {"serno": "A"})
    lease = site.run(first)
    second = site.submit_one("locked", {"serno": "A"}, collection="c")
    third = site.submit_one("locked", {"serno": "A"})
    site.claim()
    site.pass_(lease)
    assert site.state(second) is State.PENDING  # and the lock is kept for it

    lay(site, Scope.COLLECTION, "c")
    swept(site)

    assert held(site, second)
    assert site.claim_one().job_id == third


def test_those_that_wait_for_a_lock_under_a_hold_let_the_others_go(site: Site) -> None:
    first = site.submit_one("locked", {"serno": "A"})
    lease = site.run(first)
    under = [site.submit_one("locked", {"serno": "A"}, collection="c") for _ in range(130)]
    last = site.submit_one("locked", {"serno": "A"})
    site.claim()
    lay(site, Scope.COLLECTION, "c")
    swept(site)

    site.pass_(lease)
    site.sweep()

    assert site.claim_one().job_id == last
    assert not [job for job in under if site.job(job).fence]


def test_a_held_job_keeps_its_place_in_a_serial_tree(site: Site) -> None:
    site.knows(kind("line", "expand", "merge", serial=True))
    lease = site.run(site.submit_one("line"))
    first, second = site.spawn(lease, n=2)
    site.pass_(lease)
    hold = lay(site, Scope.JOB, first)

    assert held(site, first)
    assert site.claim() == []
    assert site.job(second).waits_for == "serial"
    assert str(first) in explained(site.store, second, site.now).sentence

    lift(site, hold)
    assert [job for job, _ in site.drain()][:2] == [first, second]


def test_a_released_job_of_a_serial_tree_waits_for_an_earlier_one_that_was_opened_again(site: Site) -> None:
    site.knows(kind("line", "expand", "merge", serial=True))
    lease = site.run(site.submit_one("line"))
    first, second = site.spawn_all(lease, submission("tenacious"), submission("one"))
    site.pass_(lease)
    site.pass_(site.run(first))
    hold = lay(site, Scope.TYPE, "one")
    swept(site)
    assert held(site, second)
    site.rerun(first)

    lift(site, hold)
    swept(site)

    assert (site.state(second), site.job(second).waits_for) == (State.WAITING, "serial")
    assert [job for job, _ in site.drain()][:2] == [first, second]


# --- verbs on what is held --------------------------------------------------------------------


def test_what_is_held_can_be_cancelled_and_opened_again_into_the_hold(site: Site) -> None:
    job = site.submit_one()
    lay(site, Scope.TYPE, "one")
    swept(site)

    site.cancel(job)
    assert site.state(job) is State.CANCELLED
    site.retry(job)

    assert held(site, job)


@pytest.mark.parametrize("verb", ["retry", "rerun"])
def test_what_is_opened_again_under_a_hold_is_held(site: Site, verb: str) -> None:
    job = site.submit_one()
    site.drain(failing={job} if verb == "retry" else ())
    lay(site, Scope.TYPE, "one")

    getattr(site, verb)(job)

    assert held(site, job)


def test_what_is_held_can_be_deleted_with_the_holds_on_it(site: Site) -> None:
    parent, children = site.family(n=2)
    tree = lay(site, Scope.TREE, children[0])
    single = lay(site, Scope.JOB, children[0])
    swept(site)

    site.delete(children[0])

    assert site.store.holds.all() == []
    assert {tree.id, single.id} == {1, 2}
    assert site.drain() == [(children[1], "work"), (parent, "merge")]


def test_a_tree_regrows_into_a_hold(site: Site) -> None:
    parent, (child, _) = site.family("batch", n=2)
    site.drain(failing={child})
    lay(site, Scope.TREE, parent)

    site.retry(child)

    assert (held(site, child), site.state(parent)) == (True, State.WAITING)


def test_release_of_a_job_ends_the_hold_on_it_alone(site: Site) -> None:
    job, other = site.submit(n=2)
    lay(site, Scope.JOB, job)

    assert list(site.release(job).ids) == [job]

    assert site.store.holds.all() == []
    assert {j for j, _ in site.drain()} == {job, other}


def test_release_of_a_running_job_ends_the_hold_that_waits_for_it(site: Site) -> None:
    job = site.submit_one("three")
    lease = site.run(job)
    lay(site, Scope.JOB, job)

    site.release(job)

    site.pass_(lease)
    assert site.state(job) is State.PENDING


def test_release_of_a_job_ends_its_own_stages_hold_and_the_one_on_it(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.HOLD)
    lay(site, Scope.JOB, job)

    site.release(job)

    assert site.drain() == [(job, "work")]


def test_release_of_a_job_whose_hold_is_gone_but_not_swept_lets_it_go(site: Site) -> None:
    job, other = site.submit(n=2)
    hold = lay(site, Scope.TYPE, "one")
    swept(site)
    lift(site, hold)

    site.release(job)

    assert site.states([job, other]) == [State.PENDING, State.HELD]


def test_release_of_a_job_under_a_wider_hold_is_refused_with_its_name(site: Site) -> None:
    job = site.submit_one()
    hold = lay(site, Scope.TYPE, "one")
    swept(site)

    with pytest.raises(Refused, match=f"spinney release --hold {hold.id}"):
        site.release(job)

    assert held(site, job)


def test_released_by_its_own_hold_it_may_be_under_a_wider_one(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.HOLD)
    hold = lay(site, Scope.TYPE, "one")
    assert site.job(job).waits_for is None

    site.release(job)

    assert held(site, job)
    lift(site, hold)
    swept(site)
    assert site.drain() == [(job, "work")]


def test_a_job_that_its_own_stage_held_is_let_go_by_no_sweep(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.HOLD, message="look at the digest")
    hold = lay(site, Scope.EVERYTHING)
    swept(site)

    lift(site, hold)
    swept(site)

    assert (site.state(job), site.job(job).message) == (State.HELD, "look at the digest")


def test_a_job_moved_out_of_a_held_queue_goes_on(site: Site) -> None:
    job = site.submit_one(queue="q")
    site.submit_one(queue="r")
    lay(site, Scope.QUEUE, "q")
    swept(site)

    site.store.bulk.apply(Order(verb=Verb.MOVE, queue="r"), [job], ANN, now_us=site.now)

    assert site.state(job) is State.PENDING


def test_a_job_moved_into_a_held_queue_is_held(site: Site) -> None:
    job = site.submit_one()
    site.submit_one(queue="q")
    lay(site, Scope.QUEUE, "q")
    swept(site)

    site.store.bulk.apply(Order(verb=Verb.MOVE, queue="q"), [job], ANN, now_us=site.now)

    assert held(site, job)


# --- queues that are meant by others ----------------------------------------------------------


def test_a_hold_on_a_queue_covers_what_comes_to_it_with_a_later_stage(site: Site) -> None:
    site.knows(kind("two", "fetch", stage("burn", queue="slow")))
    job = site.submit_one("two")
    lay(site, Scope.QUEUE, "slow")
    swept(site)

    site.pass_(site.run(job))

    assert held(site, job)
    assert site.job(job).queue == "slow"


@pytest.mark.parametrize("order", ["default", "fifo", "lifo"])
@pytest.mark.parametrize("by_sets", [True, False], ids=["by sets", "one by one"])
def test_what_is_released_stands_where_it_stood(site: Site, order: str, by_sets: bool) -> None:
    site.knows(queues=[QueueSpec(name="q", order=order)])
    need = site.submit_one("three")
    site.drain()
    needs = () if by_sets else (need,)
    for priority in (60, 50):
        site.submit(n=3, queue="q", priority=priority, share="s", needs=needs)
        site.submit(n=2, queue="q", priority=priority, needs=needs)
    undisturbed = _rows(site)
    hold = lay(site, Scope.QUEUE, "q")
    swept(site, limit=3)
    assert _rows(site) == []

    lift(site, hold)
    swept(site, limit=3)

    assert _rows(site) == undisturbed
    assert len(undisturbed) == 10


def _rows(site: Site) -> list[Any]:
    return rows(site.store, "select * from ready order by lane, priority, share, position")


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "name", "error", "says"),
    [
        (Scope.TYPE, "onne", UnknownType, "did you mean 'one'"),
        (Scope.QUEUE, "defaultt", UsageError, "did you mean 'default'"),
        (Scope.EVERYTHING, "slow", UsageError, "has no name"),
        (Scope.JOB, "99", NoSuchJob, "no job 99"),
        (Scope.TREE, "99", NoSuchJob, "no job 99"),
        (Scope.COLLECTION, "a b", BadName, "cannot name a collection"),
        (Scope.SUBMITTER, "a\nb", BadName, "cannot be a submitter"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    site: Site, scope: Scope, name: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        lay(site, scope, name)

    assert site.store.holds.all() == []


def test_a_tree_whose_number_has_leading_zeros_is_held(site: Site) -> None:
    top, children = site.family(n=3)

    hold = lay(site, Scope.TREE, f"00{top}")

    assert (hold.name, site.claim()) == (str(top), [])
    swept(site)
    assert held(site, *children)


def test_a_single_job_that_has_settled_cannot_be_held(site: Site) -> None:
    job = site.submit_one()
    site.drain()

    with pytest.raises(Refused, match="only an open job"):
        lay(site, Scope.JOB, job)


# --- several at it ----------------------------------------------------------------------------


def test_another_takes_over_a_sweep_that_was_broken_off(
    site: Site, open_another: Callable[[], Store]
) -> None:
    another = Site(open_another(), site.clock)
    under = site.submit(n=90, collection="c")
    others = site.submit(n=10)
    hold = lay(site, Scope.COLLECTION, "c")
    site.store.holds.sweep(now_us=site.now, limit=10)

    swept(another, limit=10)

    assert site.count() == {"held": 90, "pending": 10}
    lift(site, hold)
    site.store.holds.sweep(now_us=site.now, limit=10)
    swept(another, limit=10)
    assert site.count() == {"pending": 100}
    assert len(under) + len(others) == 100


def test_who_yields_leaves_it_to_another_for_two_seconds(
    site: Site, open_another: Callable[[], Store]
) -> None:
    another = open_another()
    site.submit(n=30, collection="c")
    lay(site, Scope.COLLECTION, "c")
    site.store.holds.sweep(now_us=site.now, limit=5)

    assert not another.holds.sweep(now_us=site.now, limit=5, yielding=True)
    assert site.store.holds.sweep(now_us=site.now, limit=5, yielding=True), "it is its own sweep"
    site.clock.forward(2.1)
    assert another.holds.sweep(now_us=site.now, limit=5, yielding=True)

    assert site.count()["held"] == 15


def test_a_hold_lifted_in_the_midst_of_a_pass_gets_a_pass_of_its_own(site: Site) -> None:
    early = site.submit(n=30, collection="a")
    late = site.submit(n=30, collection="b")
    first, second = lay(site, Scope.COLLECTION, "b"), lay(site, Scope.COLLECTION, "a")
    swept(site)
    lift(site, first)
    for _ in range(4):
        site.store.holds.sweep(now_us=site.now, limit=10)  # has gone past what the second holds

    lift(site, second)
    swept(site, limit=10)

    assert set(site.states([*early, *late])) == {State.PENDING}


def test_leases_that_a_hold_covers_are_told_to_their_node(site: Site) -> None:
    jobs = site.submit(n=4)
    node, other = site.node("a", slots=2), site.node("b", slots=2)
    leases = {lease.job_id: lease.fence for lease in site.claim(node) + site.claim(other)}
    assert site.store.holds.leased_under(node.id, 0) == (0, [])
    first = lay(site, Scope.JOB, jobs[0])

    assert site.store.holds.leased_under(node.id, 0) == (first.id, [leases[jobs[0]]])
    assert site.store.holds.leased_under(node.id, first.id) == (first.id, [])
    assert site.store.holds.leased_under(other.id, 0) == (first.id, [])

    wide = lay(site, Scope.TYPE, "one")
    assert site.store.holds.leased_under(node.id, first.id) == (wide.id, [leases[j] for j in jobs[:2]])


def test_the_answer_to_an_exchange_tells_that_a_hold_was_laid(site: Site) -> None:
    site.submit_one()
    before = site.flush_and_claim([], site.want(site.here)).last_hold

    hold = lay(site, Scope.TYPE, "three")

    assert (before, site.flush_and_claim([], site.want(site.here)).last_hold) == (0, hold.id)


def test_nothing_to_sweep_writes_nothing(site: Site, open_another: Callable[[], Store]) -> None:
    watcher = open_another()
    before = watcher.signature()

    assert not site.store.holds.sweep(now_us=site.now)

    assert watcher.signature() == before


def submission_of(of: str, n: int, **fields: Any) -> Submission:
    return submission(of, n=n, **fields)


@pytest.mark.parametrize("scope", [Scope.QUEUE, Scope.EVERYTHING])
def test_a_release_without_its_sweep_may_be_asked_for_again(site: Site, scope: Scope) -> None:
    job, name = site.submit_one(), "default" if scope is Scope.QUEUE else ""
    holds = site.store.holds
    hold = lay(site, scope, name)
    swept(site)
    lift(site, hold)

    again = holds.lift(hold.id, ANN, now_us=site.now)

    assert (again.id, again.scope, again.name) == (hold.id, scope, name)
    assert list(holds.lifted()) == [again]
    assert len(site.store.audit.entries()) == 2, "it was released once"
    swept(site)
    assert site.state(job) is State.PENDING
    assert list(holds.lifted()) == []
    with pytest.raises(NoSuch):
        lift(site, hold)


@pytest.mark.parametrize("how", ["by time", "with its job"])
def test_a_hold_that_ends_by_itself_brings_no_earlier_release_back(site: Site, how: str) -> None:
    earlier = lay(site, Scope.QUEUE, "default")
    swept(site)
    lift(site, earlier)
    swept(site)
    if how == "by time":
        for name in ("alpha", "beta"):
            lay(site, Scope.COLLECTION, name, until_us=site.now + SECOND_US)
        swept(site)
        site.clock.forward(2)
        site.store.holds.sweep(now_us=site.now)
    else:
        job = site.submit_one()
        lay(site, Scope.TREE, str(job))
        swept(site)
        site.store.bulk.apply(Order(verb=Verb.DELETE), [job], ANN, now_us=site.now)

    assert site.store.holds.all() == []
    assert site.store.holds.lifted() == []
    with pytest.raises(NoSuch):
        lift(site, earlier)


def test_a_release_that_waits_for_its_sweep_is_found_behind_holds_that_ended_by_time(site: Site) -> None:
    mine = lay(site, Scope.QUEUE, "default")
    for name in ("alpha", "beta"):
        lay(site, Scope.COLLECTION, name, until_us=site.now + SECOND_US)
    swept(site)
    lift(site, mine)
    site.clock.forward(2)
    site.store.holds.sweep(now_us=site.now)

    assert [hold.id for hold in site.store.holds.lifted()] == [mine.id]
