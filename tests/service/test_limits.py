"""What limits mean beyond the table of who may what: what is filled in, trees that reach further, plans that are
forged, and sentences that tell nothing of what is out of sight."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from contract.words import BATCH, ONE, PARENT, THREE, Clock, Site, kind, locked, stage
from new_store import new_store
from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.bulk.commands import RunBulk
from spinney.features.bulk.service import Bulk
from spinney.features.explain.service import Explainer
from spinney.features.holds.commands import LayHold, LiftHold, sweep_holds
from spinney.features.jobs.commands import CancelJob, DeleteJob, ReleaseJob, RerunJob, RetryJob
from spinney.features.locks.commands import FreeLock, SetCapacity
from spinney.features.locks.sql import SqlLocks
from spinney.features.queues.commands import ChangeQueue
from spinney.features.schedules.commands import PauseSchedule, PutSchedule, RunSchedule
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import (
    BadParameters,
    DuplicateKey,
    Forbidden,
    NoSuchJob,
    Refused,
    SpinneyError,
    UsageError,
)
from spinney.model.jobs import Filter, Job
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import Plan
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.schemas import BulkProgress
from spinney.service.queries import Queries
from spinney.service.visibility import Visibility
from spinney.store.sql import open_store
from spinney.store.sql.transitions.deadlocks import Edge, Link, sentence

TRAVELLING = kind("travelling", stage("first", queue="urgent"), stage("second", queue="slow"))
ALPHA = AccessScope(collections=("alpha",))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    queues = [QueueSpec(name="urgent", type="one"), QueueSpec(name="slow", type="one")]
    made.knows(ONE, THREE, PARENT, BATCH, TRAVELLING, queues=queues)
    yield made
    store.close()


def ask(site: Site, role: Role = Role.OPERATOR, within: AccessScope = ALPHA, **limits: Any) -> Control:
    rights = Rights(role=role, within=within, **limits)
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann", rights=rights)


def made(site: Site, control: Control, *rows: dict[str, Any], **options: Any) -> Job:
    return site.job(control.submit("one", rows or [{}], Options(**options)).ids[0])


# --- submitting -----------------------------------------------------------------------------


def test_a_number_that_json_does_not_have_is_not_stored_as_null(site: Site) -> None:
    with pytest.raises(BadParameters, match="NaN or infinity"):
        made(site, ask(site), {"gains": [float("nan")]})


def test_parameters_of_python_are_stored_as_a_stage_reads_them(site: Site) -> None:
    job = made(site, ask(site), {"file": Path("a/b"), "pause": timedelta(minutes=15)})
    assert job.params == {"file": "a/b", "pause": "PT15M"}
    with pytest.raises(BadParameters, match="a secret is where the type declares none"):
        made(site, ask(site), {"password": SecretStr("a long password")})


def test_what_comes_through_a_server_bears_who_submitted_it(site: Site) -> None:
    assert made(site, ask(site, Role.SUBMITTER)).submitter == "ann"
    assert made(site, ask(site, Role.ADMIN, AccessScope())).submitter == "ann"
    assert made(site, ask(site), submitter="ben").submitter == "ben"

    is_local = Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")
    assert made(site, is_local).submitter is None


def test_submitters_speak_for_themselves_alone(site: Site) -> None:
    with pytest.raises(Forbidden, match="ann is a submitter and may not submit in the name of ben"):
        made(site, ask(site, Role.SUBMITTER), submitter="ben")
    assert made(site, ask(site, Role.SUBMITTER), submitter="ann").submitter == "ann"


def test_the_only_collection_that_can_be_meant_is_filled_in(site: Site) -> None:
    assert made(site, ask(site)).collection == "alpha"
    two = ask(site, within=AccessScope(collections=("alpha", "beta")))
    assert made(site, two, collection="beta").collection == "beta"
    with pytest.raises(Forbidden, match="may not submit without a collection; name alpha or beta"):
        made(site, two)
    with pytest.raises(Forbidden, match="limited to collection none"):
        made(site, ask(site, within=AccessScope(collections=())))


@pytest.mark.parametrize("lines", [['{"type": "one"}', '{"type": "one", "collection": "beta"}']])
def test_one_line_that_is_not_allowed_keeps_all_out(site: Site, lines: list[str]) -> None:
    with pytest.raises(Forbidden, match="into collection 'beta'"):
        ask(site).submit_lines(lines)
    assert site.ids() == []


def test_shares_and_priorities_are_those_that_may_be_named(site: Site) -> None:
    control = ask(site, Role.SUBMITTER, shares=("lab:*", "mine"), priorities=(40, 60))

    job = made(site, control, share="lab:7", priority=60)
    assert (job.share, job.priority) == ("lab:7", 60)
    assert made(site, control).priority == 50
    with pytest.raises(Forbidden, match=r"may not name the share 'lap', but lab:\* or mine"):
        made(site, control, share="lap")
    with pytest.raises(Forbidden, match="may give priorities 40 to 60, not 39"):
        made(site, control, priority=39)


def test_every_queue_that_a_job_passes_through_must_be_allowed(site: Site) -> None:
    control = ask(site, Role.SUBMITTER, AccessScope(queues=("urgent",)))

    assert made(site, control, queue="urgent").queue == "urgent"
    assert control.submit("travelling", [{}], Options(queue="urgent")).ids
    assert control.submit(None, [{}], Options(queue="urgent")).ids
    for type_, options, queue in (("one", Options(), "default"), ("travelling", Options(), "slow")):
        with pytest.raises(
            Forbidden, match=f"limited to queue urgent and may not .* come into queue '{queue}'"
        ):
            control.submit(type_, [{}], options)
    with pytest.raises(Forbidden, match="may not submit into queue 'slow'"):
        control.submit(None, [{}], Options(queue="slow"))
    with pytest.raises(Forbidden, match="may not submit into queue 'slow'"):
        control.submit_lines(['{"queue": "slow"}'])


def test_needs_must_be_in_sight(site: Site) -> None:
    here, there = site.submit_one(collection="alpha"), site.submit_one(collection="beta")

    assert made(site, ask(site), needs=[here]).state is State.WAITING
    with pytest.raises(NoSuchJob, match=f"there is no job {there};"):
        made(site, ask(site), needs=[here, there])


def test_a_key_taken_out_of_sight_names_no_job(site: Site) -> None:
    site.submit_one(collection="beta", keys=("theirs",))
    mine = site.submit_one(collection="alpha", keys=("mine",))

    with pytest.raises(Refused, match=r"^the key 'theirs' is taken; choose another key$"):
        made(site, ask(site), key="theirs")
    with pytest.raises(DuplicateKey, match=f"by job {mine}"):
        made(site, ask(site), key="mine")


# --- what is out of sight is not there -------------------------------------------------------

NOT_THERE = 999


@pytest.mark.parametrize(
    "verb",
    [
        lambda c, n: c.do(CancelJob(job=n)),
        lambda c, n: c.do(RetryJob(job=n)),
        lambda c, n: c.do(RerunJob(job=n)),
        lambda c, n: c.do(ReleaseJob(job=n)),
        lambda c, n: c.do(DeleteJob(job=n)),
        lambda c, n: c.do(LayHold(scope=Scope.JOB, name=str(n), reason="x")),
        lambda c, n: c.do(LayHold(scope=Scope.TREE, name=str(n), reason="x")),
        lambda c, n: c.do(LiftHold(hold=n)),
        lambda c, n: c.do(FreeLock(name="x", reason="x", job=n)),
        lambda c, n: c.submit("one", [{}], Options(needs=[n])),
        lambda c, n: c.part(Bulk).plan(Order(verb=Verb.CANCEL), Filter(root_id=n)),
        lambda c, n: c.part(Bulk).plan(Order(verb=Verb.CANCEL), Filter(parent_id=n)),
    ],
)
def test_of_a_job_out_of_sight_is_told_what_is_told_of_none(
    site: Site, verb: Callable[[Control, int], Any]
) -> None:
    control = ask(site)
    there = site.submit_one(collection="beta")
    held = ask(site, within=AccessScope()).do(LayHold(scope=Scope.COLLECTION, name="beta", reason="x")).id
    answers = []

    for number in (NOT_THERE, there):
        with pytest.raises(SpinneyError) as refused:
            verb(control, number)
        answers.append((type(refused.value), str(refused.value).replace(str(number), "N")))

    assert answers[0] == answers[1]
    assert held == there, "the same number serves for the hold"


def test_bulk_verbs_say_the_same_of_numbers_out_of_sight(site: Site) -> None:
    control, there = ask(site), site.submit_one(collection="beta")
    mine = site.submit_one(collection="alpha")

    report = control.part(Bulk).run(
        control.part(Bulk).plan(Order(verb=Verb.CANCEL), None, (there, mine, NOT_THERE))
    )

    assert report.touched == 1
    assert {re.sub(r"\d+", "N", why) for why in report.refused.values()} == {
        "there is no job N; check its number in the list of jobs"
    }
    assert list(report.refused) == [there, NOT_THERE]
    assert site.state(there) is State.PENDING


def test_no_names_out_of_sight_are_offered(site: Site) -> None:
    site.submit_one(collection="beta", queue="slow", submitter="ben")
    by_queue = ask(site, within=AccessScope(queues=("urgent",)))
    cancel = Order(verb=Verb.CANCEL)

    for control, which, offered in (
        (ask(site), Filter(collection="bet"), "alpha"),
        (by_queue, Filter(queue="slo"), "urgent"),
    ):
        with pytest.raises(UsageError, match=rf"(store|collection '\w+'); use one of: {offered}$"):
            control.part(Bulk).plan(cancel, which)
    assert ask(site).part(Bulk).plan(cancel, Filter(submitter="be")).jobs == 0, "nobody is named"
    with pytest.raises(Forbidden, match="may not move jobs into queue 'slow'"):
        by_queue.part(Bulk).plan(Order(verb=Verb.MOVE, queue="slow"), Filter())


def test_a_deadlock_names_no_jobs_out_of_sight(site: Site) -> None:
    take, want = stage("take", locks=locked("{first}", until="job")), stage("want", locks=locked("{second}"))
    site.knows(kind("keeper", take, want))
    (mine,) = site.submit("keeper", {"first": "a", "second": "b"}, collection="alpha")
    (theirs,) = site.submit("keeper", {"first": "b", "second": "a"}, collection="beta")
    site.pass_(*site.claim())
    site.claim()
    assert "a deadlock: " in (site.job(theirs).message or "")
    theirs_only = ask(site, within=AccessScope(collections=("beta",)))

    for text in (
        theirs_only.part(Queries).job(theirs).message,
        theirs_only.part(Explainer).explain(theirs).sentence,
    ):
        assert text is not None
        assert f"job {theirs} waits for the lock" in text
        assert f"job {mine}" not in text


@pytest.mark.parametrize("edge", Edge)
def test_every_kind_of_wait_in_a_deadlock_is_told_without_jobs_out_of_sight(site: Site, edge: Edge) -> None:
    mine, theirs = site.submit_one(collection="alpha"), site.submit_one(collection="beta")
    ring = [Link(mine, edge, theirs, "scanner"), Link(theirs, edge, mine, "scanner")]
    job = replace(site.job(mine), message=f"a deadlock: {sentence(ring)}")

    (shown,) = Visibility(site.store, ALPHA).jobs([job])

    text = shown.message or ""
    assert re.findall(r"\d+", text) == [str(mine), str(mine)]
    assert text.count("a job") + text.count("one of its subjobs") == 2


# --- trees ----------------------------------------------------------------------------------


@pytest.fixture
def mixed(site: Site) -> tuple[int, int, int]:
    """A parent in alpha with a child there and one in beta."""
    parent = site.submit_one("parent", collection="alpha")
    lease = site.run(parent)
    (inside,) = site.spawn(lease)
    (outside,) = site.spawn(lease, collection="beta")
    site.pass_(lease)
    return parent, inside, outside


BEYOND = r"has others in its tree that lie beyond what ann is limited to \(collection alpha\)"


def test_no_verb_on_a_tree_reaches_beyond_the_limits(site: Site, mixed: tuple[int, int, int]) -> None:
    parent, inside, outside = mixed
    control = ask(site)

    for verb in (
        lambda: control.do(CancelJob(job=parent, tree=True)),
        lambda: control.do(LayHold(scope=Scope.TREE, name=str(parent), reason="x")),
    ):
        with pytest.raises(Forbidden, match=BEYOND):
            verb()
    report = control.part(Bulk).run(
        control.part(Bulk).plan(Order(verb=Verb.CANCEL, tree=True), Filter(type="parent"))
    )
    assert (report.touched, list(report.refused)) == (0, [parent])
    assert site.states([parent, inside, outside]) == [State.WAITING, State.PENDING, State.PENDING]

    control.do(CancelJob(job=inside, tree=True))
    assert site.state(inside) is State.CANCELLED


def test_what_has_settled_is_not_reached_from_above_either(site: Site, mixed: tuple[int, int, int]) -> None:
    parent, inside, outside = mixed
    site.drain(failing={inside, outside})
    control = ask(site)

    for verb in (
        lambda: control.do(DeleteJob(job=parent)),
        lambda: control.do(RerunJob(job=parent)),
        lambda: control.do(RetryJob(job=parent)),
        lambda: control.do(RetryJob(job=parent, stage="expand")),
    ):
        with pytest.raises(Forbidden, match=BEYOND):
            verb()
    for order in (
        Order(verb=Verb.DELETE),
        Order(verb=Verb.RERUN),
        Order(verb=Verb.RETRY),
        Order(verb=Verb.RERUN, and_after=True),
    ):
        report = control.part(Bulk).run(control.part(Bulk).plan(order, None, (parent,)))
        assert (report.touched, list(report.refused)) == (0, [parent]), order
    assert site.states(mixed) == [State.FAILED] * 3
    assert list(site.store.holds.all()) == []


def test_a_retry_by_filter_opens_what_is_in_sight_in_place_of_its_parent(
    site: Site, mixed: tuple[int, int, int]
) -> None:
    _, inside, outside = mixed
    site.drain(failing={inside, outside})
    control = ask(site)

    report = control.part(Bulk).run(control.part(Bulk).plan(Order(verb=Verb.RETRY), Filter(type="parent")))

    assert (report.touched, report.reopened) == (1, 1)
    assert site.states(mixed) == [State.WAITING, State.PENDING, State.FAILED]


def test_a_retry_opens_no_cancelled_job_out_of_sight_that_it_names(site: Site) -> None:
    top = site.submit_one("batch", collection="beta")
    lease = site.run(top)
    (mine,) = site.spawn(lease, "one", collection="alpha")
    site.pass_(lease)
    site.cancel(top, tree=True)
    control = ask(site)

    report = control.part(Bulk).run(control.part(Bulk).plan(Order(verb=Verb.RETRY), None, (mine, top)))

    assert (report.touched, [*report.refused]) == (0, [top, mine])
    assert site.states([top, mine]) == [State.CANCELLED] * 2


def test_a_tree_that_is_wholly_in_sight_is_reached(site: Site) -> None:
    parent, born = site.family(n=2, collection="alpha")
    control = ask(site)

    control.do(CancelJob(job=parent, tree=True))
    assert set(site.states([parent, *born])) == {State.CANCELLED}
    assert len(control.do(DeleteJob(job=parent)).touched) == 3


def refusals(control: Control, command: RetryJob | ReleaseJob) -> list[str]:
    """The sentence with which a verb on a job is refused, and that of the same verb on many jobs."""
    with pytest.raises(SpinneyError) as refused:
        control.do(command)
    return [str(refused.value), *control.do(RunBulk(verb=command.verb, ids=[command.job])).refused.values()]


def test_a_retry_names_no_job_out_of_sight_that_has_its_key(site: Site) -> None:
    mine = site.submit_one(collection="alpha", keys=("k",))
    site.fail(site.run(mine))
    theirs = site.submit_one(collection="beta", keys=("k",))

    assert refusals(ask(site), RetryJob(job=mine)) == ["the key 'k' is taken; choose another key"] * 2
    everywhere = refusals(ask(site, within=AccessScope()), RetryJob(job=mine))
    assert [f"by job {theirs};" in sentence for sentence in everywhere] == [True, True]


def test_a_retry_names_no_job_out_of_sight_that_keeps_it_from_going_on(site: Site) -> None:
    need, parent = site.submit_one(collection="alpha"), site.submit_one("parent", collection="alpha")
    mine = site.submit_one(collection="beta", needs=(need,))
    site.fail(site.run(need))
    lease = site.run(parent)
    (below,) = site.spawn(lease, collection="beta")
    site.spawn(lease, collection="alpha")
    site.pass_(lease)
    site.fail(site.run(below))
    site.cancel(parent, tree=True)
    control = ask(site, within=AccessScope(collections=("beta",)))

    assert (
        refusals(control, RetryJob(job=mine))
        == [f"job {mine} would fail again at once, since a job, which it needs, failed; retry that one first"]
        * 2
    )
    assert (
        refusals(control, RetryJob(job=below))
        == ["a job above it is cancelled; retry that one first, or rerun it"] * 2
    )


def test_the_answer_of_a_retry_has_no_jobs_out_of_sight_that_wait_again(site: Site) -> None:
    mine = site.submit_one(collection="alpha")
    visible = site.submit_one(collection="alpha", needs=(mine,))
    site.submit_one(collection="beta", needs=(mine,))
    control = ask(site)

    site.drain(failing={mine})
    assert control.do(RetryJob(job=mine)).reopened == [visible]
    site.drain(failing={mine})
    steps: list[BulkProgress] = []
    watching = replace(control, tell=steps.append)
    assert watching.do(RunBulk(verb=Verb.RETRY, ids=[mine])).reopened == 1
    assert [step.waiting for step in steps] == [[visible]]


def test_what_was_deleted_out_of_sight_is_in_nobodys_way(site: Site, mixed: tuple[int, int, int]) -> None:
    parent, _, outside = mixed
    site.cancel(outside)
    site.delete(outside)

    ask(site).do(CancelJob(job=parent, tree=True))

    assert site.state(parent) is State.CANCELLED


def test_what_finished_after_a_failure_runs_again_where_all_of_the_tree_is_in_sight(site: Site) -> None:
    batch, born = site.family("batch", n=3, collection="alpha")
    site.drain(failing={born[0]})
    control = ask(site)

    report = control.part(Bulk).run(
        control.part(Bulk).plan(Order(verb=Verb.RETRY, and_after=True), None, (born[0],))
    )

    assert (report.refused, site.state(batch)) == ({}, State.WAITING)
    with pytest.raises(Forbidden, match="may not retry jobs: that takes an operator"):
        ask(site, Role.SUBMITTER).part(Bulk).plan(Order(verb=Verb.RETRY, and_after=True), None, (born[0],))


# --- plans ----------------------------------------------------------------------------------


def test_a_plan_counts_what_is_in_sight(site: Site) -> None:
    site.submit(n=2, collection="alpha")
    site.submit(n=3, collection="beta")
    site.drain()
    rerun = Order(verb=Verb.RERUN)

    for control, jobs in ((ask(site), 2), (ask(site, within=AccessScope()), 5)):
        plan = control.part(Bulk).plan(rerun, Filter(type="one"), exact=True)
        assert plan.jobs == jobs
        assert [stage.jobs for stage in plan.stages or ()] == [jobs]


def test_no_plan_is_run_wider_than_who_runs_it_may(site: Site) -> None:
    alpha, beta = site.submit_one(collection="alpha"), site.submit_one(collection="beta")
    forged = Plan(order=Order(verb=Verb.CANCEL), job_filter=Filter(states=(State.PENDING,)), last=beta)
    wider = Plan(
        order=Order(verb=Verb.CANCEL),
        job_filter=Filter(within=AccessScope(collections=("alpha", "beta"))),
        last=beta,
    )

    ask(site, Role.SUBMITTER).part(Bulk).run(forged)
    assert site.states([alpha, beta]) == [State.PENDING] * 2, "they are not hers"
    ask(site).part(Bulk).run(wider)
    ask(site).part(Bulk).run(forged)
    assert site.states([alpha, beta]) == [State.CANCELLED, State.PENDING]
    with pytest.raises(Forbidden, match="a viewer and may not cancel jobs"):
        ask(site, Role.VIEWER).part(Bulk).run(forged)


def test_submitters_plan_for_their_own_jobs_and_name_no_others(site: Site) -> None:
    site.submit(n=2, collection="alpha", submitter="ann")
    site.submit(n=3, collection="alpha", submitter="ben")
    control, cancel = ask(site, Role.SUBMITTER), Order(verb=Verb.CANCEL)

    assert control.part(Bulk).plan(cancel, Filter()).jobs == 2
    with pytest.raises(Forbidden, match="may not cancel the jobs of ben"):
        control.part(Bulk).plan(cancel, Filter(submitter="ben"))
    assert control.part(Bulk).run(control.part(Bulk).plan(cancel, Filter())).touched == 2
    assert site.count(submitter="ben") == {"pending": 3}


def test_a_submitter_releases_no_hold_of_others_on_a_job(site: Site) -> None:
    job = site.submit_one(collection="alpha", submitter="ann")
    ben = Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ben")
    ben.do(LayHold(scope=Scope.JOB, name=str(job), reason="not now"))
    control = ask(site, Role.SUBMITTER)

    with pytest.raises(Forbidden, match=f"job {job} is held by ben"):
        control.do(ReleaseJob(job=job))
    report = control.part(Bulk).run(control.part(Bulk).plan(Order(verb=Verb.RELEASE), Filter()))
    assert (report.touched, list(report.refused)) == (0, [job])
    ask(site).do(ReleaseJob(job=job))
    assert site.state(job) is State.PENDING


def test_a_release_says_of_a_wider_hold_only_what_is_in_sight(
    site: Site, mixed: tuple[int, int, int]
) -> None:
    parent, inside, outside = mixed
    everywhere = ask(site, within=AccessScope())
    within_beta = ask(site, within=AccessScope(collections=("beta",)))
    hold = everywhere.do(LayHold(scope=Scope.TREE, name=str(parent), reason="patient 7"))
    sweep_holds(everywhere)

    for job, control, sentence_ in (
        (
            outside,
            within_beta,
            f"job {outside} is under hold {hold.id} on a tree by ann: a hold that is not within your limits; ask an "
            "operator who may see what it covers to release it",
        ),
        (
            inside,
            ask(site),
            f"job {inside} is under hold {hold.id} on tree {parent} by ann: patient 7; release that for all that it "
            f"covers (spinney release --hold {hold.id}), or move the job out of it",
        ),
    ):
        assert refusals(control, ReleaseJob(job=job)) == [sentence_] * 2
    assert within_beta.part(Queries).job(outside).message == (
        f"hold {hold.id} on a tree by ann: a hold that is not within your limits"
    )


def test_a_release_does_not_say_why_a_circuit_breaker_stopped_jobs_of_others(site: Site) -> None:
    site.knows(kind("careful", "work", breaker=1))
    site.fail(site.run(site.submit_one("careful", collection="beta")), message="patient 7 is unknown")
    mine = site.submit_one("careful", collection="alpha")

    for sentence_ in refusals(ask(site), ReleaseJob(job=mine)):
        assert "on type careful by circuit breaker: a circuit breaker stopped it; release" in sentence_


# --- what somebody with limits may change ----------------------------------------------------


def test_a_queue_is_changed_and_held_by_who_is_limited_to_it(site: Site) -> None:
    control = ask(site, within=AccessScope(queues=("urgent",)))

    assert control.do(ChangeQueue(name="urgent", limit=2)).in_force.limit == 2
    assert control.do(LayHold(scope=Scope.QUEUE, name="urgent", reason="x")).name == "urgent"
    for both in (control, ask(site, within=AccessScope(queues=("urgent", "slow"), collections=("alpha",)))):
        with pytest.raises(Forbidden, match="may not set queue 'slow'"):
            both.do(ChangeQueue(name="slow", limit=2))
        with pytest.raises(Forbidden, match="may not hold the queue 'slow'"):
            both.do(LayHold(scope=Scope.QUEUE, name="slow", reason="x"))


def test_locks_are_those_that_may_be_named(site: Site) -> None:
    control = ask(site, within=AccessScope(), locks=("receiver:*",))

    assert control.do(SetCapacity(name="receiver:*", capacity=2)).capacity == 2
    for name in ("download:1", "*", "rec*"):
        with pytest.raises(Forbidden, match=r"may set the capacity of receiver:\*, not"):
            control.do(SetCapacity(name=name, capacity=2))


def test_who_has_no_locks_of_his_own_frees_what_is_in_sight_and_hears_of_no_others(site: Site) -> None:
    site.knows(kind("locked", stage("work", locks=locked("r:{n}"))))
    ask(site, within=AccessScope()).do(SetCapacity(name="r:both", capacity=2))
    for n, collection in (("mine", "alpha"), ("theirs", "beta"), ("both", "alpha"), ("both", "beta")):
        site.run(site.submit_one("locked", {"n": n}, collection=collection))
    control = ask(site)

    with pytest.raises(Forbidden, match="which other jobs have, too"):
        control.do(FreeLock(name="r:both", reason="x"))
    for hidden in ("r:theirs", "r:their", "r:0"):
        with pytest.raises(Refused, match="no job within your limits has the lock") as refused:
            control.do(FreeLock(name=hidden, reason="x"))
        assert hidden == "r:theirs" or "r:theirs" not in str(refused.value)
    assert control.do(FreeLock(name="r:mine", reason="x")).lost == 1
    assert ask(site, locks=("r:*",)).do(FreeLock(name="r:theirs", reason="x")).lost == 1


def test_a_lock_is_not_taken_from_a_job_that_got_it_after_the_check(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.knows(kind("locked", stage("work", locks=locked("r:{n}"))))
    mine = site.run(site.submit_one("locked", {"n": "x"}, collection="alpha"))
    theirs = site.submit_one("locked", {"n": "x"}, collection="beta")
    free = SqlLocks.free

    def free_after_it_has_changed_hands(self: SqlLocks, name: str, actor: Actor, **more: Any) -> int:
        site.pass_(mine)
        site.run(theirs)
        return free(self, name, actor, **more)

    monkeypatch.setattr(SqlLocks, "free", free_after_it_has_changed_hands)

    with pytest.raises(Refused, match="has just taken it"):
        ask(site).do(FreeLock(name="r:x", reason="x"))

    assert [info.owner_id for info in site.store.locks.get("r:x")] == [theirs]


def test_priorities_and_queues_of_verbs_are_those_that_may_be_given(site: Site) -> None:
    job = site.submit_one(collection="alpha", queue="urgent")
    control = ask(site, within=AccessScope(queues=("urgent",)), priorities=(50, 99))

    with pytest.raises(Forbidden, match="may give priorities 50 to 99, not 0"):
        control.part(Bulk).plan(Order(verb=Verb.PRIORITY, priority=0), None, (job,))
    for verb in (Verb.MOVE, Verb.RETRY, Verb.RERUN):
        with pytest.raises(Forbidden, match=f"may not {verb} jobs into queue 'slow'"):
            control.part(Bulk).plan(Order(verb=verb, queue="slow"), None, (job,))


def test_a_schedule_is_filled_in_and_limited_as_its_jobs_are(site: Site) -> None:
    control = ask(site)
    mine = control.do(PutSchedule(name="mine", type="one", every_s=60))

    assert mine.options == {"collection": "alpha", "submitter": "ann"}
    assert site.job(control.do(RunSchedule(name="mine")).id).collection == "alpha"
    with pytest.raises(Forbidden, match="into collection 'beta'"):
        control.do(PutSchedule(name="more", type="one", every_s=60, options={"collection": "beta"}))
    ask(site, within=AccessScope()).do(PutSchedule(name="theirs", type="one", every_s=60))
    with pytest.raises(Refused, match="there is no schedule 'theirs'; "):
        control.do(PauseSchedule(name="theirs", paused=True))
    with pytest.raises(Forbidden, match="the name 'theirs' of a schedule is taken"):
        control.do(PutSchedule(name="theirs", type="one", every_s=60, replace=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priority": 0}, "may give priorities 50 to 99, not 0"),
        ({"share": "vip"}, "may not name the share 'vip'"),
    ],
)
def test_a_schedule_of_somebody_else_makes_a_job_within_the_limits_of_who_runs_it(
    site: Site, options: dict[str, Any], message: str
) -> None:
    maker, limited = ask(site), ask(site, priorities=(50, 99), shares=("own",))
    maker.do(PutSchedule(name="beyond", type="one", every_s=60, options=options))
    maker.do(PutSchedule(name="within", type="one", every_s=60, options={"priority": 60, "share": "own"}))

    with pytest.raises(Forbidden, match=message):
        limited.do(RunSchedule(name="beyond"))
    assert not site.store.job_lists.find(Filter(), limit=1)

    job = site.job(limited.do(RunSchedule(name="within")).id)
    assert (job.priority, job.share) == (60, "own")


# --- who has the store itself at hand ----------------------------------------------------------


class Counting:
    """A store that records the names of the parts that are used."""

    def __init__(self, of: Any, names: list[str]) -> None:
        self._of, self._names = of, names

    def __getattr__(self, name: str) -> Any:
        self._names.append(name)
        return getattr(self._of, name)


def test_whoever_has_the_store_at_hand_costs_it_nothing_more(site: Site) -> None:
    questions: list[str] = []
    control = Control(
        store=Counting(site.store, questions), clock=lambda: site.now, wake_nodes=lambda: None, by="ann"
    )
    assert control.rights is ALL_RIGHTS
    one, other = site.submit(n=2)
    for expected, verb in (
        (["types", "submit"], lambda: control.submit("one", [{}])),
        (["bulk"], lambda: control.do(CancelJob(job=one))),
        (["bulk"], lambda: control.do(RetryJob(job=one))),
        (["holds"], lambda: control.do(LayHold(scope=Scope.JOB, name=str(other), reason="x"))),
        (["holds"], lambda: control.do(LiftHold(hold=1))),
        (["queue_admin"], lambda: control.do(ChangeQueue(name="urgent", limit=2))),
    ):
        questions.clear()
        verb()
        assert questions == expected
