"""Bulk verbs, a step at a time: who is touched, who is refused and why, and that nothing is half-done."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import job_verbs
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import DEFAULT_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import SETTLED, State
from spinney.store.parts import Store

from .everything import STANDS, TYPES, Everything, fill
from .words import TENACIOUS, Clock, Site, kind, stage

ANN = Actor(by="ann", call="call-1", reason="after the outage")
PARTICULARS: dict[Verb, dict[str, Any]] = {
    Verb.HOLD: {"reason": "look first"},
    Verb.MOVE: {"queue": "urgent"},
    Verb.PRIORITY: {"priority": 7},
}


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a test is one step, however busy the machine is; tests/store/test_bulk_steps.py has the bound."""
    monkeypatch.setattr("spinney.features.bulk.verb_step.ENOUGH_S", 60)


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    """One that ``fill`` makes all types known to."""
    return Site(store, clock)


@pytest.fixture
def made(site: Site) -> Everything:
    return fill(site)


def apply(site: Site, verb: Verb, *job_ids: int, which: Filter | None = None, **order: Any) -> BulkStep:
    bulk_order = Order(verb=verb, **PARTICULARS.get(verb, {}) | order)
    return site.store.bulk.apply(bulk_order, job_ids, ANN, job_filter=which, now_us=site.now)


def everything_else(site: Site, but: set[int]) -> dict[int, Any]:
    """How all other jobs stand, in every respect that a verb could change."""
    return {j.id: j for j in site.store.jobs(Filter(), limit=10_000) if j.id not in but}


# --- each verb, on every state (each alone: tests/store/test_bulk_steps.py) ------------------

LAWFUL: dict[Verb, set[str]] = {
    Verb.RETRY: {n for n, s in STANDS.items() if s in (State.FAILED, State.ORPHANED, State.CANCELLED)}
    - {"failed for a need"}
    | {"waiting batch"},
    Verb.RERUN: {n for n, s in STANDS.items() if s in SETTLED and s is not State.DELETED}
    - {"failed for a need"},
    Verb.RUN_NOW: {n for n, s in STANDS.items() if s is State.SCHEDULED},
    Verb.CANCEL: {n for n, s in STANDS.items() if s not in SETTLED} - {"waiting batch", "serial root"},
    Verb.HOLD: {n for n, s in STANDS.items() if s not in SETTLED},
    Verb.RELEASE: {n for n, s in STANDS.items() if s is State.HELD},
    Verb.DELETE: {n for n, s in STANDS.items() if s in SETTLED or s is State.HELD} - {"deleted"},
    Verb.MOVE: {n for n, s in STANDS.items() if s not in SETTLED},
    Verb.PRIORITY: {n for n, s in STANDS.items() if s not in SETTLED},
}
"""Jobs of ``STANDS`` that each verb can be done to."""


@pytest.mark.parametrize("verb", Verb)
def test_those_that_cannot_are_named_and_the_others_go_through(
    site: Site, made: Everything, verb: Verb
) -> None:
    usual = made.standing(*DEFAULT_STATES[verb])
    unusual = made.standing(State.DELETED)
    alone = [j for j in usual if site.job(j).parent_id is None and made.name(j) in LAWFUL[verb]][:3]

    step = apply(site, verb, *alone, *unusual, 10**9)

    assert set(alone) <= {*step.touched, *step.instead}
    assert set(step.refused) == {*unusual, 10**9}
    assert "there is no job 1000000000" in step.refused[10**9]


def test_a_refused_job_leaves_nothing_behind(site: Site, made: Everything) -> None:
    """Its retry gets as far as opening it before the job that it needs stops it."""
    job = made["failed for a need"]
    before, history = site.job(job), list(site.store.attempts(job))

    step = apply(site, Verb.RETRY, job, made["failed late"], queue="urgent")

    need = made["failed"]
    assert step.refused == {
        job: f"job {job} would fail again at once, since job {need}, which it needs, failed; retry that one first"
    }
    assert step.touched == [made["failed late"]]
    assert (site.job(job), list(site.store.attempts(job))) == (before, history)


