"""Bulk verbs as a person gives them: planned, done in steps, cut off and asked for again."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from contract.everything import TYPES, Everything, fill
from contract.words import Clock, Site
from new_store import new_store
from spinney.features.bulk.service import Bulk
from spinney.features.bulk.step_run import PAGE, STEP
from spinney.model.errors import NoSuchJob, UnknownType, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import DEFAULT_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report, StageCount
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.service.canary import LOOK_S, Canary
from spinney.store.sql import open_store


class CutOff(BaseException):
    """What a SIGKILL is to the rest of a call."""


def cut_off(*args: Any, **kwargs: Any) -> None:
    raise CutOff


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(*TYPES, queues=[QueueSpec(name="urgent")])
    yield made
    store.close()


@pytest.fixture
def bulk(site: Site) -> Bulk:
    return service(site)


class Full(NamedTuple):
    """A store that has one of each."""

    site: Site
    bulk: Bulk
    made: Everything


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Full]:
    store = open_store(new_store(tmp_path / "full.db"))
    site = Site(store, Clock())
    made = fill(site)
    yield Full(site, service(site), made)
    store.close()


def service(site: Site, sleep: Callable[[float], None] = lambda s: None) -> Bulk:
    return Bulk(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann", sleep=sleep)


def run(bulk: Bulk, verb: Verb, *ids: int, which: Filter | None = None, **how: Any) -> Report:
    order = Order(verb=verb, **{k: v for k, v in how.items() if k in Order.__slots__})
    plan = bulk.plan(order, which, ids)
    return bulk.run(plan, **{k: v for k, v in how.items() if k not in Order.__slots__})


def failed(site: Site, n: int, of: str = "one", **fields: Any) -> list[int]:
    """So many jobs that failed."""
    ids = site.submit(of, n=n, **fields)
    while leases := site.claim(slots=50):
        site.fail(*leases)
    assert site.states(ids) == [State.FAILED] * n
    return ids


def attempts(site: Site, job_id: int) -> int:
    return len(site.store.attempts(job_id))


ALL_FAILED = Filter(states=(State.FAILED,))

# --- retry ----------------------------------------------------------------------------------


def test_a_retry_of_all_that_failed_opens_each_once_and_nothing_that_its_child_opens(full: Full) -> None:
    site, bulk, made = full
    leaves = {
        "failed",
        "failed late",
        "failed keyed",
        "bad batch failed",
        "bad batch failed too",
        "deep leaf",
        "waiting batch failed",
    }
    above = {"bad batch", "deep branch", "deep root", "failed for a need"}

    report = run(bulk, Verb.RETRY, which=Filter())

    steps = [json.loads(entry.what) for entry, _ in site.store.audit.entries() if entry.verb == "retry"]
    opened = [job for step in steps for job in step["jobs"]]
    assert report.refused == {}
    assert (report.touched, report.reopened) == (len(leaves), len(above))
    assert {n for n in leaves if site.state(made[n]) is not State.PENDING} == set()
    assert {n for n in above if site.state(made[n]) is not State.WAITING} == set()
    assert site.state(made["superseded failed"]) is State.FAILED
    assert site.state(made["orphaned"]) is State.ORPHANED, "only where it is named"
    assert sorted(opened) == sorted(made[name] for name in leaves), "each once, in however many steps"


def test_a_retry_from_above_reaches_all_that_failed_below(site: Site, bulk: Bulk) -> None:
    parent, born = site.family(n=3 * STEP)
    bad = born[::2]
    site.drain(failing=set(bad))

    report = run(bulk, Verb.RETRY, parent)

    assert (report.touched, report.reopened, report.refused) == (len(bad), 1, {})
    assert site.drain() == [*((j, "work") for j in bad), (parent, "merge")]


def test_a_retry_of_trees_by_a_filter_that_fits_their_tops_alone(full: Full) -> None:
    site, bulk, made = full

    report = run(bulk, Verb.RETRY, which=Filter(type="batch"))

    assert (report.touched, report.reopened) == (3, 3)
    assert (
        site.states([made[n] for n in ("bad batch failed", "bad batch failed too", "deep leaf")])
        == [State.PENDING] * 3
    )


def test_a_parent_that_failed_by_itself_waits_for_its_child_that_is_retried_with_it(
    site: Site, bulk: Bulk
) -> None:
    """It comes after what lies below it, although it is older."""
    batch, born = site.family("batch", n=2)
    site.drain(failing={born[0], batch})

    report = run(bulk, Verb.RETRY, which=ALL_FAILED)

    assert (report.touched, report.refused) == (2, {})
    assert site.state(batch) is State.WAITING
    assert site.drain() == [(born[0], "work"), (batch, "report")]


def test_named_in_any_order_a_parent_and_its_children_are_opened_once(site: Site, bulk: Bulk) -> None:
    batch, born = site.family("batch", n=2)
    site.drain(failing=set(born))

    report = run(bulk, Verb.RETRY, batch, *born)

    assert (report.touched, report.reopened, report.refused) == (2, 1, {})
    assert [attempts(site, j) for j in born] == [1, 1]


def test_who_needs_a_job_that_is_opened_later_is_not_refused(site: Site, bulk: Bulk) -> None:
    need = failed(site, 1)[0]
    needer = site.submit_one(needs=(need,))
    assert site.state(needer) is State.FAILED

    report = run(bulk, Verb.RETRY, which=ALL_FAILED)

    assert (report.touched, report.reopened, report.refused) == (1, 1, {})
    assert site.drain() == [(need, "work"), (needer, "work")]


def test_whose_need_is_not_opened_is_refused(site: Site, bulk: Bulk) -> None:
    need = failed(site, 1)[0]
    needer = site.submit_one("three", needs=(need,))

    report = run(bulk, Verb.RETRY, which=Filter(type="three"))

    assert (report.touched, list(report.refused)) == (0, [needer])


def test_an_older_job_with_the_key_of_a_newer_is_refused_and_the_others_are_not(
    site: Site, bulk: Bulk
) -> None:
    keyed = [failed(site, 1, keys=("k",))[0] for _ in range(2)]
    others = failed(site, 3)

    report = run(bulk, Verb.RETRY, which=ALL_FAILED)

    assert list(report.refused) == [keyed[0]]
    assert site.states([keyed[1], *others]) == [State.PENDING] * 4


def test_jobs_that_fail_meanwhile_are_not_chased(site: Site, bulk: Bulk) -> None:
    first = failed(site, 3)
    plan = bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED)
    later = failed(site, 2)

    report = bulk.run(plan)

    assert report.touched == 3
    assert site.states([*first, *later]) == [State.PENDING] * 3 + [State.FAILED] * 2


@pytest.mark.parametrize("verb", Verb)
def test_cut_off_after_any_step_and_asked_for_again_it_does_the_rest(site: Site, verb: Verb) -> None:
    how: dict[str, Any] = {"reason": "again", "queue": "urgent", "priority": 3}
    later = {"at_us": site.now + 10**9} if verb is Verb.RUN_NOW else {}
    ids = failed(site, 3 * STEP) if verb in (Verb.RETRY, Verb.DELETE) else site.submit(n=3 * STEP, **later)
    if verb is Verb.RELEASE:
        run(service(site), Verb.HOLD, *ids, reason="x")
    if verb is Verb.RERUN:
        site.drain()
    seen: list[int] = []

    def cut(report: Report, step: BulkStep) -> None:
        seen.extend(step.touched)
        if step.touched:
            raise CutOff

    calls = 1
    while True:
        try:
            run(service(site), verb, which=Filter(ids=tuple(ids)), on_step=cut, **how)
            break
        except CutOff:
            calls += 1
            assert calls < 100

    assert calls > 3
    assert sorted(seen) == ids, "nothing was left out, and nothing done twice"
    site.store.audit.verify()
    assert sum(entry.count for entry, _ in site.store.audit.entries() if entry.verb == verb) == len(ids)


def test_one_call_is_one_call_in_the_audit(site: Site, bulk: Bulk) -> None:
    jobs = failed(site, STEP + 1)

    run(bulk, Verb.RETRY, which=ALL_FAILED, reason="the disk is back")

    entries = [entry for entry, _ in site.store.audit.entries() if entry.verb == "retry"]
    assert len(entries) > 1
    assert sum(entry.count for entry in entries) == STEP + 1
    assert len({entry.call for entry in entries}) == 1
    assert {(entry.by, entry.reason) for entry in entries} == {("ann", "the disk is back")}
    (call,) = site.store.audit.calls(verb="retry")
    assert sorted(json.loads(call.what)["jobs"]) == jobs


def test_more_than_a_page_is_done_whole(site: Site, bulk: Bulk) -> None:
    ids = failed(site, PAGE + 50)

    assert run(bulk, Verb.RETRY, which=ALL_FAILED).touched == len(ids)
    assert site.count() == {"pending": len(ids)}


# --- the other verbs ------------------------------------------------------------------------


def test_a_rerun_of_a_tree_runs_what_is_borne_anew_and_not_what_counts_no_more(
    site: Site, bulk: Bulk
) -> None:
    parent, born = site.family("batch", n=3)
    site.drain()

    report = run(bulk, Verb.RERUN, which=Filter(root_id=parent))

    assert (report.touched, report.refused) == (1, {})
    assert site.state(parent) is State.PENDING
    assert site.states(born) == [State.COMPLETED] * 3


def test_a_tree_is_cancelled_by_a_filter_with_its_top_cancelled(site: Site, bulk: Bulk) -> None:
    parent, born = site.family(n=3, collection="alpha")
    running = site.run(born[0])

    report = run(bulk, Verb.CANCEL, which=Filter(collection="alpha"), reason="wrong list")

    assert (report.touched, report.refused) == (4, {})
    site.record(running, Outcome.CANCELLED)
    assert site.states([parent, *born]) == [State.CANCELLED] * 4


@pytest.fixture
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step cancels a hundred jobs of a tree, however plain they are."""
    monkeypatch.setattr("spinney.store.sql.transitions.job_operations.PLAIN_FACTOR", 1)


