"""Regrowing: when a leaf is mended, the tree above it goes on by itself, up to its report."""

from collections.abc import Callable

import pytest

import job_verbs
from spinney.model.errors import Refused
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site, kind, locked, stage

MERGING = kind("merging", "expand", stage("merge", again=True), "publish")


@pytest.fixture
def grove(site: Site) -> Site:
    site.knows(MERGING)
    return site


def _reported_batch(site: Site) -> tuple[int, list[int]]:
    """A batch that has reported a failure: its first child failed, its second completed."""
    batch, born = site.family("batch", n=2)
    site.drain(failing={born[0]})
    assert site.states([batch, *born]) == [State.FAILED, State.FAILED, State.COMPLETED]
    return batch, born


def test_a_settled_ancestor_waits_again_in_the_transaction_that_opens_its_child(
    site: Site, open_another: Callable[[], Store]
) -> None:
    batch, born = _reported_batch(site)

    touched = site.retry(born[0])

    assert (list(touched.ids), list(touched.reopened)) == ([born[0]], [batch])
    seen = open_another().job(batch)
    assert (seen.state, seen.waits_for, seen.settled_us) == (State.WAITING, "children", None)


def test_a_mended_batch_reports_once_more_and_expands_no_more(site: Site) -> None:
    batch, born = _reported_batch(site)
    site.retry(born[0])

    ran = site.drain()

    assert ran == [(born[0], "work"), (batch, "report")]
    assert site.states([batch, *born]) == [State.COMPLETED] * 3
    assert site.stages_run(batch) == ["expand", "report", "report"]


def test_the_superseded_report_is_marked_in_the_history(site: Site) -> None:
    batch, born = _reported_batch(site)
    site.retry(born[0])
    site.drain()

    assert [(a.stage, a.superseded) for a in site.store.attempts(batch)] == [
        ("expand", False),
        ("report", True),
        ("report", False),
    ]


def test_a_batch_reports_whatever_became_of_the_mended_leaf(site: Site) -> None:
    batch, born = _reported_batch(site)
    site.retry(born[0])

    site.fail(site.run(born[0]))

    assert site.drain() == [(batch, "report")]
    assert site.states([batch, born[0]]) == [State.FAILED, State.FAILED]


def test_a_parent_that_failed_because_of_a_child_goes_on_when_it_is_mended(grove: Site) -> None:
    parent, born = grove.family("merging", n=2)
    grove.drain(failing={born[1]})
    assert grove.state(parent) is State.FAILED

    touched = grove.retry(born[1])

    assert list(touched.reopened) == [parent]
    assert grove.drain() == [(born[1], "work"), (parent, "merge"), (parent, "publish")]
    assert grove.state(parent) is State.COMPLETED


def test_only_stages_marked_again_run_once_more(grove: Site) -> None:
    parent, born = grove.family("merging", n=2)
    grove.drain()
    assert grove.state(parent) is State.COMPLETED

    grove.rerun(born[0])

    assert grove.drain() == [(born[0], "work"), (parent, "merge")]
    assert grove.state(parent) is State.COMPLETED


def _finished_in(site: Site, last: str) -> tuple[int, int]:
    """A parent that said in this stage that no more are needed, and its child."""
    site.knows(kind("layered", "expand", stage("merge", again=True), "publish"))
    parent, (child,) = site.family("layered", n=1)
    site.pass_(site.run(child))
    for name in ("merge", "publish"):
        lease = site.run(parent)
        site.record(lease, Outcome.FINISH if name == last else Outcome.OK, result=name)
        if name == last:
            break
    assert site.state(parent) is State.COMPLETED
    return parent, child


def test_a_finished_parent_needs_no_stage_again_and_loses_no_result(site: Site) -> None:
    parent, child = _finished_in(site, "publish")

    site.rerun(child)

    assert site.drain() == [(child, "work")]
    assert site.state(parent) is State.COMPLETED
    assert site.store.results(parent) == {"merge": "merge", "publish": "publish"}


