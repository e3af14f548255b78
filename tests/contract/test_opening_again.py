"""What operators open again: retry what failed, rerun what settled."""

import contextlib
from collections.abc import Callable

import pytest

from spinney.model.errors import NoSuchJob, Refused, SpinneyError, UnlawfulTransition
from spinney.model.outcomes import Outcome
from spinney.model.states import SETTLED, State

from .words import Site, kind


def _failed_in_third(site: Site) -> int:
    job = site.submit_one("three")
    site.pass_(site.run(job), result=1)
    site.pass_(site.run(job), result=2)
    site.fail(site.run(job))
    return job


# --- retry ----------------------------------------------------------------------------------


def test_a_failed_job_goes_on_from_the_stage_after_the_last_that_passed(site: Site) -> None:
    job = _failed_in_third(site)

    touched = site.retry(job)

    assert (list(touched.ids), list(touched.reopened)) == ([job], [])
    again = site.job(job)
    assert (again.state, again.stage, again.settled_us) == (State.PENDING, "third", None)
    assert site.drain() == [(job, "third")]
    assert site.state(job) is State.COMPLETED


def test_a_parent_that_waits_again_counts_its_time_from_then(site: Site) -> None:
    top, (branch,) = site.family(n=1, child="parent")
    lease = site.run(branch)
    first, last = site.spawn(lease, n=2)
    site.pass_(lease)
    dependant = site.submit_one(needs=(top,))
    site.drain(failing=[first, last])
    site.clock.forward(3_600)

    site.retry(first)
    opened_us = site.now
    site.clock.forward(60)
    site.retry(last)

    started = [site.job(job).started_us for job in (top, branch, first, dependant)]
    assert started == [opened_us, opened_us, None, None]
    site.drain()
    assert [site.job(job).started_us for job in (top, branch)] == [opened_us, opened_us]


def test_a_job_that_is_retried_counts_its_time_from_its_next_attempt(site: Site) -> None:
    job = site.submit_one("one")
    site.drain(failing=[job])
    site.clock.forward(3_600)

    site.retry(job)

    assert site.job(job).started_us is None
    site.clock.forward(60)
    site.pass_(site.claim_by_job()[job])
    assert site.job(job).started_us == site.now


def test_an_orphaned_job_can_be_retried(site: Site) -> None:
    site.knows(kind("fragile", "work", on_lost="orphan"))
    node = site.node("n")
    lease = site.run(site.submit_one("fragile"), node)
    site.recover(node)
    assert site.job(lease.job_id).message == "its type forbids a silent second run: its node died under it"

    site.retry(lease.job_id)

    assert site.drain() == [(lease.job_id, "work")]