def test_a_job_whose_need_was_deleted_is_not_said_to_go_on_after_a_retry_of_that(site: Site) -> None:
    site.knows(*TYPES)
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.fail(site.run(need))
    site.delete(need)

    step = apply(site, Verb.RETRY, job)

    assert step.refused[job].endswith(
        f"since job {need}, which it needs, was deleted; submit a new job in place of both"
    )


def test_a_lane_that_a_refused_job_made_is_forgotten_with_it(site: Site, made: Everything) -> None:
    """It is the first that would go into this queue; another goes there afterwards."""
    site.knows(queues=[QueueSpec(name="fresh")])
    key = made["failed keyed"]
    assert site.submit("one", keys=("once",))

    step = apply(site, Verb.RETRY, made["failed for a need"], key, made["failed late"], queue="fresh")

    assert set(step.refused) == {made["failed for a need"], key}
    assert "the key 'once' is taken" in step.refused[key]
    assert site.job(made["failed late"]).queue == "fresh"
    assert made["failed late"] in site.claim_by_job()


def test_a_step_is_one_entry_in_the_audit(site: Site, made: Everything) -> None:
    before = len(site.store.audit.entries())
    which = Filter(states=(State.FAILED,), collection="beta")

    step = apply(
        site, Verb.RETRY, made["failed late"], made["deleted"], which=which, stage="third", queue="urgent"
    )

    ((entry, _),) = site.store.audit.entries()[before:]
    assert (entry.by, entry.verb, entry.count, entry.reason, entry.call) == (
        "ann",
        "retry",
        1,
        "after the outage",
        "call-1",
    )
    assert json.loads(entry.what) == {
        "jobs": step.touched,
        "stage": "third",
        "queue": "urgent",
        "which": {"states": ["failed"], "collection": "beta"},
    }
    site.store.audit.verify()


def test_a_step_that_touched_nothing_is_no_entry(site: Site, made: Everything) -> None:
    head = site.store.audit.head()

    apply(site, Verb.RETRY, made["completed"])

    assert site.store.audit.head() == head


def test_what_a_filter_found_and_fits_no_more_is_passed_over(site: Site, made: Everything) -> None:
    failed = made["failed"]
    site.retry(failed)

    step = apply(site, Verb.RETRY, failed, which=Filter(states=(State.FAILED,)))

    assert (step.touched, step.refused, step.skipped) == ([], {}, [failed])


# --- retry, rerun ---------------------------------------------------------------------------


def test_one_that_failed_because_of_its_children_names_them_to_be_retried_in_its_place(
    site: Site, made: Everything
) -> None:
    batch = made["bad batch"]

    step = apply(site, Verb.RETRY, batch)

    assert (step.touched, step.refused, step.instead) == ([], {}, [batch])
    below = [made["bad batch failed"], made["bad batch failed too"]]
    assert site.store.bulk.failed_children(batch) == below, "what somebody cancelled stays cancelled"
    assert site.store.bulk.failed_children(batch, after=below[0]) == below[1:]
    assert site.store.bulk.failed_children(made["deep root"]) == [made["deep branch"]]
    assert site.store.bulk.failed_children(made["failed"]) == []


def test_what_its_child_reopened_in_the_same_step_is_not_retried(site: Site, made: Everything) -> None:
    step = apply(site, Verb.RETRY, made["deep leaf"], made["deep branch"], made["deep root"])

    assert step.touched == [made["deep leaf"]]
    assert set(step.reopened) == {made["deep branch"], made["deep root"]}
    assert (step.refused, step.instead, step.skipped) == ({}, [], [])


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.RERUN])
def test_what_counts_no_more_is_left_alone_unless_it_is_named(
    site: Site, made: Everything, verb: Verb
) -> None:
    job = made["superseded failed"]

    outcome = apply(site, verb, job, which=Filter())
    named = apply(site, verb, job)

    assert (outcome.touched, outcome.skipped) == ([], [job])
    assert named.touched == [job]