@pytest.mark.usefixtures("_small_steps")
def test_wide_trees_are_cancelled_to_their_ends(site: Site, bulk: Bulk) -> None:
    parent, _ = site.family(n=450)
    order = Order(verb=Verb.CANCEL, tree=True)

    def tell(_: Report, step: BulkStep) -> None:
        site.sweep()  # by a node, which goes through the tree as well
        steps.append(step)

    steps: list[BulkStep] = []
    plan = bulk.plan(order, ids=[parent], exact=True)
    report = bulk.run(plan, on_step=tell)

    assert site.count() == {"cancelled": 451}
    assert (plan.jobs, report.touched, report.skipped, report.refused) == (451, 451, 0, {})
    (call,) = site.store.audit.calls(verb="cancel")
    assert (json.loads(call.what)["below"], call.count) == ([parent], 451), (
        "its first step says of which tree"
    )
    assert [parent in step.touched for step in steps] == [False] * 4 + [True]


@pytest.mark.usefixtures("_small_steps")
@pytest.mark.parametrize(
    ("of", "opened"),
    [("batch", {"pending": 1, "cancelled": 450}), ("parent", {"waiting": 1, "pending": 450})],
)
def test_a_tree_that_is_opened_again_while_it_is_cancelled_is_not_cancelled_further(
    site: Site, bulk: Bulk, of: str, opened: Mapping[str, int]
) -> None:
    parent, born = site.family(of, n=450)
    order = Order(verb=Verb.CANCEL, tree=True, reason="wrong list")
    reopened: list[Report] = []

    def tell(_: Report, __: BulkStep) -> None:
        if not reopened:
            # Until the cancel request is gone, nothing in the tree can be opened.
            refused = run(service(site), Verb.RETRY, born[0])
            assert "still being cancelled by ann: wrong list" in refused.refused[born[0]]
            site.sweep()  # by a node, which comes to the end of the tree
            assert site.count() == {"cancelled": 451}
            reopened.append(run(service(site), Verb.RETRY, parent))

    report = bulk.run(bulk.plan(order, ids=[parent]), on_step=tell)

    assert (report.touched, [*report.refused]) == (100, [parent])
    assert "was opened again while its tree was being cancelled" in report.refused[parent]
    assert site.count() == opened