def test_a_cancelled_job_can_be_retried_and_carries_no_wish_any_more(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.cancel(lease.job_id)
    site.record(lease, Outcome.CANCELLED)

    site.retry(lease.job_id)

    assert not site.job(lease.job_id).cancelling
    assert [name for _, name in site.drain()] == ["first", "second", "third"]


def test_a_cancelled_tree_can_be_opened_again_from_the_top(site: Site) -> None:
    parent, born = site.family(n=2)
    site.cancel(parent, tree=True)
    site.sweep()

    site.retry(parent)
    for job in born:
        with contextlib.suppress(SpinneyError):
            site.retry(job)

    assert site.drain() == [(born[0], "work"), (born[1], "work"), (parent, "merge")]
    assert site.states([parent, *born]) == [State.COMPLETED] * 3


def test_a_strict_parent_never_goes_on_past_cancelled_children(site: Site) -> None:
    parent, born = site.family(n=2)
    site.cancel(parent, tree=True)
    site.sweep()

    site.retry(parent)

    ran = [job for job, _ in site.drain()]
    assert parent not in ran or set(born) <= set(ran[: ran.index(parent)])
    assert site.state(parent) in SETTLED


def test_a_retried_job_has_all_its_attempts_again(site: Site) -> None:
    job = site.submit_one("tenacious")
    for rest in (1, 2, 0):
        site.record(site.run(job), Outcome.ERROR)
        site.later(rest)
    assert site.state(job) is State.FAILED

    site.retry(job)
    site.record(site.run(job), Outcome.ERROR)

    assert site.state(job) is State.SCHEDULED


def test_a_job_for_later_that_is_retried_before_its_time_does_not_wait_for_it_any_more(site: Site) -> None:
    job = site.submit_one("three", at_us=site.now + 10**9)
    site.cancel(job)

    site.retry(job)

    assert [name for _, name in site.drain()] == ["first", "second", "third"]


def test_a_strict_parent_that_is_released_does_not_go_on_past_a_child_that_failed_meanwhile(
    site: Site,
) -> None:
    parent, born = site.family(n=1)
    site.pass_(site.run(born[0]))
    site.record(site.run(parent), Outcome.HOLD)
    site.rerun(born[0])
    site.fail(site.run(born[0]))

    site.release(parent)

    assert site.drain() == []
    assert site.state(parent) is State.FAILED


def test_a_poisonous_job_may_be_tried_again_by_an_operator(site: Site) -> None:
    site.knows(kind("poison", "work", poison_after=1))
    job = site.submit_one("poison")
    site.record(site.run(job), Outcome.DIED)
    assert site.state(job) is State.FAILED

    site.retry(job)

    assert site.drain() == [(job, "work")]
    assert site.state(job) is State.COMPLETED


def test_a_retry_may_go_back_to_an_earlier_stage(site: Site) -> None:
    job = _failed_in_third(site)

    site.retry(job, stage="second")

    assert site.job(job).stage == "second"
    assert site.store.results(job) == {"first": 1}
    assert site.drain() == [(job, "second"), (job, "third")]


def test_a_retry_to_the_stage_that_failed_is_the_plain_one(site: Site) -> None:
    job = _failed_in_third(site)

    site.retry(job, stage="third")

    assert site.store.results(job) == {"first": 1, "second": 2}
    assert site.drain() == [(job, "third")]


def test_a_stage_that_the_type_has_not_is_refused(site: Site) -> None:
    job = _failed_in_third(site)

    with pytest.raises(SpinneyError):
        site.retry(job, stage="fourth")

    assert site.state(job) is State.FAILED


def test_a_retry_passes_over_no_stage(site: Site) -> None:
    job = site.submit_one("three")
    site.fail(site.run(job))

    with pytest.raises(SpinneyError):
        site.retry(job, stage="third")

    assert site.state(job) is State.FAILED


@pytest.mark.parametrize("where", ["pending", "running", "completed", "scheduled"])
def test_only_what_failed_was_orphaned_or_cancelled_can_be_retried(site: Site, where: str) -> None:
    job = site.submit_one(at_us=site.now + 10**9 if where == "scheduled" else None)
    if where in ("running", "completed"):
        lease = site.run(job)
        if where == "completed":
            site.pass_(lease)

    with pytest.raises((Refused, UnlawfulTransition)):
        site.retry(job)

    assert site.state(job) == where


def test_a_job_that_failed_because_of_its_children_retries_those_that_failed(site: Site) -> None:
    parent, born = site.family(n=3)
    site.drain(failing={born[0], born[2]})
    assert site.state(parent) is State.FAILED

    touched = site.retry(parent)

    assert {born[0], born[2]} <= set(touched.ids)
    assert site.states([parent, *born]) == [
        State.WAITING,
        State.PENDING,
        State.COMPLETED,
        State.PENDING,
    ]
    assert site.drain() == [(born[0], "work"), (born[2], "work"), (parent, "merge")]


def test_a_retry_opens_all_children_that_failed_however_many(site: Site) -> None:
    parent, born = site.family(n=130)
    failing = [child for n, child in enumerate(born) if n % 13]
    assert site.drain(failing=set(failing)) == [(child, "work") for child in born]

    touched = site.retry(parent)

    assert (sorted(touched.ids), list(touched.reopened)) == (failing, [parent])
    assert site.count() == {State.PENDING: len(failing), State.COMPLETED: 10, State.WAITING: 1}
    assert site.drain() == [*((child, "work") for child in failing), (parent, "merge")]
    assert site.count() == {State.COMPLETED: 131}


def test_a_retry_from_the_top_reaches_the_leaf_that_failed(site: Site) -> None:
    root, (branch,) = site.family(child="parent", n=1)
    lease = site.run(branch)
    leaves = site.spawn(lease, n=2)
    site.pass_(lease)
    site.drain(failing={leaves[0]})
    assert site.states([root, branch]) == [State.FAILED] * 2

    site.retry(root)

    assert site.drain() == [(leaves[0], "work"), (branch, "merge"), (root, "merge")]


def test_a_superseded_job_that_is_named_retries_those_that_failed_below_it(site: Site) -> None:
    parent, [branch] = site.family(n=1, child="parent")
    lease = site.run(branch)
    [leaf] = site.spawn(lease)
    site.pass_(lease)
    site.drain(failing=[leaf])
    site.rerun(parent)

    touched = site.retry(branch)

    assert (list(touched.ids), list(touched.reopened)) == ([leaf], [branch])
    assert {(leaf, "work"), (branch, "merge")} < set(site.drain())
    assert site.states([parent, branch, leaf]) == [State.COMPLETED] * 3


def test_a_batch_that_failed_by_its_own_report_retries_only_that(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.drain(failing={batch, born[0]})

    site.retry(batch)

    assert site.drain() == [(batch, "report")]
    assert site.states([batch, *born]) == [State.FAILED, State.FAILED, State.COMPLETED]


def test_a_batch_leaves_cancelled_what_somebody_cancelled_when_it_is_retried(site: Site) -> None:
    batch, born = site.family("batch", n=3)
    site.cancel(born[0])
    site.drain(failing={born[1]})
    assert site.state(batch) is State.FAILED

    site.retry(batch)

    assert site.drain() == [(born[1], "work"), (batch, "report")]
    assert site.states([batch, *born]) == [
        State.COMPLETED,
        State.CANCELLED,
        State.COMPLETED,
        State.COMPLETED,
    ]


@pytest.mark.parametrize("end", ["cancel", "fail"])
def test_a_strict_parent_retries_all_that_keeps_it_from_completing(site: Site, end: str) -> None:
    parent, born = site.family(n=2)
    if end == "cancel":
        site.cancel(born[0])
    site.drain(failing={born[0]})
    assert site.state(parent) is State.FAILED

    site.retry(parent)

    assert site.drain() == [(born[0], "work"), (parent, "merge")]


def test_a_retry_of_an_earlier_stage_replaces_the_children_it_bore(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain(failing={born[0]})

    site.retry(parent, stage="expand")
    lease = site.run(parent)
    (child,) = site.spawn(lease)
    site.pass_(lease)

    assert site.children(parent) == [child]
    site.drain()
    assert site.state(parent) is State.COMPLETED


# --- rerun ----------------------------------------------------------------------------------


def test_a_completed_job_runs_again_from_its_first_stage(site: Site) -> None:
    job = site.submit_one("three")
    site.drain()

    touched = site.rerun(job)

    assert list(touched.ids) == [job]
    again = site.job(job)
    assert (again.state, again.stage, again.settled_us) == (State.PENDING, "first", None)
    assert [name for _, name in site.drain()] == ["first", "second", "third"]
    assert site.state(job) is State.COMPLETED


def test_a_rerun_may_begin_at_a_stage(site: Site) -> None:
    job = site.submit_one("three")
    for value in (1, 2, 3):
        site.pass_(site.run(job), result=value)

    site.rerun(job, stage="second")

    assert site.store.results(job) == {"first": 1}
    assert [name for _, name in site.drain()] == ["second", "third"]


def test_a_failed_job_may_be_rerun_from_the_start(site: Site) -> None:
    job = _failed_in_third(site)

    site.rerun(job)

    assert [name for _, name in site.drain()] == ["first", "second", "third"]


def test_what_a_rerun_supersedes_is_marked_in_the_history(site: Site) -> None:
    job = site.submit_one("three")
    site.drain()
    site.rerun(job, stage="third")
    site.drain()

    assert [(a.stage, a.superseded) for a in site.store.attempts(job)] == [
        ("first", False),
        ("second", False),
        ("third", True),
        ("third", False),
    ]


def test_a_finished_job_may_be_rerun(site: Site) -> None:
    job = site.submit_one("three")
    site.record(site.run(job), Outcome.FINISH)

    site.rerun(job)

    assert [name for _, name in site.drain()] == ["first", "second", "third"]


def test_a_finished_job_that_is_run_again_from_a_later_stage_keeps_the_one_that_finished_it(
    site: Site,
) -> None:
    """That one has passed; of what it left out nothing has."""
    job = site.submit_one("three")
    site.record(site.run(job), Outcome.FINISH, result=1)

    site.rerun(job, stage="third")

    assert site.store.results(job) == {"first": 1}
    assert [(a.outcome, a.superseded) for a in site.store.attempts(job)] == [(Outcome.FINISH, False)]
    assert site.drain() == [(job, "second"), (job, "third")]
    assert site.state(job) is State.COMPLETED


def test_a_finished_batch_that_is_retried_from_its_report_bears_no_children_twice(site: Site) -> None:
    batch = site.submit_one("batch")
    lease = site.run(batch)
    (child,) = site.spawn(lease)
    site.record(lease, Outcome.FINISH)
    site.fail(site.run(child))
    assert site.state(batch) is State.FAILED

    site.retry(batch, stage="report")

    assert site.drain() == [(batch, "report")]


@pytest.mark.parametrize("where", ["pending", "running"])
def test_an_open_job_is_not_rerun(site: Site, where: str) -> None:
    job = site.submit_one()
    if where == "running":
        site.run(job)

    with pytest.raises((Refused, UnlawfulTransition)):
        site.rerun(job)

    assert site.state(job) == where


def test_a_rerun_of_a_stage_that_the_type_has_not_is_refused(site: Site) -> None:
    job = site.submit_one("three")
    site.drain()

    with pytest.raises(SpinneyError):
        site.rerun(job, stage="fourth")

    assert site.state(job) is State.COMPLETED


def test_a_stage_that_runs_again_supersedes_the_children_it_bore(site: Site) -> None:
    parent, _ = site.family(n=2)
    site.drain()
    site.rerun(parent)

    lease = site.run(parent)
    born = site.spawn(lease, n=3)
    site.pass_(lease)

    assert site.children(parent) == born
    assert [job for job, _ in site.drain()] == [*born, parent]
    assert site.state(parent) is State.COMPLETED


def test_a_rerun_that_bears_nobody_has_no_children_left(site: Site) -> None:
    parent, _ = site.family(n=2)
    site.drain()

    site.rerun(parent)
    site.pass_(site.run(parent))

    assert site.children(parent) == []
    assert site.state(parent) is State.PENDING


def test_a_superseded_failure_no_longer_fails_its_parent(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain(failing={born[0]})

    site.rerun(parent)
    lease = site.run(parent)
    site.spawn(lease)
    site.pass_(lease)
    site.drain()

    assert site.state(parent) is State.COMPLETED


def test_a_rerun_from_the_start_supersedes_stages_that_the_type_has_no_more(site: Site) -> None:
    site.knows(kind("batch", "expand", "merge", children="settled"))
    parent, born = site.family("batch", n=2)
    site.drain(failing={born[0]})
    site.knows(kind("batch", "spread", "merge", children="settled"))

    site.rerun(parent)
    lease = site.run(parent)
    again = site.spawn(lease)
    site.pass_(lease)

    assert site.children(parent) == again
    assert site.drain() == [(again[0], "work"), (parent, "merge")]
    assert site.state(parent) is State.COMPLETED
    superseded = {attempt.stage for attempt in site.store.attempts(parent) if attempt.superseded}
    assert superseded == {"expand", "merge"}


def test_a_child_whose_key_is_spawned_again_is_not_superseded(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    kept, dropped = site.spawn(lease, n=2, keys=("kept", "dropped"))
    site.pass_(lease)
    site.drain()
    site.rerun(parent)

    lease = site.run(parent)
    again = site.spawn(lease, n=2, keys=("kept", "new"))
    site.pass_(lease)

    assert again[0] == kept
    assert site.children(parent) == sorted(again)
    assert dropped not in site.children(parent)
    assert site.state(kept) is State.COMPLETED
    assert site.drain() == [(again[1], "work"), (parent, "merge")]


def test_a_rerun_of_a_later_stage_keeps_the_children_of_an_earlier(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain()

    site.rerun(parent, stage="merge")

    assert site.drain() == [(parent, "merge")]
    assert site.children(parent) == born


VERBS: dict[str, Callable[[Site, int], object]] = {
    "retry": Site.retry,
    "rerun": Site.rerun,
    "release": Site.release,
    "delete": Site.delete,
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_never_was_is_refused(site: Site, verb: str) -> None:
    with pytest.raises(NoSuchJob):
        VERBS[verb](site, 4711)


@pytest.mark.parametrize("verb", ["retry", "rerun"])
def test_a_tombstone_is_not_opened(site: Site, verb: str) -> None:
    job = _failed_in_third(site)
    site.delete(job)

    with pytest.raises(SpinneyError):
        VERBS[verb](site, job)

    assert site.state(job) is State.DELETED