def test_a_stage_that_finished_runs_again_once_more_was_asked_for(site: Site) -> None:
    parent, child = _finished_in(site, "merge")
    site.rerun(parent, stage="publish")
    assert site.drain() == [(parent, "publish")]

    site.rerun(child)

    assert site.drain() == [(child, "work"), (parent, "merge")]


def test_a_parent_without_stages_for_it_completes_again_by_itself(site: Site) -> None:
    parent, born = site.family("one", n=2)
    site.drain()

    site.rerun(born[0])
    assert site.state(parent) is State.WAITING
    site.pass_(site.run(born[0]))

    assert site.state(parent) is State.COMPLETED
    assert site.stages_run(parent) == ["work"]


def test_a_mended_leaf_that_fails_again_fails_its_parent_again(grove: Site) -> None:
    parent, born = grove.family("merging", n=2)
    grove.drain(failing={born[0]})
    grove.retry(born[0])

    grove.drain(failing={born[0]})

    assert grove.states([parent, born[0]]) == [State.FAILED, State.FAILED]


def test_a_parent_waits_until_the_last_of_several_mended_leaves_has_settled(site: Site) -> None:
    batch, born = site.family("batch", n=3)
    site.drain(failing=set(born))
    for job in born:
        site.retry(job)
    leases = site.claim_by_job()

    site.pass_(leases[born[0]])
    site.fail(leases[born[1]])
    assert site.state(batch) is State.WAITING
    site.pass_(leases[born[2]])

    assert site.drain() == [(batch, "report")]


def test_a_leaf_mended_while_others_are_still_open_reopens_nobody(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    leases = site.claim_by_job()
    site.fail(leases[born[0]])

    touched = site.retry(born[0])

    assert list(touched.reopened) == []
    assert site.state(batch) is State.WAITING


def _three_levels(site: Site, top: str, middle: str) -> tuple[int, int, int]:
    root, (branch,) = site.family(top, child=middle, n=1)
    lease = site.run(branch)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)
    return root, branch, leaf


def test_every_settled_ancestor_regrows_up_to_the_root(grove: Site) -> None:
    root, branch, leaf = _three_levels(grove, "batch", "merging")
    grove.drain(failing={leaf})
    assert grove.states([root, branch, leaf]) == [State.FAILED] * 3

    touched = grove.retry(leaf)

    assert set(touched.reopened) == {root, branch}
    assert grove.states([root, branch]) == [State.WAITING, State.WAITING]
    assert grove.drain() == [
        (leaf, "work"),
        (branch, "merge"),
        (branch, "publish"),
        (root, "report"),
    ]