def test_a_job_that_is_opened_again_below_a_failed_one_whose_tree_is_cancelled_is_not_cancelled_again(
    site: Site, bulk: Bulk
) -> None:
    parent, born = site.family("batch", n=250)
    site.drain(failing={parent})
    for job in born[-50:]:
        site.rerun(job)
    reopened: list[Report] = []

    def tell(_: Report, __: BulkStep) -> None:
        if not reopened:
            site.sweep()
            reopened.append(run(service(site), Verb.RETRY, born[-1]))

    report = bulk.run(bulk.plan(Order(verb=Verb.CANCEL, tree=True), ids=[parent]), on_step=tell)

    assert reopened[0].touched == 1
    assert site.state(born[-1]) is State.PENDING
    assert (report.touched, report.refused) == (50, {}), "the top, which failed by itself, and all but one"


@pytest.mark.parametrize("by_filter", [False, True])
def test_of_a_deep_tree_each_job_is_cancelled_once(site: Site, bulk: Bulk, *, by_filter: bool) -> None:
    top, branches = site.family(n=2, child="parent")
    for lease in [*map(site.run, branches)]:
        site.spawn(lease, n=60)
        site.pass_(lease)
    order = Order(verb=Verb.CANCEL, tree=True)

    plan = bulk.plan(order, Filter() if by_filter else None, () if by_filter else [top], exact=True)
    report = bulk.run(plan)

    assert site.count() == {"cancelled": 123}
    assert (plan.jobs, report.touched, report.skipped) == (123, 123, 0)


def test_the_audit_has_the_cancel_of_a_tree_whose_top_has_settled(site: Site, bulk: Bulk) -> None:
    # Given a tree whose top has failed by itself, and whose last job runs again
    parent, born = site.family("batch", n=150)
    site.drain(failing={parent})
    site.rerun(born[-1])
    assert site.state(parent) is State.FAILED

    report = run(bulk, Verb.CANCEL, parent, tree=True)

    assert site.state(born[-1]) is State.CANCELLED
    last = site.store.audit.entries(newest=True, limit=1)[0][0]
    assert (last.verb, report.refused) == ("cancel", {})


def test_what_is_deleted_loses_its_folder(site: Site, bulk: Bulk) -> None:
    parent, born = site.family("batch", n=120)
    site.drain()
    others = failed(site, 3)
    removed: list[int] = []

    report = run(replace(bulk, remove_folder=removed.append), Verb.DELETE, which=Filter())

    assert sorted(removed) == [parent, *born, *others]
    assert report.touched == len(removed)
    assert site.store.deleted_folders(10) == []


def test_what_an_open_batch_bore_is_not_deleted_unless_its_tree_is_named(full: Full) -> None:
    site, bulk, made = full
    below = [made["waiting batch ok"], made["waiting batch failed"], made["superseded ok"]]

    run(bulk, Verb.DELETE, which=Filter())
    assert site.states(below) == [State.COMPLETED, State.FAILED, State.COMPLETED]

    run(bulk, Verb.DELETE, which=Filter(root_id=made["waiting batch"]))
    run(bulk, Verb.DELETE, made["superseded ok"])
    assert site.states(below) == [State.DELETED] * 3


def test_folders_that_a_cut_off_call_left_are_told_to_housekeeping(site: Site, bulk: Bulk) -> None:
    ids = failed(site, 5)

    def cut(job_id: int) -> None:
        if job_id == ids[2]:
            raise CutOff

    with pytest.raises(CutOff):
        run(replace(bulk, remove_folder=cut), Verb.DELETE, which=ALL_FAILED)

    # How many one step deletes is a question of time; the folders of what it deleted go one by one.
    deleted = {job_id for job_id in ids if site.store.job(job_id).state is State.DELETED}
    assert ids[2] in deleted
    assert deleted - set(ids[:2]) <= set(site.store.deleted_folders(10))


# --- planning -------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", Verb)
def test_a_plan_counts_what_the_verb_is_for(full: Full, verb: Verb) -> None:
    _site, bulk, made = full
    order = Order(verb=verb, queue="urgent", priority=1, reason="look")

    plan = bulk.plan(order, Filter())

    fit = set(made.standing(*DEFAULT_STATES[verb]))
    if verb in (Verb.RETRY, Verb.RERUN, Verb.DELETE):
        fit -= {made["superseded failed"], made["superseded ok"]}
    if verb is Verb.DELETE:
        fit -= {made["waiting batch ok"], made["waiting batch failed"]}
    assert (plan.jobs, plan.more) == (len(fit), False)
    assert plan.last == max(made.jobs.values())


def test_a_plan_counts_to_its_bound_and_says_so(
    site: Site, bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit(n=20)
    monkeypatch.setattr("spinney.features.bulk.service.COUNTED", 20)
    exact = bulk.plan(Order(verb=Verb.CANCEL), Filter())
    site.submit_one()

    beyond = bulk.plan(Order(verb=Verb.CANCEL), Filter())

    assert [(p.jobs, p.more) for p in (exact, beyond)] == [(20, False), (20, True)]


def test_a_preview_says_how_many_run_each_stage(site: Site, bulk: Bulk) -> None:
    _, born = site.family("batch", n=20, child="three")
    site.drain(failing=set(born))

    stages = bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED, exact=True).stages or ()

    assert {(c.type, c.stage): c.jobs for c in stages} == {
        ("three", "first"): 20,
        ("three", "second"): 20,
        ("three", "third"): 20,
        ("batch", "report"): 1,
    }
    assert site.count() == {"failed": 21}


