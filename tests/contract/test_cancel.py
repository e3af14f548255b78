"""Cancel is a wish on the job: no later stage starts, what runs ends soon, recovery honours it."""

import contextlib

import pytest

from long_tests import LONG
from spinney.model.errors import NoSuchJob, Refused, UnlawfulTransition
from spinney.model.jobs import Filter, Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.states import State

from .words import Site, kind, locked, stage

WIDE = 1_500 if LONG else 450
"""More than two transactions cancel."""


def _parked(site: Site, how: str) -> int:
    """A job that stands somewhere without running."""
    match how:
        case "pending":
            return site.submit_one()
        case "scheduled":
            return site.submit_one(at_us=site.now + 10**9)
        case "held":
            job = site.submit_one()
            site.record(site.run(job), Outcome.HOLD)
            return job
        case "needs":
            return site.submit_one(needs=(site.submit_one("three", at_us=site.now + 10**9),))
        case "lock":
            site.run(site.submit_one("locked", {"serno": 1}))
            job = site.submit_one("locked", {"serno": 1})
            assert site.claim() == []
            return job
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["pending", "scheduled", "held", "needs", "lock"])
def test_a_job_that_does_not_run_is_cancelled_at_once(site: Site, how: str) -> None:
    job = _parked(site, how)

    touched = site.cancel(job)

    assert list(touched.ids) == [job]
    assert (site.state(job), site.job(job).settled_us) == (State.CANCELLED, site.now)
    site.later(3600)
    assert job not in site.claim_by_job()


def test_the_reason_is_shown(site: Site) -> None:
    job = site.submit_one()

    site.cancel(job)

    assert "wrong batch" in (site.job(job).message or "")


def test_a_running_job_gets_a_wish_and_is_shown_as_cancelling(site: Site) -> None:
    node = site.node("n")
    lease = site.run(site.submit_one(), node)

    touched = site.cancel(lease.job_id)

    assert list(touched.ids) == [lease.job_id]
    job = site.job(lease.job_id)
    assert (job.state, job.cancelling) == (State.RUNNING, True)
    assert list(site.store.cancel_requests(node.id)) == [(lease.job_id, lease.fence)]


def test_a_node_is_told_only_wishes_on_its_own_leases(site: Site) -> None:
    ours, theirs = site.node("ours"), site.node("theirs")
    lease = site.run(site.submit_one(), ours)
    site.run(site.submit_one(), ours)
    site.cancel(lease.job_id)

    assert list(site.store.cancel_requests(theirs.id)) == []
    site.record(lease, Outcome.CANCELLED)
    assert list(site.store.cancel_requests(ours.id)) == []