def test_what_lies_below_one_that_counts_no_more_is_left_alone(site: Site, made: Everything) -> None:
    site.rerun(made["deep root"])

    step = apply(site, Verb.RETRY, made["deep leaf"], which=Filter())

    assert step.skipped == [made["deep leaf"]]


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.RERUN])
def test_into_another_queue_goes_what_is_opened_with_all_that_it_runs_and_bears(
    site: Site, verb: Verb
) -> None:
    site.knows(*TYPES, queues=[QueueSpec(name="urgent")])
    job = site.submit_one("layered")
    site.fail(site.run(job))

    apply(site, verb, job, queue="urgent")

    assert site.job(job).queue == "urgent"
    lease = site.run(job)
    (child,) = site.spawn(lease, "one")
    site.pass_(lease)
    assert site.job(child).queue == "urgent"
    site.pass_(site.run(child))
    assert (site.job(job).stage, site.job(job).queue) == ("merge", "urgent")


def test_a_rerun_from_a_stage_supersedes_it_and_all_behind(site: Site, made: Everything) -> None:
    job = made["completed three"]

    apply(site, Verb.RERUN, job, stage="second")

    assert (site.state(job), site.job(job).stage) == (State.PENDING, "second")


def test_a_stage_that_its_type_has_not_is_refused(site: Site, made: Everything) -> None:
    step = apply(site, Verb.RERUN, made["completed"], made["completed three"], stage="second")

    assert step.touched == [made["completed three"]]
    assert "has no stage 'second'" in step.refused[made["completed"]]


# --- previews -------------------------------------------------------------------------------

PREVIEWED: dict[str, tuple[Verb, str | None]] = {
    "failed": (Verb.RETRY, None),
    "failed late": (Verb.RETRY, None),
    "orphaned": (Verb.RETRY, None),
    "cancelled": (Verb.RETRY, None),
    "deep leaf": (Verb.RETRY, None),
    "deep root": (Verb.RETRY, None),
    "bad batch": (Verb.RETRY, None),
    "bad batch failed": (Verb.RETRY, None),
    "done child": (Verb.RERUN, None),
    "completed three": (Verb.RERUN, "second"),
    "completed": (Verb.RERUN, None),
    "done batch": (Verb.RERUN, "report"),
    "superseded failed": (Verb.RETRY, None),
    "bad batch ok": (Verb.RERUN, None),
}


@pytest.mark.parametrize("name", PREVIEWED)
def test_a_preview_tells_what_then_runs(site: Site, made: Everything, name: str) -> None:
    """With everything that fails elsewhere mended, so that nothing stops what goes on."""
    for other in ("cancelling", "spawning", "running", "claimed", "lock owner", "serial first"):
        site.record(made.leases[other], Outcome.HOLD)
    site.drain()
    verb, stage = PREVIEWED[name]
    order = Order(verb=verb, stage=stage)
    before = {job_id: len(site.store.attempts(job_id)) for job_id in made.jobs.values()}

    preview = job_verbs.preview(site.store, order, [made[name]], now_us=site.now)
    todo = [made[name]]
    while todo:
        step = site.store.bulk.apply(order, todo, ANN, now_us=site.now)
        todo = [child for job in step.instead for child in site.store.bulk.failed_children(job)]
    site.drain()

    ran = {job_id: [a.stage for a in site.store.attempts(job_id)[n:]] for job_id, n in before.items()}
    assert {made.name(j): list(stages) for j, (_, stages) in preview.items() if stages} == {
        made.name(j): stages for j, stages in ran.items() if stages
    }
    assert preview
    assert all(site.job(j).type == type_ for j, (type_, _) in preview.items())


def test_a_retry_of_a_tree_that_was_cancelled_opens_all_of_it_and_its_preview_knows(site: Site) -> None:
    site.knows(*TYPES)
    top = site.run(site.submit_one("parent"))
    (middle,) = site.spawn(top, "parent")
    site.pass_(top)
    leaves = site.spawn(lease := site.run(middle), n=2)
    site.pass_(lease)
    site.cancel(top.job_id, tree=True)
    order = Order(verb=Verb.RETRY)

    preview = job_verbs.preview(site.store, order, [top.job_id], now_us=site.now)
    changed = job_verbs.carry_out(site.store, order, top.job_id, by="ann", now_us=site.now)

    assert (changed.ids, changed.reopened) == (leaves, [middle, top.job_id])
    ran = site.drain()
    assert ran == [(job, "work") for job in leaves] + [(middle, "merge"), (top.job_id, "merge")]
    assert sorted((job, stage) for job, (_, stages) in preview.items() for stage in stages) == sorted(ran)