def test_a_preview_counts_all_stages_when_others_write_in_between(
    site: Site, bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.features.bulk.sql.TRIED_S", 0.0)
    _, born = site.family("batch", n=3 * STEP)
    site.drain(failing=set(born))

    for verb, which in ((Verb.RETRY, ALL_FAILED), (Verb.RERUN, Filter(states=(State.FAILED,), type="one"))):
        plan = bulk.plan(Order(verb=verb), which, exact=True)

        assert plan.jobs == len(born)
        assert {(c.type, c.stage): c.jobs for c in plan.stages or ()} == {
            ("one", "work"): len(born),
            ("batch", "report"): 1,
        }
    assert site.count() == {"failed": 1 + len(born)}


def test_a_preview_lists_the_stages_of_a_type_in_their_order(site: Site, bulk: Bulk) -> None:
    from_the_start, other = site.submit_one("three"), site.submit_one()
    half_done = site.submit_one("three", priority=1)  # the newest, which the preview comes to first
    site.pass_(site.run(half_done))
    site.drain(failing={from_the_start, half_done, other})

    stages = bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED, exact=True).stages or ()

    assert [(c.type, c.stage, c.jobs) for c in stages] == [
        ("three", "first", 1),
        ("three", "second", 2),
        ("three", "third", 2),
        ("one", "work", 1),
    ]


def test_a_canary_of_a_cancelled_tree_is_the_jobs_that_run(site: Site) -> None:
    top, born = site.family(n=3)
    site.cancel(top, tree=True)
    bulk = service(site, sleep=lambda s: site.drain() and None)

    report = run(bulk, Verb.RETRY, top, canary=Canary(first=1, stop_at=0.5))

    assert (report.touched, report.stopped) == (3, None)
    site.drain()
    assert site.states([top, *born]) == [State.COMPLETED] * 4


@pytest.mark.parametrize("by_filter", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_retry_of_a_cancelled_tree_that_was_interrupted_is_finished_by_the_same_request(
    site: Site, bulk: Bulk, steps: int, by_filter: bool
) -> None:
    top, _ = site.family(n=60, child="parent")
    for lease in site.claim(slots=60):
        site.spawn(lease, n=1)
        site.pass_(lease)
    site.cancel(top, tree=True)
    picked = (
        {"ids": [top]} if not by_filter else {"job_filter": Filter(states=(State.CANCELLED,), root_id=top)}
    )
    left = itertools.count(1)

    def on_step(report: Report, step: BulkStep) -> None:
        if next(left) == steps:
            raise CutOff

    with suppress(CutOff):  # where steps are quick there are only two
        bulk.run(bulk.plan(Order(verb=Verb.RETRY), **picked), on_step=on_step)
    bulk.run(bulk.plan(Order(verb=Verb.RETRY), **picked))

    site.drain()
    assert site.count() == {"completed": 121}


def test_a_preview_counts_what_a_retry_opens_when_the_job_above_is_open(site: Site, bulk: Bulk) -> None:
    top, (middle,) = site.family("batch", n=1, child="batch")
    lease = site.run(middle)
    born = site.spawn(lease, n=2)
    site.pass_(lease)
    site.cancel(top, tree=True)
    which = Filter(states=(State.CANCELLED,), root_id=top)

    for plan in (
        bulk.plan(Order(verb=Verb.RETRY), which, exact=True),
        bulk.plan(Order(verb=Verb.RETRY), ids=[*born, middle, top], exact=True),
    ):
        assert {(c.type, c.stage): c.jobs for c in plan.stages or ()} == {
            ("one", "work"): 2,
            ("batch", "report"): 2,
        }
        assert plan.jobs == 2
    report = bulk.run(plan)
    assert (report.touched, report.reopened) == (2, 2)


@pytest.mark.parametrize("by_filter", [True, False])
def test_given_a_cancelled_batch_when_all_of_it_is_retried_then_it_waits_for_its_subjobs(
    site: Site, bulk: Bulk, monkeypatch: pytest.MonkeyPatch, *, by_filter: bool
) -> None:
    # Otherwise a slow machine may open the subjobs in two steps, and the batch report in between.
    monkeypatch.setattr("spinney.features.bulk.verb_step.ENOUGH_S", 60)
    top, (middle,) = site.family("batch", n=1, child="batch")
    lease = site.run(middle)
    born = site.spawn(lease, n=2)
    site.pass_(lease)
    site.cancel(top, tree=True)
    picked = {"job_filter": Filter(states=(State.CANCELLED,))} if by_filter else {"ids": [*born, middle, top]}

    bulk.run(bulk.plan(Order(verb=Verb.RETRY), **picked), on_step=lambda report, step: site.drain() and None)

    assert site.states([top, middle, *born]) == [State.COMPLETED] * 4
    assert [site.stages_run(job) for job in (top, middle)] == [["expand", "report"]] * 2


def test_given_a_cancelled_tree_when_it_is_retried_into_a_queue_then_all_of_it_is_moved(
    site: Site, bulk: Bulk
) -> None:
    top, born = site.family("batch", n=2)
    site.cancel(top, tree=True)

    report = run(bulk, Verb.RETRY, which=Filter(states=(State.CANCELLED,)), queue="urgent")

    assert report.refused == {}
    assert {site.job(job).queue for job in (top, *born)} == {"urgent"}
    assert site.states([top, *born]) == [State.WAITING, State.PENDING, State.PENDING]


def test_given_a_cancelled_tree_when_it_is_retried_from_a_stage_then_each_job_runs_that(
    site: Site, bulk: Bulk
) -> None:
    top, (middle,) = site.family("batch", n=1, child="batch")
    site.cancel(top, tree=True)

    run(bulk, Verb.RETRY, middle, top, stage="expand")

    assert site.job(top).stage == "expand"


def test_given_a_cancelled_batch_above_one_that_failed_when_all_is_retried_then_it_waits_for_that(
    site: Site, bulk: Bulk
) -> None:
    top, (middle,) = site.family("batch", n=1, child="parent")
    lease = site.run(middle)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)
    site.fail(site.run(leaf))
    site.cancel(top, tree=True)
    assert site.states([top, middle, leaf]) == [State.CANCELLED, State.FAILED, State.FAILED]
    plan = bulk.plan(Order(verb=Verb.RETRY), Filter(states=(State.CANCELLED, State.FAILED)))

    bulk.run(plan, on_step=lambda report, step: site.drain() and None)

    assert site.states([top, middle, leaf]) == [State.COMPLETED] * 3
    assert site.stages_run(top) == ["expand", "report"]


