"""Needs: a DAG among jobs. What a job needs must complete first; a failing need fails it."""

import contextlib

import pytest

from long_tests import LONG
from spinney.model.errors import Cycle, NoSuchJob, Refused, UsageError
from spinney.model.jobs import Submission
from spinney.model.outcomes import Outcome
from spinney.model.states import SETTLED, State

from .words import Site, kind, submission

MANY = 1_000 if LONG else 450
"""More than follow in two steps of 200."""


def test_a_job_waits_for_what_it_needs(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))

    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "needs")
    assert site.job(job).message == "waits for jobs that it needs"
    assert [lease.job_id for lease in site.claim()] == [need]


def test_a_job_goes_on_in_the_transaction_that_completes_its_last_need(site: Site) -> None:
    needs = site.submit(n=2)
    job = site.submit_one(needs=tuple(needs))
    leases = site.claim_by_job()

    site.pass_(leases[needs[0]])
    assert site.state(job) is State.WAITING
    answer = site.flush_and_claim([site.entry(leases[needs[1]])], site.want(site.here))

    assert [lease.job_id for lease in answer.leases] == [job]


def test_a_need_of_several_stages_counts_when_it_has_completed(site: Site) -> None:
    need = site.submit_one("three")
    job = site.submit_one(needs=(need,))

    ran = site.drain()

    assert ran == [(need, "first"), (need, "second"), (need, "third"), (job, "work")]


def test_a_need_that_has_completed_before_holds_nobody_up(site: Site) -> None:
    need = site.submit_one()
    site.drain()

    assert site.state(site.submit_one(needs=(need,))) is State.PENDING


def test_a_need_that_has_failed_before_fails_the_job_at_its_birth(site: Site) -> None:
    need = site.submit_one()
    site.fail(site.run(need))

    job = site.job(site.submit_one(needs=(need,)))

    assert job.state is State.FAILED
    assert job.message
    assert (job.failed_because, site.job(need).failed_because) == ("needs", None)


def test_a_negative_number_means_a_job_of_the_same_call(site: Site) -> None:
    a, b, c, d = site.submit_all(submission(n=2), submission(needs=(-1,)), submission(needs=(-2, -3)))

    assert site.states([a, b, c, d]) == [State.PENDING, State.PENDING, State.WAITING, State.WAITING]
    site.pass_(site.run(a))
    assert site.states([c, d]) == [State.PENDING, State.WAITING]
    assert [job for job, _ in site.drain()] in ([b, c, d], [c, b, d])


def test_a_need_may_stand_behind_the_job_that_needs_it(site: Site) -> None:
    job, need = site.submit_all(submission(needs=(-2,)), submission())

    assert [ran for ran, _ in site.drain()] == [need, job]


@pytest.mark.parametrize("end", ["fail", "cancel"])
def test_a_need_that_fails_or_is_cancelled_fails_the_job_because_of_it(site: Site, end: str) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need, site.submit_one()))

    if end == "fail":
        site.fail(site.claim_by_job()[need])
    else:
        site.cancel(need)
    site.drain()

    failed = site.job(job)
    assert failed.state is State.FAILED
    assert failed.message
    assert site.stages_run(job) == []


def test_failing_because_of_a_need_runs_down_a_chain_and_up_the_tree(site: Site) -> None:
    need = site.submit_one(priority=0)
    lease = site.claim_by_job()[need]
    parent = site.submit_one("parent")
    expanding = site.run(parent)
    (child,) = site.spawn(expanding, needs=(need,))
    site.pass_(expanding)
    last = site.submit_one(needs=(parent,))

    site.fail(lease)

    assert site.states([need, child, parent, last]) == [State.FAILED] * 4