def test_an_attempt_ended_by_the_wish_cancels_the_job(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.cancel(lease.job_id)

    site.record(lease, Outcome.CANCELLED)

    job = site.job(lease.job_id)
    assert (job.state, job.cancelling) == (State.CANCELLED, False)
    assert site.claim() == []


def test_no_later_stage_starts(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.cancel(lease.job_id)

    site.pass_(lease)

    assert site.state(lease.job_id) is State.CANCELLED
    assert site.claim() == []


def test_a_last_stage_that_had_succeeded_before_the_wish_was_seen_counts(site: Site) -> None:
    lease = site.run(site.submit_one())
    site.cancel(lease.job_id)

    site.pass_(lease, result="done")

    assert site.state(lease.job_id) is State.COMPLETED
    assert site.store.results(lease.job_id) == {"work": "done"}


@pytest.mark.parametrize(
    "outcome",
    [Outcome.ERROR, Outcome.TIMEOUT, Outcome.DIED, Outcome.DEFER, Outcome.RETURNED, Outcome.LOCKED],
)
def test_what_would_have_come_again_does_not(site: Site, outcome: Outcome) -> None:
    lease = site.run(site.submit_one("tenacious"))
    site.cancel(lease.job_id)

    site.record(lease, outcome, lock="door" if outcome is Outcome.LOCKED else None)
    site.sweep()

    assert site.state(lease.job_id) is State.CANCELLED


def test_recovery_honours_the_wish(site: Site) -> None:
    node = site.node("n")
    started = site.run(site.submit_one(), node)
    site.submit_one()
    claimed = site.claim_one(node)
    site.cancel(started.job_id)
    site.cancel(claimed.job_id)

    site.recover(node)
    site.sweep()

    assert site.states([started.job_id, claimed.job_id]) == [State.CANCELLED] * 2
    assert site.claim() == []


def test_a_second_wish_is_no_mistake(site: Site) -> None:
    lease = site.run(site.submit_one())
    site.cancel(lease.job_id)

    site.cancel(lease.job_id)

    assert site.job(lease.job_id).cancelling
    site.record(lease, Outcome.CANCELLED)
    assert site.state(lease.job_id) is State.CANCELLED


@pytest.mark.parametrize("end", ["completed", "failed"])
def test_a_settled_job_stays_as_it_is(site: Site, end: str) -> None:
    lease = site.run(site.submit_one())
    (site.pass_ if end == "completed" else site.fail)(lease)

    with contextlib.suppress(Refused, UnlawfulTransition):
        assert list(site.cancel(lease.job_id).ids) == []

    assert site.state(lease.job_id) == end


def test_to_cancel_what_never_was_is_refused(site: Site) -> None:
    with pytest.raises(NoSuchJob):
        site.cancel(4711)


def test_a_cancelled_child_lets_its_parent_settle(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.cancel(born[0])
    site.pass_(site.run(born[1]))

    assert site.drain() == [(batch, "report")]


# --- trees ----------------------------------------------------------------------------------


def test_a_job_with_open_children_is_not_cancelled_without_its_tree(site: Site) -> None:
    parent, born = site.family(n=2)

    with pytest.raises(Refused):
        site.cancel(parent)

    assert site.states([parent, *born]) == [State.WAITING, State.PENDING, State.PENDING]


def test_a_tree_is_cancelled_from_the_top(site: Site) -> None:
    parent, born = site.family(n=3)
    grand_lease = site.run(born[0])
    grand = site.spawn(grand_lease, n=2)
    site.pass_(grand_lease)

    site.cancel(parent, tree=True)
    site.sweep()

    assert site.states([parent, *born, *grand]) == [State.CANCELLED] * 6
    assert site.claim() == []


def test_nothing_below_is_claimed_any_more_once_the_wish_stands(site: Site) -> None:
    parent, _ = site.family(n=300)

    site.cancel(parent, tree=True)

    assert site.claim() == []


def test_what_runs_in_a_cancelled_tree_gets_a_wish_and_the_tree_settles_with_it(site: Site) -> None:
    node = site.node("n")
    parent, born = site.family(n=2)
    lease = site.run(born[0], node)

    site.cancel(parent, tree=True)
    site.sweep()

    assert list(site.store.cancel_requests(node.id)) == [(lease.job_id, lease.fence)]
    site.record(lease, Outcome.CANCELLED)
    site.sweep()
    assert site.states([parent, *born]) == [State.CANCELLED] * 3


def test_what_had_settled_in_a_cancelled_tree_stays_as_it_is(site: Site) -> None:
    parent, born = site.family(n=3)
    leases = site.claim_by_job(slots=2)
    site.pass_(leases[born[0]])
    site.fail(leases[born[1]])

    site.cancel(parent, tree=True)
    site.sweep()

    assert site.states([parent, *born]) == [
        State.CANCELLED,
        State.COMPLETED,
        State.FAILED,
        State.CANCELLED,
    ]


def test_a_branch_may_be_cancelled_and_the_tree_above_goes_on(site: Site) -> None:
    root, (branch, other) = site.family("batch", child="parent", n=2)
    leases = site.claim_by_job()
    leaves = site.spawn(leases[branch], n=2)
    site.pass_(leases[branch], leases[other])

    site.cancel(branch, tree=True)
    site.sweep()

    assert site.states([branch, *leaves]) == [State.CANCELLED] * 3
    site.drain()
    assert site.states([root, other]) == [State.COMPLETED] * 2


@pytest.mark.parametrize("keys", [None, ("k",)], ids=["spawn", "keyed spawn"])
def test_the_wish_refuses_every_later_spawn_of_the_job_and_below(
    site: Site, keys: tuple[str, ...] | None
) -> None:
    root, (branch,) = site.family(child="parent", n=1)
    lease = site.run(branch)
    site.cancel(root, tree=True)

    with pytest.raises(Refused):
        site.spawn(lease, keys=keys)

    site.record(lease, Outcome.CANCELLED)
    site.sweep()
    assert site.ids() == [root, branch]


def test_children_spawned_before_the_wish_leave_nothing_open(site: Site) -> None:
    root, (branch,) = site.family(child="parent", n=1)
    lease = site.run(branch)
    site.spawn(lease, n=3)
    site.cancel(root, tree=True)

    site.pass_(lease)
    site.sweep()

    assert set(site.count()) == {"cancelled"}
    assert site.claim() == []


def test_a_stage_whose_children_were_not_born_for_a_wish_runs_again_when_its_job_is_retried(
    site: Site,
) -> None:
    """Else the job would go on without them, and nobody would know what was lost."""
    parent = site.submit_one("parent")
    lease = site.run(parent)
    site.spawn(lease, n=2)
    site.cancel(parent)
    site.pass_(lease)
    assert site.state(parent) is State.CANCELLED

    site.retry(parent)
    lease = site.run(parent)
    born = site.spawn(lease, n=2)
    site.pass_(lease)

    assert lease.stage == "expand"
    assert site.children(parent) == born
    assert site.drain() == [(born[0], "work"), (born[1], "work"), (parent, "merge")]


def test_children_born_under_a_wish_are_not_claimed_even_in_the_same_exchange(site: Site) -> None:
    root, (branch,) = site.family(child="parent", n=1)
    lease = site.run(branch)
    site.spawn(lease, n=3)
    site.cancel(root, tree=True)

    answer = site.flush_and_claim([site.entry(lease)], site.want(site.here))

    assert answer.leases == []
    site.sweep()
    assert set(site.count()) == {"cancelled"}


def test_a_wide_tree_is_cancelled_to_its_last_leaf(site: Site) -> None:
    parent, born = site.family(n=WIDE)

    site.cancel(parent, tree=True)
    site.sweep()

    assert site.count() == {"cancelled": 1 + WIDE}
    assert site.state(born[-1]) is State.CANCELLED


def test_who_needs_a_job_of_a_cancelled_tree_fails_because_of_it(site: Site) -> None:
    parent, born = site.family(n=2)
    needer = site.submit_one(needs=(born[1],))

    site.cancel(parent, tree=True)
    site.sweep()

    assert site.state(needer) is State.FAILED


# --- open subjobs of an attempt that did not pass -----------------------------------------------


def _with_a_running_subjob(site: Site, how: str) -> tuple[int, Lease]:
    """A job that stands somewhere without running, whose failed attempt has spawned a subjob that runs."""
    site.knows(kind("keyed", stage("expand", max_attempts=3), "end"))
    need = site.submit_one()
    site.pass_(site.run(need))
    job = site.submit_one("keyed", needs=(need,))
    lease = site.run(job)
    site.spawn(lease, keys=("k",))
    match how:
        case "held":
            site.record(lease, Outcome.HOLD)
        case "lock":
            taken = site.run(site.submit_one())
            assert site.store.take_lock(taken.job_id, taken.fence, "l", "job", now_us=site.now)
            site.record(lease, Outcome.LOCKED, lock="l")
        case _:
            site.record(lease, Outcome.ERROR, retryable=True)
    (child,) = (lease for lease in site.claim() if lease.type == "one")
    site.start(child)
    if how == "needs":
        site.rerun(need)
    if how in ("needs", "pending"):
        site.later(5)
    return job, child


WHEREVER = pytest.mark.parametrize(
    ("how", "before"),
    [
        ("pending", State.PENDING),
        ("scheduled", State.SCHEDULED),
        ("held", State.HELD),
        ("lock", State.WAITING),
        ("needs", State.WAITING),
    ],
)


@WHEREVER
def test_a_tree_whose_top_does_not_run_is_cancelled_with_its_last_subjob(
    site: Site, how: str, before: State
) -> None:
    job, child = _with_a_running_subjob(site, how)
    assert site.state(job) is before

    site.cancel(job, tree=True)
    site.later(5)

    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "children")
    assert job not in site.claim_by_job()
    site.record(child, Outcome.CANCELLED)
    assert site.states([job, child.job_id]) == [State.CANCELLED] * 2


@WHEREVER
def test_a_job_cancelled_by_a_filter_is_cancelled_when_its_subjobs_have_settled(
    site: Site, how: str, before: State
) -> None:
    job, child = _with_a_running_subjob(site, how)
    order = Order(verb=Verb.CANCEL, reason="stop")

    site.store.bulk.apply(
        order, [job], Actor(by="ann", call="c"), job_filter=Filter(type="keyed"), now_us=site.now
    )
    site.pass_(child)

    assert site.states([job, child.job_id]) == [State.CANCELLED, State.COMPLETED]


def test_a_job_with_open_subjobs_that_is_cancelled_lets_go_of_the_lock_reserved_for_it(site: Site) -> None:
    site.knows(
        kind("keyed", stage("expand", max_attempts=3, locks=locked("l"))),
        kind("x", stage("w", locks=locked("l"))),
    )
    job = site.submit_one("keyed")
    lease = site.run(job)
    site.spawn(lease, keys=("k",))
    site.record(lease, Outcome.ERROR, retryable=True)
    other, third = site.submit("x", n=2)
    taken = site.claim_by_job()[other]
    site.later(5)
    site.claim()
    site.pass_(taken)
    assert (site.state(job), site.state(third)) == (State.PENDING, State.WAITING)

    site.cancel(job, tree=True)

    assert site.claim_one().job_id == third