def _a_batch_without_a_report(site: Site) -> tuple[int, list[int]]:
    """One that was cancelled with a child of it, when another child had failed."""
    site.knows(kind("short", "expand", children="settled"))
    top, (failing, _) = site.family("short", n=2)
    site.fail(site.run(failing))
    site.cancel(top, tree=True)
    return top, [failing]


def _a_parent_that_failed_by_itself(site: Site) -> tuple[int, list[int]]:
    """One of which a child failed only later, when it ran once more."""
    top, (child, _) = site.family(n=2)
    site.drain(failing={top})
    site.rerun(child)
    site.drain(failing={child})
    return top, [child]


@pytest.mark.parametrize(
    "made_of",
    [_a_batch_without_a_report, _a_parent_that_failed_by_itself],
)
def test_children_that_keep_a_retried_job_from_going_on_are_retried_and_its_preview_knows(
    site: Site, made_of: Callable[[Site], tuple[int, list[int]]]
) -> None:
    site.knows(*TYPES)
    top, children = made_of(site)
    order = Order(verb=Verb.RETRY)

    preview = job_verbs.preview(site.store, order, [top], now_us=site.now)
    changed = job_verbs.carry_out(site.store, order, top, by="ann", now_us=site.now)

    assert (changed.ids, changed.reopened) == (children, [top])
    before = len(site.store.attempts(top))
    site.drain()
    assert site.state(top) is State.COMPLETED
    assert preview.keys() == {top, *children}
    assert list(preview[top][1]) == site.stages_run(top)[before:]


def test_nobody_is_told_that_a_tree_failed_whose_cancelled_jobs_are_retried(site: Site) -> None:
    site.knows(*TYPES)
    site.store.webhooks.add(Webhook(name="all", url="https://example.org/"), "s", ANN, now_us=site.now)
    top, (middle,) = site.family(n=1, child="parent")
    (needy,) = site.submit(needs=(top,))
    lease = site.run(middle)
    leaves = site.spawn(lease, n=2)
    site.pass_(lease)
    site.cancel(top, tree=True)
    before = len(site.store.webhooks.deliveries("all"))

    site.retry(top)

    assert len(site.store.webhooks.deliveries("all")) == before
    site.drain()
    assert site.states([top, middle, *leaves, needy]) == [State.COMPLETED] * 5


def test_a_cancelled_job_whose_children_keep_it_from_a_stage_is_refused_with_what_opens_it(
    site: Site,
) -> None:
    site.knows(*TYPES)
    top, (first, second) = site.family(n=2)
    site.cancel(top, tree=True)

    step = apply(site, Verb.RETRY, top, stage="merge")

    assert step.refused == {
        top: f"job {top} would fail again at once, since its subjob {first} was cancelled; retry it without a stage "
        "first, which retries its subjobs"
    }
    site.retry(top)
    assert site.states([top, first, second]) == [State.WAITING, State.PENDING, State.PENDING]


def test_children_of_the_stage_that_runs_again_are_left_and_its_preview_knows(site: Site) -> None:
    # Given a job that was cancelled in the stage that had spawned a child by its key
    site.knows(*TYPES)
    lease = site.run(top := site.submit_one("parent"))
    (child,) = site.spawn(lease, keys=("a",))
    site.cancel(top, tree=True)
    site.record(lease, Outcome.CANCELLED)
    site.sweep()
    order = Order(verb=Verb.RETRY)

    assert job_verbs.preview(site.store, order, [top], now_us=site.now).keys() == {top}
    assert job_verbs.carry_out(site.store, order, top, by="ann", now_us=site.now).ids == [top]
    assert site.states([top, child]) == [State.PENDING, State.CANCELLED]


def test_a_retry_of_a_batch_leaves_failed_children_of_it_that_do_not_keep_it(site: Site) -> None:
    site.knows(*TYPES)
    top, (failing, again) = site.family("batch", n=2)
    site.fail(site.run(failing))
    site.drain(failing={top})
    site.rerun(again)
    assert (site.state(top), site.state(again)) == (State.FAILED, State.PENDING)

    step = apply(site, Verb.RETRY, top)

    assert (step.touched, step.instead, site.state(top)) == ([top], [], State.WAITING)