def test_a_preview_leaves_out_what_a_retry_would_leave(site: Site, bulk: Bulk) -> None:
    """A child that does not fit is retried in its parent's place only where none is that does."""
    batch, born = site.family("batch", n=1, collection="alpha")
    second, other = site.family("batch", n=2, collection="alpha")
    site.drain(failing={*born, *other})
    which = Filter(states=(State.FAILED,), ids=(batch, second, other[0]))
    plan = bulk.plan(Order(verb=Verb.RETRY), which, exact=True)

    assert {(c.type, c.stage): c.jobs for c in plan.stages or ()} == {
        ("one", "work"): 2,
        ("batch", "report"): 2,
    }
    assert bulk.run(plan).touched == 2
    assert site.states([*born, *other]) == [State.PENDING, State.PENDING, State.FAILED]


REFUSED: dict[str, tuple[Verb, dict[str, Any], Filter, type[Exception], str]] = {
    "type": (Verb.RETRY, {}, Filter(type="batsh"), UnknownType, "did you mean 'batch'"),
    "queue": (Verb.CANCEL, {}, Filter(queue="urgnt"), UsageError, "no queue 'urgnt'.*did you mean 'urgent'"),
    "stage": (Verb.RETRY, {}, Filter(stage="exand"), UsageError, "no job type has a stage 'exand'.*'expand'"),
    "stage of a type": (
        Verb.RETRY,
        {},
        Filter(stage="expand", type="one"),
        UsageError,
        "'one' does not have.*: work",
    ),
    "node": (Verb.RETRY, {}, Filter(node="oakk"), UsageError, "no node 'oakk'.*did you mean 'oak'"),
    "collection": (Verb.RETRY, {}, Filter(collection="alpah"), UsageError, "did you mean 'alpha'"),
    "submitter": (Verb.RETRY, {}, Filter(submitter="anm"), UsageError, "did you mean 'ann'"),
    "no tree": (Verb.RETRY, {}, Filter(root_id=10**9), NoSuchJob, "no job 1000000000"),
    "state": (
        Verb.RETRY,
        {},
        Filter(states=(State.COMPLETED,)),
        UsageError,
        "'spinney rerun' runs such jobs again",
    ),
    "state of delete": (
        Verb.DELETE,
        {},
        Filter(states=(State.RUNNING,)),
        UsageError,
        "not for jobs that are running",
    ),
    "from": (Verb.RETRY, {"stage": "mergee"}, Filter(), UsageError, "did you mean 'merge'"),
    "from, of a type": (
        Verb.RETRY,
        {"stage": "gone"},
        Filter(type="batch"),
        UsageError,
        "no job type has a stage 'gone'; choose a stage: type 'batch' has expand, report$",
    ),
    "from, of an unknown type": (
        Verb.RETRY,
        {"stage": "gone"},
        Filter(type="batsh"),
        UnknownType,
        "did you mean 'batch'",
    ),
    "into": (Verb.RETRY, {"queue": "urgnt"}, Filter(), UsageError, "did you mean 'urgent'"),
    "to": (Verb.MOVE, {"queue": "quite else"}, Filter(), UsageError, "use one of: default, narrow, urgent"),
    "nowhere": (Verb.MOVE, {}, Filter(), UsageError, "name the queue"),
    "priority": (Verb.PRIORITY, {"priority": 100}, Filter(), UsageError, "a whole number from 0"),
    "no priority": (Verb.PRIORITY, {}, Filter(), UsageError, "name the priority"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_with_the_nearest_that_can(full: Full, case: str) -> None:
    verb, order, which, error, sentence = REFUSED[case]

    with pytest.raises(error, match=sentence):
        full.bulk.plan(Order(verb=verb, **order), which)


def test_an_unknown_stage_is_answered_with_those_of_the_jobs_that_are_meant(site: Site, bulk: Bulk) -> None:
    (one,), (batch, _) = failed(site, 1), site.family("batch", n=1)
    of_one, of_batch = "type 'one' has work", "type 'batch' has expand, report"

    def answer(*ids: int) -> str:
        with pytest.raises(UsageError) as error:
            bulk.plan(Order(verb=Verb.RERUN, stage="gone"), ids=ids)
        return str(error.value).partition("; choose a stage: ")[2]

    assert (answer(one), answer(batch)) == (of_one, of_batch)
    assert answer(one, batch) in (f"{of_one}, {of_batch}", f"{of_batch}, {of_one}")


def test_the_top_of_a_tree_is_named_where_another_job_was(site: Site, bulk: Bulk) -> None:
    parent, born = site.family(n=1)

    with pytest.raises(
        UsageError, match=f"job {born[0]} is not at the top of its tree; that is job {parent}"
    ):
        bulk.plan(Order(verb=Verb.RETRY), Filter(root_id=born[0]))


@pytest.mark.parametrize(
    "which",
    [
        {"type": "patient"},
        {"queue": "narrow"},
        {"stage": "publish"},
        {"node": "elm"},
        {"submitter": "ben"},
    ],
    ids=str,
)
def test_names_that_are_there_may_find_nothing(full: Full, which: dict[str, Any]) -> None:

    assert full.bulk.plan(Order(verb=Verb.DELETE), Filter(**which, created_before_us=1)).jobs == 0


def test_a_queue_that_only_a_job_names_may_be_moved_to(site: Site, bulk: Bulk) -> None:
    site.submit_one(queue="wild", at_us=site.now + 10**9)
    job = site.submit_one()

    assert run(bulk, Verb.MOVE, job, queue="wild").touched == 1
    assert site.job(job).queue == "wild"


# --- canaries -------------------------------------------------------------------------------


class Workers:
    """What a node would do while the caller sleeps: ends what is pending, some of it badly."""

    def __init__(self, site: Site, failing: Callable[[int], bool], at_once: int = 10) -> None:
        self.site, self.failing, self.at_once = site, failing, at_once
        self.open_at_most = 0
        self.ran: list[int] = []

    def __call__(self, seconds: float) -> None:
        assert seconds == LOOK_S
        self.site.clock.forward(seconds)
        self.open_at_most = max(self.open_at_most, self.site.count(states=(State.PENDING,)).get("pending", 0))
        for lease in self.site.claim(slots=self.at_once):
            self.ran.append(lease.job_id)
            (self.site.fail if self.failing(lease.job_id) else self.site.pass_)(lease)


def trial(site: Site, workers: Workers, **canary: Any) -> Report:
    settings: dict[str, Any] = {"first": 20, "stop_at": 0.05} | canary
    return run(service(site, workers), Verb.RETRY, which=ALL_FAILED, canary=Canary(**settings))


def test_canaries_that_sing_let_all_the_others_follow(site: Site) -> None:
    ids = failed(site, 200)
    workers = Workers(site, lambda job: False)

    report = trial(site, workers)

    assert (report.touched, report.stopped) == (200, None)
    site.drain()
    assert site.count() == {"completed": len(ids)}


@pytest.mark.parametrize(
    ("bad", "stop_at", "stops"),
    [
        (0, 0.0, False),
        (1, 0.0, True),
        (1, 0.05, True),
        (1, 0.051, False),
        (3, 0.15, True),
        (3, 0.16, False),
        (20, 1.0, True),
        (19, 1.0, False),
    ],
)
def test_it_goes_on_only_while_the_share_of_failures_stays_below(
    site: Site, bad: int, stop_at: float, stops: bool
) -> None:
    ids = failed(site, 25)
    failing = set(ids[::-1][:bad])

    report = trial(site, Workers(site, failing.__contains__), stop_at=stop_at)

    assert (report.stopped is not None) == stops
    assert report.touched == (20 if stops else 25)
    if stops:
        assert report.stopped is not None
        assert f"{bad} of the first" in report.stopped


def test_what_fails_later_stops_it_too_with_no_more_open_than_came_to_rest(site: Site) -> None:
    ids = failed(site, 400)
    fine = set(ids[::-1][:60])
    workers = Workers(site, lambda job: job not in fine, at_once=64)

    report = trial(site, workers)

    assert report.stopped is not None
    assert 60 < report.touched < 200
    assert workers.open_at_most <= 80
    assert site.count()["failed"] >= 200


def test_the_first_are_no_more_than_asked_for_although_their_batch_has_many_more(site: Site) -> None:
    parent, born = site.family(n=100)
    site.drain(failing=set(born))
    workers = Workers(site, lambda job: True, at_once=64)

    bulk = service(site, workers)
    report = bulk.run(bulk.plan(Order(verb=Verb.RETRY), None, [parent]), canary=Canary(first=7, stop_at=0.5))

    assert report.touched == 7
    assert len(workers.ran) <= 7


def test_one_that_is_held_is_no_good_sign(site: Site) -> None:
    failed(site, 30)

    def work(seconds: float) -> None:
        for lease in site.claim(slots=5):
            site.record(lease, Outcome.HOLD)

    bulk = service(site, work)
    report = bulk.run(bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED), canary=Canary(first=5, stop_at=0.5))

    assert (report.touched, report.stopped is not None) == (5, True)


def test_patience_ends_a_trial_that_tells_nothing(site: Site) -> None:
    failed(site, 30)
    looks: list[float] = []

    def idle(seconds: float) -> None:
        looks.append(seconds)
        site.clock.forward(seconds)

    bulk = service(site, idle)
    plan = bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED)
    report = bulk.run(plan, canary=Canary(first=20, stop_at=0.5, patience_s=3))

    assert report.touched == 20
    assert report.stopped is not None
    assert "after 3 s 20 are still open" in report.stopped
    assert sum(looks) == pytest.approx(3, abs=LOOK_S)