def test_a_parent_that_failed_by_a_stage_of_its_own_stays_failed(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.drain(failing={born[0], batch})
    assert site.state(batch) is State.FAILED

    touched = site.retry(born[0])

    assert list(touched.reopened) == []
    assert site.drain() == [(born[0], "work")]
    assert site.state(batch) is State.FAILED


def test_nobody_is_left_waiting_above_one_that_stays_failed(site: Site) -> None:
    root, branch, leaf = _three_levels(site, "parent", "batch")
    site.drain(failing={leaf, branch})
    assert site.states([root, branch, leaf]) == [State.FAILED] * 3

    site.retry(leaf)
    site.drain()

    assert site.states([root, branch, leaf]) == [State.FAILED, State.FAILED, State.COMPLETED]


def test_one_that_failed_by_itself_waits_for_its_open_children_when_it_is_retried(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.drain(failing={born[0], batch})
    site.retry(born[0])

    site.retry(batch)

    assert site.state(batch) is State.WAITING
    assert site.drain() == [(born[0], "work"), (batch, "report")]


def test_below_a_cancelled_ancestor_nothing_is_opened(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    leases = site.claim_by_job()
    site.fail(leases[born[0]])
    site.cancel(batch, tree=True)
    site.record(leases[born[1]], Outcome.CANCELLED)
    site.sweep()
    assert site.states([batch, *born]) == [State.CANCELLED, State.FAILED, State.CANCELLED]

    for job in born:
        with pytest.raises(Refused):
            site.retry(job)

    assert site.states([batch, *born]) == [State.CANCELLED, State.FAILED, State.CANCELLED]


def test_a_batch_may_be_mended_again_and_again(site: Site) -> None:
    batch, born = _reported_batch(site)
    site.retry(born[0])
    site.drain()

    for _ in range(2):
        site.rerun(born[1])
        site.drain()

    assert site.stages_run(batch) == ["expand"] + ["report"] * 4
    assert site.state(batch) is State.COMPLETED


def test_a_leaf_opened_while_the_report_runs_makes_one_report_more(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    leases = site.claim_by_job()
    site.fail(leases[born[0]])
    site.pass_(leases[born[1]])
    report = site.run(batch)

    site.retry(born[0])
    site.pass_(report)

    assert site.state(batch) is State.WAITING
    assert site.drain() == [(born[0], "work"), (batch, "report")]
    assert site.state(batch) is State.COMPLETED


@pytest.mark.parametrize("at", ["before it", "with it"])
def test_a_leaf_that_is_mended_while_the_report_runs_makes_one_report_more(site: Site, at: str) -> None:
    # Given a report that has seen a failed leaf
    batch, (leaf,) = site.family("batch", n=1)
    site.fail(site.run(leaf))
    report = site.run(batch)
    # When the leaf is retried, and completes before the report has ended
    site.retry(leaf)
    mended = site.run(leaf)
    if at == "before it":
        site.pass_(mended)
        site.pass_(report, result={"failed": 1})
    else:
        site.flush_and_claim([site.entry(mended), site.entry(report, result={"failed": 1})])
    # Then the report runs once more, and only once
    assert site.drain() == [(batch, "report")]
    assert site.state(batch) is State.COMPLETED
    assert [attempt.superseded for attempt in site.store.attempts(batch)] == [False, True, False]


def test_a_report_that_finishes_its_job_is_the_last_one_whenever_a_leaf_is_opened(site: Site) -> None:
    """As ``test_a_finished_parent_needs_no_stage_again_and_loses_no_result`` has it for one that had settled."""
    batch, born = site.family("batch", n=1)
    site.pass_(site.run(born[0]))
    report = site.run(batch)

    site.rerun(born[0])
    site.record(report, Outcome.FINISH)

    assert site.state(batch) is State.WAITING
    assert site.drain() == [(born[0], "work")]
    assert site.state(batch) is State.COMPLETED


def test_a_leaf_opened_before_the_report_started_is_waited_for(site: Site) -> None:
    batch, born = site.family("batch", n=1)
    site.fail(site.run(born[0]))
    assert site.state(batch) is State.PENDING

    site.retry(born[0])

    ran = site.drain()
    assert ran.index((born[0], "work")) < ran.index((batch, "report")) or ran.count((batch, "report")) == 2
    assert site.states([batch, born[0]]) == [State.COMPLETED, State.COMPLETED]


def test_a_deleted_child_no_longer_counts(site: Site) -> None:
    parent, born = site.family("parent", n=2)
    site.record(site.run(born[0]), Outcome.HOLD)
    site.pass_(site.run(born[1]))
    assert site.state(parent) is State.WAITING

    site.delete(born[0])

    assert (site.state(parent), site.job(parent).stage) == (State.PENDING, "merge")


def test_a_deleted_failure_no_longer_fails_its_parent(site: Site) -> None:
    parent, born = site.family("parent", n=2)
    leases = site.claim_by_job()
    site.fail(leases[born[0]])
    site.delete(born[0])

    site.pass_(leases[born[1]])

    assert (site.state(parent), site.job(parent).stage) == (State.PENDING, "merge")


def test_a_parent_whose_failed_child_was_deleted_can_be_retried(site: Site) -> None:
    parent, born = site.family("parent", n=2)
    site.drain(failing={born[0]})
    site.delete(born[0])

    site.retry(parent)

    assert site.drain() == [(parent, "merge")]
    assert site.state(parent) is State.COMPLETED


# --- subjobs of a stage that runs again ---------------------------------------------------------


def _batch_with_mail(site: Site, *, leaf_fails: bool) -> tuple[int, int, int]:
    """A batch whose report has spawned a mail that failed; its leaf failed, too, or completed."""
    batch, (leaf,) = site.family("batch", n=1)
    leaf_lease = site.run(leaf)
    (site.fail if leaf_fails else site.pass_)(leaf_lease)
    report = site.run(batch)
    (mail,) = site.spawn(report)
    site.pass_(report)
    site.fail(site.run(mail))
    assert site.state(batch) is State.FAILED
    return batch, leaf, mail


def test_what_an_outdated_report_has_spawned_no_longer_counts(site: Site) -> None:
    batch, leaf, mail = _batch_with_mail(site, leaf_fails=True)
    site.retry(leaf)
    site.pass_(site.run(leaf))
    report = site.run(batch)
    (second,) = site.spawn(report)
    site.pass_(report)

    site.pass_(site.run(second))

    assert site.children(batch) == [leaf, second]
    assert site.states([batch, mail]) == [State.COMPLETED, State.FAILED]


def test_what_an_outdated_report_has_spawned_by_key_counts_when_it_is_spawned_again(site: Site) -> None:
    batch, (leaf,) = site.family("batch", n=1)
    site.pass_(site.run(leaf))
    report = site.run(batch)
    (mail,) = site.spawn(report, keys=("mail",))
    site.pass_(report)
    site.fail(site.run(mail))
    site.rerun(leaf)
    site.pass_(site.run(leaf))

    report = site.run(batch)
    assert site.spawn(report, keys=("mail",)) == [mail]
    site.pass_(report)

    assert (site.state(batch), site.children(batch)) == (State.FAILED, [leaf, mail])


def test_a_subjob_of_the_report_is_mended_without_another_report(site: Site) -> None:
    batch, _, mail = _batch_with_mail(site, leaf_fails=False)

    site.retry(mail)

    assert site.drain() == [(mail, "work")]
    assert site.state(batch) is State.COMPLETED


@pytest.mark.parametrize("first", ["leaf", "mail"])
def test_a_leaf_that_is_mended_with_a_subjob_of_the_report_makes_one_report_more(
    site: Site, first: str
) -> None:
    batch, leaf, mail = _batch_with_mail(site, leaf_fails=True)

    for job in (leaf, mail) if first == "leaf" else (mail, leaf):
        site.retry(job)

    assert sorted(site.drain()) == [(batch, "report"), (leaf, "work"), (mail, "work")]
    assert (site.state(batch), site.children(batch)) == (State.COMPLETED, [leaf])


def test_a_retry_of_a_batch_leaves_out_what_its_next_report_spawns_anew(site: Site) -> None:
    batch, leaf, mail = _batch_with_mail(site, leaf_fails=True)
    preview = job_verbs.preview(site.store, Order(verb=Verb.RETRY), [batch], now_us=site.now)

    site.retry(batch)

    assert site.drain() == [(leaf, "work"), (batch, "report")]
    assert preview == {leaf: ("one", ["work"]), batch: ("batch", ["report"])}
    assert site.states([batch, mail]) == [State.COMPLETED, State.FAILED]


def test_what_an_early_report_has_spawned_does_not_count(site: Site) -> None:
    batch, (leaf,) = site.family("batch", n=1)
    site.fail(site.run(leaf))
    report = site.run(batch)
    site.retry(leaf)
    (mail,) = site.spawn(report)
    site.pass_(report)
    ran = site.drain(failing={mail})

    assert sorted(ran) == [(batch, "report"), (leaf, "work"), (mail, "work")]
    assert (site.state(batch), site.children(batch)) == (State.COMPLETED, [leaf])


@pytest.mark.parametrize("parent", ["ready", "running"])
@pytest.mark.parametrize("opened", [1, 2])
def test_a_report_that_passed_before_a_subjob_was_opened_again_runs_once_more(
    site: Site, parent: str, opened: int
) -> None:
    site.knows(kind("reports", "expand", stage("report", again=True), "last", children="settled"))
    batch, leaves = site.family("reports", n=opened)
    for leaf in leaves:
        site.fail(site.run(leaf))
    site.pass_(site.run(batch))
    assert site.job(batch).stage == "last"
    lease = site.run(batch) if parent == "running" else None

    for leaf in leaves:
        site.retry(leaf)
    if lease is not None:
        site.pass_(lease)
    ran = site.drain()

    reports = [(batch, "report")] if lease is not None else [(batch, "report"), (batch, "last")]
    assert ran[opened:] == reports
    assert site.state(batch) is State.COMPLETED


def a_batch_that_has_reported(site: Site) -> tuple[int, int]:
    """A batch that has reported the failure of its child, and has one stage left."""
    last = stage("last", max_attempts=2, locks=locked("mail"))
    site.knows(kind("mailed", "expand", stage("report", again=True), last, children="settled"))
    batch, (leaf,) = site.family("mailed", n=1)
    site.fail(site.run(leaf))
    site.pass_(site.run(batch))
    assert site.job(batch).stage == "last"
    return batch, leaf


OUTCOMES = {
    State.SCHEDULED: {"outcome": Outcome.ERROR, "message": "no answer"},
    State.HELD: {"outcome": Outcome.HOLD, "message": "look at the report first"},
    State.FAILED: {"outcome": Outcome.ERROR, "message": "no such address", "retryable": False},
}


@pytest.mark.parametrize("state", OUTCOMES)
@pytest.mark.parametrize("opened", ["while the stage runs", "after it has ended"])
@pytest.mark.parametrize("mended", [True, False])
def test_a_report_runs_once_more_before_a_stage_behind_it_that_did_not_pass(
    site: Site, state: State, opened: str, mended: bool
) -> None:
    batch, leaf = a_batch_that_has_reported(site)
    last = site.run(batch)
    if opened == "after it has ended":
        site.record(last, **OUTCOMES[state])
    site.retry(leaf)
    if mended:
        site.pass_(site.run(leaf))
    if opened == "while the stage runs":
        site.record(last, **OUTCOMES[state])

    if state is State.HELD:
        site.release(batch)
    elif state is State.FAILED:
        assert (site.state(batch), site.job(batch).stage) == (State.FAILED, "last")
        site.retry(batch)
    site.later(10)
    again = [(batch, "report"), (batch, "last")]
    assert site.drain() == (again if mended else [(leaf, "work"), *again])
    assert site.state(batch) is State.COMPLETED


def test_a_report_runs_once_more_although_its_job_waits_for_the_lock_of_a_later_stage(site: Site) -> None:
    batch, leaf = a_batch_that_has_reported(site)
    site.knows(kind("taker", stage("work", locks=locked("mail"))))
    taker = site.run(site.submit_one("taker", priority=1))
    assert site.claim() == []
    assert site.job(batch).waits_for == "lock:mail"

    site.retry(leaf)
    assert site.drain() == [(leaf, "work"), (batch, "report")]
    assert site.job(batch).waits_for == "lock:mail"
    site.pass_(taker)
    assert site.drain() == [(batch, "last")]


def test_a_report_that_runs_once_more_has_all_its_attempts(site: Site) -> None:
    batch, leaf = a_batch_that_has_reported(site)
    site.record(site.run(batch), Outcome.ERROR, message="no answer")
    site.later(10)
    site.retry(leaf)
    site.pass_(site.run(leaf))
    assert site.run(batch).attempt == 1