@pytest.mark.parametrize(
    ("verb", "stage"), [(Verb.RERUN, "publish"), (Verb.RERUN, "expand"), (Verb.RETRY, None)]
)
def test_a_preview_knows_what_a_finish_left_out(site: Site, verb: Verb, stage: str | None) -> None:
    site.knows(*TYPES)
    job = site.submit_one("layered")
    lease = site.run(job)
    site.spawn(lease)
    site.record(lease, Outcome.FINISH)
    if verb is Verb.RETRY:
        site.cancel(job, tree=True)
    site.drain()
    order, before = Order(verb=verb, stage=stage), len(site.store.attempts(job))

    preview = job_verbs.preview(site.store, order, [job], now_us=site.now)
    job_verbs.carry_out(site.store, order, job, by="ann", now_us=site.now)
    site.drain()

    assert list(preview[job][1]) == site.stages_run(job)[before:]


def test_a_preview_leaves_out_what_would_be_refused(site: Site, made: Everything) -> None:
    for verb, name, from_ in (
        (Verb.RETRY, "completed", None),
        (Verb.RETRY, "running", None),
        (Verb.RERUN, "pending", None),
        (Verb.RERUN, "deleted", None),
        (Verb.RERUN, "completed", "second"),
        (Verb.RETRY, "failed late", "nothing"),
    ):
        assert (
            job_verbs.preview(site.store, Order(verb=verb, stage=from_), [made[name], 10**9], now_us=site.now)
            == {}
        ), name


def test_a_preview_changes_nothing(site: Site, made: Everything) -> None:
    before = everything_else(site, set())

    job_verbs.preview(site.store, Order(verb=Verb.RERUN), made.standing(*SETTLED), now_us=site.now)

    assert everything_else(site, set()) == before


# --- cancel ---------------------------------------------------------------------------------


def test_a_parent_that_a_filter_found_is_cancelled_when_its_children_have_settled(site: Site) -> None:
    site.knows(*TYPES)
    parent, born = site.family(n=2)
    running = site.run(born[0])
    which = Filter(states=DEFAULT_STATES[Verb.CANCEL])

    step = apply(site, Verb.CANCEL, parent, *born, which=which, reason="wrong list")

    assert step.refused == {}
    assert sorted(step.touched) == [parent, *born]
    assert site.states([parent, *born]) == [State.WAITING, State.RUNNING, State.CANCELLED]
    assert site.job(parent).cancelling
    site.record(running, Outcome.CANCELLED)
    assert site.states([parent, *born]) == [State.CANCELLED] * 3
    assert "wrong list" in (site.job(parent).message or "")


def test_who_is_to_be_cancelled_already_is_passed_over(site: Site, made: Everything) -> None:
    job = made["cancelling"]

    assert apply(site, Verb.CANCEL, job, which=Filter()).skipped == [job]
    assert apply(site, Verb.CANCEL, job).touched == [job]


def test_a_tree_is_cancelled_with_all_below(site: Site, made: Everything) -> None:
    batch = made["waiting batch"]

    step = apply(site, Verb.CANCEL, batch, tree=True)

    assert set(step.touched) == {batch, made["waiting batch held"]}
    assert site.states(step.touched) == [State.CANCELLED] * 2
    assert site.retry(batch).ids, "no wish is left on it"


def test_of_a_wide_tree_housekeeping_cancels_the_rest(site: Site) -> None:
    site.knows(*TYPES)
    parent, _ = site.family(n=1_250)

    step = apply(site, Verb.CANCEL, parent, tree=True)
    left = site.count(states=(State.PENDING,), root_id=parent)["pending"]
    site.sweep()

    assert (len(step.touched) + left, step.unfinished) == (1_250, [parent])
    assert 0 < left < 1_250
    assert site.count(root_id=parent) == {"cancelled": 1_251}


# --- delete ---------------------------------------------------------------------------------


def test_a_wide_tree_is_deleted_in_several_steps(site: Site) -> None:
    site.knows(*TYPES)
    parent, born = site.family("batch", n=230)
    site.drain()
    gone: list[int] = []

    todo, steps = [parent], 0
    while todo:
        step = apply(site, Verb.DELETE, *todo)
        gone += step.touched
        todo, steps = list(step.unfinished), steps + 1

    assert sorted(gone) == [parent, *born]
    assert gone[-1] == parent
    assert steps == 3
    assert site.count() == {"deleted": 231}