def test_a_job_regrows_with_its_need(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    last = site.submit_one(needs=(job,))
    site.fail(site.run(need))
    assert site.states([job, last]) == [State.FAILED] * 2

    touched = site.retry(need)

    assert set(touched.reopened) == {job, last}
    assert site.states([need, job, last]) == [State.PENDING, State.WAITING, State.WAITING]
    assert [ran for ran, _ in site.drain()] == [need, job, last]


def test_a_need_that_fails_once_more_fails_the_job_once_more(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.fail(site.run(need))
    site.retry(need)

    site.fail(site.run(need))

    assert site.states([need, job]) == [State.FAILED] * 2


def test_the_parent_of_a_job_that_regrows_with_its_need_regrows_too(site: Site) -> None:
    need = site.submit_one("tenacious", priority=0)
    lease = site.run(need)
    expanding = site.run(site.submit_one("parent"))
    (child,) = site.spawn(expanding, needs=(need,))
    site.pass_(expanding)
    site.fail(lease)
    assert site.state(expanding.job_id) is State.FAILED

    site.retry(need)

    assert site.states([child, expanding.job_id]) == [State.WAITING, State.WAITING]
    site.drain()
    assert site.state(expanding.job_id) is State.COMPLETED


def test_to_retry_a_job_whose_need_has_failed_leaves_nobody_waiting_for_nothing(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.fail(site.run(need))

    with contextlib.suppress(Refused):
        site.retry(job)

    assert site.state(job) is State.FAILED or site.state(need) not in SETTLED


def test_a_cancelled_job_does_not_come_back_with_its_need(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.cancel(job)
    site.fail(site.run(need))

    site.retry(need)

    assert site.state(job) is State.CANCELLED


def test_a_job_for_later_that_needs_another_waits_for_both(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,), at_us=site.now + 60_000_000)
    other = site.submit_one(needs=(need,), at_us=site.now + 10_000_000)

    site.later(30)
    assert site.state(other) is State.WAITING
    site.pass_(site.run(need))
    site.sweep()

    assert [lease.job_id for lease in site.claim()] == [other]
    assert site.state(job) is State.SCHEDULED
    site.later(30)
    assert site.claim_one().job_id == job


@pytest.mark.parametrize("how", ["handed back", "its node died"])
def test_a_job_that_comes_back_unrun_waits_for_a_need_that_was_opened_again_meanwhile(
    site: Site, how: str
) -> None:
    need = site.submit_one()
    site.pass_(site.run(need))
    oak = site.node("oak")
    job = site.submit_one(needs=(need,))
    lease = site.claim_one(oak)
    site.rerun(need)

    if how == "handed back":
        site.flush_and_claim([site.entry(lease, Outcome.RETURNED, started_us=0)])
    else:
        site.recover(oak)

    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "needs")
    assert site.drain() == [(need, "work"), (job, "work")]


def test_a_job_that_could_run_waits_for_a_need_that_is_opened_again(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.pass_(site.run(need))

    site.rerun(need)

    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "needs")
    assert site.drain() == [(need, "work"), (job, "work")]


def test_a_job_whose_last_stage_was_dropped_meanwhile_completes_with_its_need(site: Site) -> None:
    # Given a job of which the first stage passed while its need was opened again, and failed
    site.knows(kind("t", "first", "second"))
    need = site.submit_one()
    site.pass_(site.run(need))
    job = site.submit_one("t", needs=(need,))
    first = site.run(job)
    site.rerun(need)
    site.pass_(first)
    site.fail(site.run(need))
    assert site.state(job) is State.FAILED
    # When the next version has no second stage, and the need is retried
    site.knows(kind("t", "first"))
    site.retry(need)
    assert site.state(job) is State.WAITING
    site.pass_(site.run(need))
    # Then nothing is left to run
    assert (site.state(need), site.state(job)) == (State.COMPLETED, State.COMPLETED)


def test_a_job_keeps_no_slot_for_its_next_stage_while_a_need_is_open_again(site: Site) -> None:
    need = site.submit_one()
    site.pass_(site.run(need))
    job = site.submit_one("three", needs=(need,))
    lease = site.run(job)
    site.rerun(need)

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here, 0))

    assert answer.leases == []
    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "needs")
    assert site.drain() == [(need, "work"), (job, "second"), (job, "third")]


# --- among children -------------------------------------------------------------------------