def test_fewer_jobs_than_canaries_are_not_waited_for(site: Site) -> None:
    failed(site, 5)

    def never(seconds: float) -> None:
        raise AssertionError("there is nothing left that would have to wait")

    bulk = service(site, never)
    assert (
        bulk.run(bulk.plan(Order(verb=Verb.RETRY), ALL_FAILED), canary=Canary(first=5, stop_at=0.5)).touched
        == 5
    )


@pytest.mark.parametrize(
    "canary", [{"first": 0}, {"stop_at": 1.1}, {"stop_at": -0.1}, {"patience_s": 0.0}], ids=str
)
def test_a_canary_that_cannot_be_meant_is_refused(canary: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Canary(**{"first": 20, "stop_at": 0.05} | canary)


# --- rerun ----------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
def test_a_rerun_that_was_cut_off_goes_on_with_the_rest_when_it_is_given_the_time_of_its_plan(
    site: Site, bulk: Bulk, named: bool
) -> None:
    ids = site.submit(n=2 * STEP + 1)
    site.drain()
    site.clock.forward(1)
    order, which = Order(verb=Verb.RERUN), Filter(type="one")
    plan = bulk.plan(order, which, ids if named else ())
    assert plan.job_filter is not None
    with pytest.raises(CutOff):
        bulk.run(plan, on_step=cut_off)
    site.clock.forward(1)
    assert site.drain(), "nodes run what was opened meanwhile"

    rest = replace(which, settled_before_us=plan.job_filter.settled_before_us)
    report = bulk.run(bulk.plan(order, rest, ids if named else ()))

    assert 0 < report.touched < len(ids)
    site.drain()
    assert [attempts(site, job) for job in ids] == [2] * len(ids)


def test_of_two_reruns_at_once_each_job_is_in_one(site: Site, bulk: Bulk) -> None:
    ids = site.submit(n=3)
    site.drain()
    site.clock.forward(1)
    plans = [bulk.plan(Order(verb=Verb.RERUN), Filter(type="one")) for _ in range(2)]

    for plan in plans:
        site.clock.forward(1)
        bulk.run(plan)
        site.drain()

    assert [attempts(site, job) for job in ids] == [2, 2, 2]


# --- what finished after the first failure --------------------------------------------------


def serial_tree(site: Site, n: int, failing: int) -> tuple[int, list[int]]:
    """Subjobs that ran one after the other, a second each; one of them failed."""
    root, born = site.family("line", n=n)
    for at, job in enumerate(born):
        site.clock.forward(1)
        (site.fail if at == failing else site.pass_)(site.run(job))
    site.clock.forward(1)
    site.drain()
    return root, born


def test_what_finished_after_the_first_failure_runs_again_in_its_order(site: Site, bulk: Bulk) -> None:
    root, born = serial_tree(site, n=6, failing=2)
    assert site.state(root) is State.FAILED

    report = run(bulk, Verb.RETRY, born[2], and_after=True)

    assert (report.touched, report.refused) == (4, {})
    assert site.store.holds.all() == []
    assert [job for job, _ in site.drain() if job != root] == born[2:]
    assert [attempts(site, j) for j in born] == [1, 1, 2, 2, 2, 2]
    assert site.state(root) is State.COMPLETED


def test_by_a_filter_every_tree_has_its_own_first_failure(site: Site, bulk: Bulk) -> None:
    _, one = serial_tree(site, n=3, failing=0)
    _, two = serial_tree(site, n=3, failing=2)

    plan = bulk.plan(Order(verb=Verb.RETRY, and_after=True), ALL_FAILED)
    stages = bulk.plan(plan.order, ALL_FAILED, exact=True).stages or ()
    report = bulk.run(plan)

    assert {(c.type, c.stage): c.jobs for c in stages} == {("one", "work"): 4}
    assert plan.jobs == 6, "two that failed, two trees, two that finished later"
    assert (report.touched, report.refused) == (4, {})
    site.drain()
    assert [attempts(site, j) for j in (*one, *two)] == [2, 2, 2, 1, 1, 2]


@pytest.mark.parametrize("exact", [False, True])
def test_what_came_after_and_matches_itself_is_counted_once(site: Site, bulk: Bulk, *, exact: bool) -> None:
    root, born = serial_tree(site, n=4, failing=1)
    order = Order(verb=Verb.RERUN, and_after=True)
    of_type = Filter(type="one")

    matching = [
        bulk.plan(order, job_filter, ids, exact=exact).matching
        for job_filter, ids in (
            (of_type, ()),
            (Filter(root_id=root), ()),
            (None, born[1:3]),
            (of_type, born[2:3]),
        )
    ]

    # By filter the three that completed; by name one that failed and one of the two that completed after it.
    assert matching == [3, 3, 3, 2]


def test_a_rerun_with_what_came_after(site: Site, bulk: Bulk) -> None:
    _, born = serial_tree(site, n=4, failing=1)

    run(bulk, Verb.RERUN, born[1], and_after=True)

    site.drain()
    assert [attempts(site, j) for j in born] == [1, 2, 2, 2]


def test_where_nothing_came_after_only_the_failure_is_retried(site: Site, bulk: Bulk) -> None:
    (job,) = failed(site, 1)
    _, born = serial_tree(site, n=2, failing=1)

    report = run(bulk, Verb.RETRY, job, born[1], 10**9, and_after=True)

    assert (report.touched, list(report.refused)) == (2, [10**9])
    assert not [entry for entry, _ in site.store.audit.entries() if entry.verb == "hold"]


@pytest.mark.parametrize("by", ["number", "filter"])
@pytest.mark.parametrize("step", range(6))
def test_cut_off_anywhere_nothing_runs_before_its_turn_and_all_of_it_in_the_end(
    site: Site, monkeypatch: pytest.MonkeyPatch, by: str, step: int
) -> None:
    """The steps: the tree is held; what came after is opened; what failed is; the hold is lifted; what it kept goes
    on."""
    root, born = serial_tree(site, n=5, failing=1)
    other = failed(site, 1)[0]
    job_filter: dict[str, Any] = {"which": Filter(root_id=root)} if by == "filter" else {}
    ids = () if by == "filter" else (born[1],)
    changes = itertools.count()

    def cut(method: Any) -> Any:
        def changed(*args: Any, **kwargs: Any) -> Any:
            if next(changes) == step:
                raise CutOff
            return method(*args, **kwargs)

        return changed

    with monkeypatch.context() as patch:
        holds = site.store.holds
        for part, name in ((site.store.bulk, "apply"), (holds, "lay"), (holds, "lift"), (holds, "sweep")):
            patch.setattr(part, name, cut(getattr(part, name)))
        with pytest.raises(CutOff):
            run(service(site), Verb.RETRY, *ids, and_after=True, at_once=2, **job_filter)
    assert site.drain() == [], "nothing of the tree starts before all of it is open"

    again = run(service(site), Verb.RETRY, *ids, and_after=True, at_once=2, **job_filter)

    assert again.stopped is None
    assert site.store.holds.all() == []
    assert [job for job, _ in site.drain() if job != root] == born[1:]
    assert [attempts(site, j) for j in born] == [1, 2, 2, 2, 2]
    assert site.state(other) is State.FAILED


@pytest.mark.parametrize("by", ["number", "batch", "parent", "filter and number"])
def test_an_order_for_other_jobs_leaves_a_tree_to_the_order_that_was_cut_off_in_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    (first,) = failed(site, 1)
    one, born = serial_tree(site, n=3, failing=0)
    two, born_later = serial_tree(site, n=3, failing=0)

    def ask(root: int, failure: int) -> Report:
        which = {"batch": Filter(root_id=root), "parent": Filter(parent_id=root), "number": None}
        ids = (first, failure) if "number" in by else ()
        return run(service(site), Verb.RETRY, *ids, which=which.get(by, ALL_FAILED), and_after=True)

    with monkeypatch.context() as patch:
        patch.setattr(site.store.holds, "lift", cut_off)
        with pytest.raises(CutOff):
            ask(one, born[0])
    (left,) = site.store.holds.all()

    ask(two, born_later[0])

    assert list(site.store.holds.all()) == [left]
    assert [job for job, _ in site.drain() if job not in (first, two)] == born_later
    ask(one, born[0])
    assert list(site.store.holds.all()) == []
    assert [job for job, _ in site.drain() if job not in (first, one)] == born


def test_a_tree_whose_hold_was_lifted_is_held_anew_where_there_is_more_to_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, born = site.family("parent", n=3)
    leases = [site.run(job) for job in born]
    site.fail(leases[0])
    site.clock.forward(1)
    site.pass_(*leases[1:])
    holds = site.store.holds
    with monkeypatch.context() as patch:
        patch.setattr(holds, "sweep", cut_off)
        with pytest.raises(CutOff):
            run(service(site), Verb.RETRY, which=Filter(root_id=root), and_after=True)
    assert len(holds.lifted()) == 1
    holds.sweep(now_us=site.now, limit=1)
    site.fail(*(site.run(job) for job in born[:1]))
    site.clock.forward(1)
    holds.sweep(now_us=site.now, limit=1)
    site.pass_(site.run(born[1]))
    assert len(holds.lifted()) == 1
    apply = site.store.bulk.apply
    held_by = []

    def watched(*args: Any, **kwargs: Any) -> BulkStep:
        held_by.extend(hold.name for hold in holds.all())
        return apply(*args, **kwargs)

    monkeypatch.setattr(site.store.bulk, "apply", watched)
    run(service(site), Verb.RETRY, which=Filter(root_id=root), and_after=True)

    assert set(held_by) == {str(root)}
    assert list(holds.all()) == []


def test_a_hold_that_somebody_releases_meanwhile_does_not_end_the_run(site: Site, bulk: Bulk) -> None:
    _, one = serial_tree(site, n=3, failing=0)
    _, two = serial_tree(site, n=3, failing=0)
    holds = site.store.holds

    def release_all(report: Report, step: BulkStep) -> None:
        for hold in holds.all():
            holds.lift(hold.id, bulk.actor(), now_us=site.now)
        while holds.sweep(now_us=site.now):
            pass

    plan = bulk.plan(Order(verb=Verb.RETRY, and_after=True), ALL_FAILED)
    report = bulk.run(plan, on_step=release_all)

    assert (report.touched, report.refused) == (6, {})
    site.drain()
    assert [attempts(site, job) for job in (*one, *two)] == [2] * 6


def test_a_tree_other_than_the_one_asked_for_is_not_visited_whatever_hold_lies_on_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, born = serial_tree(site, n=3, failing=0)
    two, _ = serial_tree(site, n=3, failing=0)
    with monkeypatch.context() as patch:
        patch.setattr(site.store.holds, "lift", cut_off)
        with pytest.raises(CutOff):
            run(service(site), Verb.RETRY, which=Filter(root_id=two), and_after=True)
    (left,) = site.store.holds.all()
    site.store.holds.lay(
        Scope.TREE, str(site.job(born[0]).root_id), left.reason, service(site).actor(), now_us=site.now
    )

    run(service(site), Verb.RETRY, which=Filter(root_id=two), and_after=True)

    assert [site.state(job) for job in born] == [State.FAILED, State.COMPLETED, State.COMPLETED]


def test_a_hold_that_somebody_laid_on_the_tree_is_left_alone(site: Site, bulk: Bulk) -> None:
    root, born = serial_tree(site, n=3, failing=0)
    mine = site.store.holds.lay(Scope.TREE, str(root), "look first", bulk.actor(), now_us=site.now)

    run(bulk, Verb.RETRY, born[0], and_after=True)

    assert list(site.store.holds.all()) == [mine]
    assert site.drain() == []


def test_a_canary_is_not_for_what_came_after(site: Site, bulk: Bulk) -> None:
    plan = Plan(order=Order(verb=Verb.RETRY, and_after=True), job_filter=ALL_FAILED)
    with pytest.raises(UsageError):
        bulk.run(plan, canary=Canary(first=1, stop_at=0.5))
    with pytest.raises(UsageError):
        bulk.run(
            Plan(order=Order(verb=Verb.DELETE), job_filter=ALL_FAILED), canary=Canary(first=1, stop_at=0.5)
        )


def test_stage_counts_are_told_by_type(site: Site, bulk: Bulk) -> None:
    (job,) = failed(site, 1)

    plan = bulk.plan(Order(verb=Verb.RETRY), None, [job, 10**9], exact=True)

    assert (plan.jobs, plan.ids) == (1, (job, 10**9))
    assert plan.stages == [StageCount(type="one", stage="work", jobs=1)]


# --- holds on single jobs -------------------------------------------------------------------


def test_a_release_by_the_filter_of_a_hold_takes_it_off_what_was_not_held_yet(site: Site, bulk: Bulk) -> None:
    later, runs = site.submit_one(at_us=site.now + 5_000_000), site.submit_one("three")
    needs, plain = site.submit_one(needs=(runs,)), site.submit_one(at_us=site.now + 5_000_000, queue="urgent")
    lease = site.claim_one()
    pending = site.submit_one()
    run(bulk, Verb.HOLD, which=Filter(queue="default"), reason="look")
    run(bulk, Verb.HOLD, plain, reason="of somebody else")
    assert len(site.store.holds.all()) == 5

    report = run(bulk, Verb.RELEASE, which=Filter(queue="default"))

    assert (report.touched, report.refused) == (4, {})
    assert [hold.name for hold in site.store.holds.all()] == [str(plain)]
    site.pass_(lease)
    site.later(6)
    assert site.states([later, runs, pending]) == [State.PENDING] * 3
    assert site.state(plain) is State.HELD
    assert site.state(needs) is State.WAITING


def test_a_release_by_filter_leaves_what_no_hold_lies_on(site: Site, bulk: Bulk) -> None:
    site.submit(n=2, at_us=site.now + 5_000_000)
    site.submit()

    assert bulk.plan(Order(verb=Verb.RELEASE), Filter(type="one")).jobs == 0


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({}, "cannot be a reason"),
        ({"reason": "two\nlines"}, "cannot be a reason"),
        ({"reason": "x" * 501}, "cannot be a reason"),
        ({"reason": "x", "until_us": 1}, "before it begins"),
        ({"reason": "x", "until_us": 2**62}, "after the year 9999"),
    ],
)
def test_a_hold_on_single_jobs_that_cannot_be_meant_is_refused(
    site: Site, bulk: Bulk, how: dict[str, Any], says: str
) -> None:
    job = site.submit_one()

    for words in ({"ids": [job]}, {"job_filter": Filter()}):
        with pytest.raises(UsageError, match=says):
            bulk.plan(Order(verb=Verb.HOLD, **how), **words)