# --- hold, release --------------------------------------------------------------------------


def test_each_job_gets_a_hold_of_its_own_and_loses_it(site: Site, made: Everything) -> None:
    jobs = [made["pending"], made["pending narrow"], made["resting"], made["running"]]

    step = apply(site, Verb.HOLD, *jobs, reason="the archive moves", until_us=site.now + 10**9)

    assert step.touched == jobs
    assert site.states(jobs) == [State.HELD, State.HELD, State.SCHEDULED, State.RUNNING]
    for job in jobs:
        (hold,) = site.store.holds.covering(job)
        assert (hold.reason, hold.by, hold.until_us) == ("the archive moves", "ann", site.now + 10**9)
    again = apply(
        site, Verb.HOLD, *jobs, which=Filter(), reason="the archive moves", until_us=site.now + 10**9
    )
    assert (again.touched, again.skipped) == ([], jobs)
    assert apply(site, Verb.RELEASE, *jobs[:2]).touched == jobs[:2]
    assert site.states(jobs[:2]) == [State.PENDING, State.PENDING]
    assert site.store.holds.covering(jobs[0]) == []


# --- move, priority -------------------------------------------------------------------------


def test_a_pending_job_is_claimed_from_the_queue_that_it_was_moved_to(site: Site, made: Everything) -> None:
    site.knows(queues=[QueueSpec(name="shut", limit=0)])
    first, second = site.submit("tenacious", n=2)

    apply(site, Verb.MOVE, first, queue="shut")

    lanes = {("tenacious", "work")}
    assert (site.job(first).queue, site.ids(queue="shut")) == ("shut", [first])
    assert [lease.job_id for lease in site.claim(lanes=lanes)] == [second]
    apply(site, Verb.MOVE, first, queue="urgent")
    assert [lease.job_id for lease in site.claim(lanes=lanes)] == [first]


@pytest.mark.parametrize("of", ["default", "fifo", "lifo"])
def test_a_move_between_orders_of_queues_keeps_one_place_in_line(site: Site, of: str) -> None:
    site.knows(*TYPES, queues=[QueueSpec(name="other", order=of)])
    ids = site.submit(n=3)

    apply(site, Verb.MOVE, *ids, queue="other")
    apply(site, Verb.MOVE, *ids, queue="other")

    claimed = [lease.job_id for lease in site.claim()]
    assert claimed == (ids[::-1] if of == "lifo" else ids)
    assert site.claim() == []


def test_what_runs_is_moved_with_its_next_stage(site: Site, made: Everything) -> None:
    job = made["running"]

    apply(site, Verb.MOVE, job, queue="narrow")

    assert (site.state(job), site.job(job).queue) == (State.RUNNING, "urgent"), "where its lease is"
    site.pass_(made.leases["running"])
    assert (site.job(job).stage, site.job(job).queue) == ("second", "narrow")


def test_what_is_handed_back_unrun_is_moved_too(site: Site, made: Everything) -> None:
    job = made["claimed"]

    apply(site, Verb.MOVE, job, queue="urgent")
    site.record(made.leases["claimed"], Outcome.RETURNED, started_us=0)

    assert (site.state(job), site.job(job).queue) == (State.PENDING, "urgent")
    assert [lease.job_id for lease in site.claim(lanes={("one", "work")})].count(job) == 1


def test_a_move_stays_for_later_stages_over_the_queue_that_they_name(site: Site) -> None:
    site.knows(kind("staged", "a", stage("b", queue="narrow")), queues=[QueueSpec(name="urgent")])
    job = site.submit_one("staged")

    apply(site, Verb.MOVE, job, queue="urgent")
    site.pass_(site.run(job))

    assert (site.job(job).stage, site.job(job).queue) == ("b", "urgent")