def test_children_of_one_spawn_may_need_each_other(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    born = site.spawn_all(lease, submission(), submission(needs=(-1,)), submission(needs=(-2,)))
    site.pass_(lease)

    assert [job for job, _ in site.drain()] == [*born, parent]


def test_a_child_may_need_one_spawned_before_it_by_the_same_attempt(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    (first,) = site.spawn(lease)
    (second,) = site.spawn(lease, needs=(first,))
    site.pass_(lease)

    assert site.states([first, second]) == [State.PENDING, State.WAITING]
    assert [job for job, _ in site.drain()] == [first, second, parent]


def test_a_child_may_need_a_keyed_one(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (first,) = site.spawn(lease, keys=("k",))
    (second,) = site.spawn(lease, needs=(first,))
    site.pass_(lease)

    assert [job for job, _ in site.drain()] == [first, second, lease.job_id]


# --- mistakes -------------------------------------------------------------------------------


def test_a_need_that_does_not_exist_is_refused(site: Site) -> None:
    with pytest.raises(NoSuchJob):
        site.submit_one(needs=(4711,))

    assert site.ids() == []


@pytest.mark.parametrize(
    "circle",
    [
        [submission(needs=(-1,))],
        [submission(needs=(-2,)), submission(needs=(-1,))],
        [submission(needs=(-3,)), submission(needs=(-1,)), submission(needs=(-2,)), submission()],
    ],
    ids=["itself", "each other", "three"],
)
def test_jobs_that_would_wait_in_a_circle_are_refused_and_none_is_stored(
    site: Site, circle: list[Submission]
) -> None:
    with pytest.raises(Cycle):
        site.submit_all(*circle)

    assert site.ids() == []


def test_a_circle_is_told_in_the_direction_of_its_needs(site: Site) -> None:
    with pytest.raises(Cycle, match="job 1 needs job 3, job 3 needs job 2, job 2 needs job 1"):
        site.submit_all(submission(needs=(-3,)), submission(needs=(-1,)), submission(needs=(-2,)))


def test_a_need_that_points_behind_the_call_is_told_with_the_job_that_has_it(site: Site) -> None:
    with pytest.raises(UsageError, match="job 2 of this call has the need -5"):
        site.submit_all(submission(), submission(needs=(-5,)))

    assert site.ids() == []


def test_a_child_that_needs_its_own_parent_is_a_circle(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    with pytest.raises(Cycle):
        site.spawn(lease, needs=(lease.job_id,))

    site.pass_(lease)
    assert site.children(lease.job_id) == []


def test_a_grandchild_that_needs_its_root_is_a_circle(site: Site) -> None:
    root, (middle,) = site.family(child="parent", n=1)
    lease = site.run(middle)

    with pytest.raises(Cycle):
        site.spawn(lease, needs=(root,))


def test_a_circle_through_a_parent_that_waits_for_its_child_is_found(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    outsider = site.submit_one(needs=(parent,))

    with pytest.raises(Cycle):
        site.spawn(lease, needs=(outsider,))

    site.pass_(lease)
    site.drain()
    assert site.states([parent, outsider]) == [State.COMPLETED] * 2


def test_a_circle_through_two_trees_is_found(site: Site) -> None:
    ours, theirs = site.submit("parent", n=2)
    leases = site.claim_by_job()
    (born,) = site.spawn(leases[ours], needs=(theirs,))
    site.pass_(leases[ours])
    assert site.state(born) is State.WAITING

    with pytest.raises(Cycle):
        site.spawn(leases[theirs], needs=(ours,))


def test_a_need_of_a_sibling_or_of_another_tree_is_no_circle(site: Site) -> None:
    parent, (sibling,) = site.family(n=1)
    outsider = site.submit_one()
    leases = site.claim_by_job()
    late = site.submit_one(needs=(parent, sibling, outsider))

    site.pass_(leases[sibling], leases[outsider])
    site.drain()

    assert site.state(late) is State.COMPLETED


def test_a_wide_fan_in_goes_on_when_the_last_has_completed(site: Site) -> None:
    needs = site.submit(n=200)
    job = site.submit_one(needs=tuple(needs))
    node = site.node("big", slots=200)
    leases = site.claim(node)

    site.pass_(*leases[:-1])
    assert site.state(job) is State.WAITING
    site.pass_(leases[-1])

    assert site.state(job) is State.PENDING


def test_a_deferred_or_held_need_is_waited_for(site: Site) -> None:
    site.knows(kind("t", "work"))
    one, other = site.submit("t", n=2)
    job = site.submit_one(needs=(one, other))
    leases = site.claim_by_job()

    site.record(leases[one], Outcome.DEFER, delay_s=1.0)
    site.record(leases[other], Outcome.HOLD)
    site.later(2)

    assert site.state(job) is State.WAITING


def test_a_job_that_many_need_settles_at_once_and_they_follow_in_steps(site: Site) -> None:
    need = site.submit_one()
    needers = site.submit(n=MANY, needs=(need,))
    lease = site.run(need)

    answer = site.pass_(lease)
    at_once = site.count().get("pending", 0)
    while answer.wake_us == site.now:
        answer = site.flush_and_claim([])

    assert 0 < at_once < MANY
    assert site.count(states=(State.PENDING,)) == {"pending": MANY}
    assert {j for j, _ in site.drain()} == set(needers)


def test_many_whose_need_failed_fail_in_steps_and_regrow_with_it(site: Site) -> None:
    need = site.submit_one()
    n = MANY if LONG else 220
    needers = site.submit(n=n, needs=(need,))
    site.fail(site.run(need))
    site.sweep()
    failed = site.count()

    site.retry(need)
    site.drain()

    assert failed == {"failed": 1 + n}
    assert set(site.states(needers)) == {State.COMPLETED}