@pytest.mark.parametrize(
    "name", [n for n, s in STANDS.items() if s in (State.SCHEDULED, State.HELD, State.WAITING)]
)
def test_what_stands_aside_keeps_its_place_and_goes_on_in_the_other_queue(
    site: Site, made: Everything, name: str
) -> None:
    before = site.job(made[name])

    apply(site, Verb.MOVE, made[name], queue="urgent")
    apply(site, Verb.PRIORITY, made[name], priority=3)

    after = site.job(made[name])
    assert (after.state, after.waits_for, after.message, after.wake_us) == (
        before.state,
        before.waits_for,
        before.message,
        before.wake_us,
    )
    assert (after.queue, after.priority) == ("urgent", 3)


def test_a_job_is_moved_out_of_a_queue_that_is_held_and_into_one(site: Site) -> None:
    site.knows(*TYPES, queues=[QueueSpec(name="a"), QueueSpec(name="b")])
    job = site.submit_one(queue="a")
    hold = site.store.holds.lay(Scope.QUEUE, "a", "full", ANN, now_us=site.now)
    while site.store.holds.sweep(now_us=site.now):
        pass
    assert site.state(job) is State.HELD

    apply(site, Verb.MOVE, job, queue="b")
    assert site.state(job) is State.PENDING
    apply(site, Verb.MOVE, job, queue="a")
    assert (site.state(job), site.job(job).message) == (State.HELD, str(hold))


def test_a_scheduled_job_runs_now(site: Site, made: Everything) -> None:
    job = made["scheduled"]

    step = apply(site, Verb.RUN_NOW, job, made["pending"])

    assert list(step.touched) == [job]
    assert step.refused[made["pending"]].startswith(
        f"job {made['pending']} is pending, not scheduled for later"
    )
    assert (site.state(job), site.job(job).wake_us) == (State.PENDING, None)
    assert job in site.claim_by_job()


def test_an_attempt_that_runs_now_keeps_the_number_of_those_before(site: Site) -> None:
    site.knows(TENACIOUS)
    job = site.submit_one("tenacious")
    site.fail(site.run(job), retryable=True)
    assert site.state(job) is State.SCHEDULED

    apply(site, Verb.RUN_NOW, job)

    assert site.run(job).attempt == 2


def test_a_job_that_runs_now_still_waits_for_what_it_needs(site: Site) -> None:
    site.knows(*TYPES)
    need = site.submit_one()
    job = site.submit_one(needs=(need,), at_us=site.now + 10**9)

    apply(site, Verb.RUN_NOW, job)
    assert (site.state(job), site.job(job).waits_for) == (State.WAITING, "needs")
    site.pass_(site.run(need))

    assert site.state(job) is State.PENDING


def test_a_more_urgent_job_is_claimed_first(site: Site) -> None:
    site.knows(*TYPES)
    ids = site.submit(n=3)

    apply(site, Verb.PRIORITY, ids[2], priority=0)

    assert [site.claim_one().job_id for _ in ids] == [ids[2], ids[0], ids[1]]


def test_whoever_waits_for_a_lock_gets_it_by_the_new_priority(site: Site) -> None:
    site.knows(*TYPES)
    owner, first, second = (site.submit_one("locked", {"serno": "1"}) for _ in range(3))
    lease = site.run(owner)
    assert site.claim() == []

    apply(site, Verb.PRIORITY, second, priority=1)
    site.pass_(lease)

    assert site.claim_one().job_id == second
    assert site.state(first) is State.WAITING


def test_a_trial_sees_what_it_does_and_leaves_nothing(site: Site) -> None:
    site.knows(kind("one", "work"))
    job = site.submit_one()
    entries = len(site.store.audit.entries())
    bulk, seconds = site.store.bulk, [0.0]
    bulk._clock = lambda: seconds[0]

    def cancel() -> BulkStep:
        return bulk.apply(Order(verb=Verb.CANCEL), [job], Actor(by="ann", call="trial"), now_us=site.now)

    with bulk.trial() as let_others:
        assert list(cancel().touched) == [job]
        let_others()
        assert site.state(job) is State.CANCELLED
        seconds[0] = 1.0
        let_others()
        assert site.state(job) is State.PENDING, "others have waited for long enough"
        assert list(cancel().touched) == [job]

    assert site.state(job) is State.PENDING
    assert len(site.store.audit.entries()) == entries
    assert site.claim_one().job_id == job
