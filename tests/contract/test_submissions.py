"""Submission: all jobs become visible together and durable, or none is stored."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from spinney.model.errors import BadParameters, NoSuchJob, SpinneyError, UnknownType, UsageError
from spinney.model.jobs import Filter, Submission
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import new_jobs
from .words import Site, kind, locked, stage, submission

LONG_LIST = new_jobs.SPECIAL_STEP + 10
"""More than one transaction writes, of jobs with keys."""


def test_ids_come_in_the_order_of_submissions_and_of_their_parameters(site: Site) -> None:
    ids = site.submit_all(
        submission("one", {"k": 1}, {"k": 2}),
        submission("three", {"k": 3}),
        submission("one", {"k": 4}),
    )

    assert [(site.job(i).type, site.job(i).params) for i in ids] == [
        ("one", {"k": 1}),
        ("one", {"k": 2}),
        ("three", {"k": 3}),
        ("one", {"k": 4}),
    ]


def test_a_new_job_stands_pending_before_its_first_stage(site: Site) -> None:
    job = site.job(site.submit_one("three", {"x": [1, "ü", None]}))

    assert (job.state, job.stage, job.params) == (State.PENDING, "first", {"x": [1, "ü", None]})
    assert (job.attempts, job.interruptions, job.warnings, job.cancelling) == (0, 0, 0, False)
    assert (job.created_us, job.started_us, job.settled_us) == (site.now, None, None)
    assert (job.node, job.fence, job.key, job.parent_id, job.waits_for) == (None,) * 5


def test_a_root_is_its_own_root(site: Site) -> None:
    job = site.job(site.submit_one())

    assert job.root_id == job.id
    assert job.lineage == f"{job.id:012d}"


def test_what_is_accepted_is_seen_by_every_other_process(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()

    job = site.submit_one(params={"k": 1})

    assert other.job(job).params == {"k": 1}


def test_what_the_submitter_names_stands(site: Site) -> None:
    job = site.job(
        site.submit_one(
            queue="net", priority=7, share="ann", collection="alpha", submitter="bob", keys=("k1",)
        )
    )

    assert (job.queue, job.priority, job.share) == ("net", 7, "ann")
    assert (job.collection, job.submitter, job.key) == ("alpha", "bob", "k1")


def test_defaults_are_the_default_queue_and_the_middle_priority(site: Site) -> None:
    job = site.job(site.submit_one())

    assert (job.queue, job.priority, job.collection, job.submitter) == ("default", 50, None, None)


@pytest.mark.parametrize(
    ("named", "of_stage", "of_type", "queue"),
    [
        (None, None, "typed", "typed"),
        (None, "staged", "typed", "staged"),
        ("named", "staged", "typed", "named"),
    ],
)
def test_a_queue_is_the_named_one_else_the_stages_else_the_types(
    site: Site, named: str | None, of_stage: str | None, of_type: str, queue: str
) -> None:
    site.knows(kind("t", stage("work", queue=of_stage), queue=of_type))

    assert site.job(site.submit_one("t", queue=named)).queue == queue


def test_a_priority_comes_from_the_type_unless_named(site: Site) -> None:
    site.knows(kind("t", "work", priority=3))

    assert site.job(site.submit_one("t")).priority == 3
    assert site.job(site.submit_one("t", priority=4)).priority == 4


def test_priority_0_is_a_priority_and_no_missing_one(site: Site) -> None:
    site.knows(kind("t", "work", priority=3))

    assert site.job(site.submit_one("t", priority=0)).priority == 0


def test_flat_jobs_of_one_call_are_one_share_and_another_call_is_another(site: Site) -> None:
    first, second = site.submit(n=2)
    (third,) = site.submit()

    assert site.job(first).share == site.job(second).share
    assert site.job(third).share != site.job(first).share


def test_a_child_takes_queue_priority_share_collection_and_submitter_of_its_parent(site: Site) -> None:
    site.knows(kind("kid", "work", queue="typed", priority=9))
    parent = site.submit_one(
        "parent", queue="net", priority=7, share="ann", collection="alpha", submitter="bob"
    )
    lease = site.run(parent)
    (child,) = site.spawn(lease, "kid")
    site.pass_(lease)

    job = site.job(child)
    assert (job.queue, job.priority, job.share) == ("net", 7, "ann")
    assert (job.collection, job.submitter) == ("alpha", "bob")


def test_a_child_may_name_its_own(site: Site) -> None:
    lease = site.run(site.submit_one("parent", queue="net", priority=7, share="ann", collection="alpha"))
    (child,) = site.spawn(lease, queue="own", priority=8, share="cat", collection="beta", submitter="dan")
    site.pass_(lease)

    job = site.job(child)
    assert (job.queue, job.priority, job.share) == ("own", 8, "cat")
    assert (job.collection, job.submitter) == ("beta", "dan")


def test_the_stage_of_a_child_names_a_queue_before_its_parent_does(site: Site) -> None:
    site.knows(kind("kid", stage("work", queue="staged")))
    lease = site.run(site.submit_one("parent", queue="net"))
    (child,) = site.spawn(lease, "kid")
    site.pass_(lease)

    assert site.job(child).queue == "staged"


def test_children_of_different_trees_are_different_shares(site: Site) -> None:
    _, ours = site.family()
    site.drain()
    _, theirs = site.family()

    assert len({site.job(child).share for child in ours}) == 1
    assert {site.job(child).share for child in ours}.isdisjoint(site.job(child).share for child in theirs)


def test_a_submission_brings_data_to_start_with(site: Site) -> None:
    job = site.submit_one(data={"note": '"hello"', "n": "[1, 2]"})

    assert site.store.get_data(job) == {"note": "hello", "n": [1, 2]}


def test_an_empty_submission_is_no_mistake(site: Site) -> None:
    assert list(site.store.submit([], now_us=site.now).ids) == []


def test_nothing_is_held_at_the_door_where_there_is_no_hold(site: Site) -> None:
    assert site.store.submit([submission(n=3)], now_us=site.now).held == 0


def test_an_unknown_type_is_refused(site: Site) -> None:
    with pytest.raises(UnknownType):
        site.submit_one("nobody_knows_it")


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (submission("nobody_knows_it"), UnknownType),
        (submission("one", needs=(999_999,)), NoSuchJob),
        (submission("locked", {"other": 1}), BadParameters),
        (submission("one", needs=(-9,)), SpinneyError),
    ],
    ids=["unknown type", "missing need", "missing lock field", "need beyond the call"],
)
def test_one_wrong_job_and_none_of_the_call_is_stored(
    site: Site, wrong: Submission, refusal: type[SpinneyError]
) -> None:
    with pytest.raises(refusal):
        site.submit_all(submission(n=3), wrong)

    assert site.ids() == []
    assert site.claim() == []


@pytest.mark.parametrize("params", [{}, {"serno": None}], ids=["missing", "null"])
def test_a_lock_whose_field_is_missing_or_null_is_refused(site: Site, params: dict[str, object]) -> None:
    with pytest.raises(BadParameters):
        site.submit_one("locked", params)


def test_the_lock_of_a_later_stage_is_looked_at_as_well(site: Site) -> None:
    site.knows(kind("t", "prepare", stage("write", locks=locked("disk:{unit}"))))

    with pytest.raises(BadParameters):
        site.submit_one("t", {"serno": 1})


def test_a_lock_that_would_name_a_path_is_refused(site: Site) -> None:
    with pytest.raises(UsageError):
        site.submit_one("locked", {"serno": "../../etc"})


def test_a_number_can_name_a_lock(site: Site) -> None:
    site.submit_one("locked", {"serno": 593})

    assert len(site.claim()) == 1


@pytest.mark.parametrize("queue", ["../q", "a/b", ""])
def test_a_queue_named_like_a_path_is_refused(site: Site, queue: str) -> None:
    with pytest.raises(UsageError):
        site.submit_one(queue=queue)


@pytest.mark.parametrize("priority", [-1, 100])
def test_a_priority_beyond_0_to_99_is_refused(site: Site, priority: int) -> None:
    with pytest.raises(UsageError):
        site.submit_one(priority=priority)


def test_as_many_keys_as_jobs_or_the_call_is_refused(site: Site) -> None:
    with pytest.raises(UsageError):
        site.submit("one", {}, {}, keys=("only one",))

    assert site.ids() == []


# --- scheduled ------------------------------------------------------------------------------


def test_a_job_for_later_is_scheduled_and_not_claimed_before_its_time(site: Site) -> None:
    at_us = site.now + 60_000_000
    job = site.submit_one(at_us=at_us)

    assert (site.state(job), site.job(job).wake_us) == (State.SCHEDULED, at_us)
    assert site.job(job).message == "waits for its start time"
    assert site.claim() == []
    site.later(59.9)
    assert site.claim() == []


def test_a_job_for_later_is_claimable_when_its_time_has_come(site: Site) -> None:
    job = site.submit_one(at_us=site.now + 60_000_000)

    site.later(60)

    assert site.state(job) is State.PENDING
    assert site.claim_one().job_id == job


def test_a_job_whose_time_is_past_does_not_wait(site: Site) -> None:
    job = site.submit_one(at_us=site.now - 1)
    site.sweep()

    assert site.claim_one().job_id == job


# --- many -----------------------------------------------------------------------------------


def test_a_list_of_several_thousand_is_accepted_in_order(site: Site) -> None:
    params = [{"k": k} for k in range(5000)]

    ids = site.submit("one", *params)

    assert site.count() == {"pending": 5000}
    assert len(set(ids)) == 5000
    for k in (0, 1, 1999, 2000, 4999):
        assert site.job(ids[k]).params == {"k": k}


def test_a_list_of_several_thousand_with_one_wrong_job_leaves_nothing(site: Site) -> None:
    right = [{"serno": k} for k in range(4999)]

    with pytest.raises(BadParameters):
        site.submit("locked", *right, {"serno": None})

    site.sweep()
    assert site.ids() == []
    assert site.count() == {}
    assert site.claim() == []


def test_every_job_of_a_long_list_can_be_claimed_exactly_once(site: Site) -> None:
    ids = site.submit(n=3000)
    node = site.node("big", slots=3100)

    claimed = [lease.job_id for lease in site.claim(node)]
    claimed += [lease.job_id for lease in site.claim(node)]

    assert sorted(claimed) == sorted(ids)


def test_data_and_keys_reach_every_job_of_a_long_list(site: Site) -> None:
    keys = [f"k{i}" for i in range(LONG_LIST)]

    ids = site.submit(n=LONG_LIST, keys=keys, data={"colour": json.dumps("green")})

    for i in (0, LONG_LIST // 2, LONG_LIST - 1):
        assert site.job(ids[i]).key == keys[i]
        assert site.store.get_data(ids[i]) == {"colour": "green"}


def test_the_queue_of_a_submission_may_be_declared_later(site: Site) -> None:
    job = site.submit_one(queue="net")
    site.knows(queues=[QueueSpec(name="net", limit=1)])

    assert site.claim_one().job_id == job


def test_who_is_woken_on_the_point_of_acceptance_asks_behind_it_and_finds_the_job(
    site: Site, open_another: Callable[[], Store]
) -> None:
    claiming, looking = open_another(), open_another()
    want, now_us, claimed = site.want(site.here), site.now, list[int]()
    asking = threading.Thread(
        target=lambda: claimed.extend(
            x.job_id for x in claiming.flush_and_claim([], want, now_us=now_us).leases
        )
    )

    def woken() -> None:
        assert looking.counts(Filter()) == {}, "it is not accepted yet"
        asking.start()
        asking.join(0.2)
        assert asking.is_alive(), "who asks now waits for his turn"

    made = site.store.submit([submission("one")], soon=woken, now_us=now_us).ids
    asking.join(30)

    assert claimed == list(made)


@pytest.mark.parametrize("n", [1, new_jobs.STEP + 1])
def test_one_call_wakes_once(site: Site, n: int) -> None:
    woken: list[int] = []

    site.store.submit([submission("one", n=n)], soon=lambda: woken.append(1), now_us=site.now)

    assert woken == [1]


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "how", [{}, {"n": new_jobs.STEP + 1}, {"keys": ["a"]}, {"at_us": 1}, {"share": "x"}], ids=str
)
def test_jobs_of_a_submission_in_a_trace_are_leased_with_it(site: Site, how: dict[str, Any]) -> None:
    ids = site.submit(trace=TRACE, **how)
    untraced = site.submit_one()

    leases = {lease.job_id: lease for lease in site.claim(slots=3)}

    assert {site.job(job_id).trace for job_id in (ids[0], ids[-1])} == {TRACE}
    assert leases[ids[0]].trace == TRACE
    assert site.job(untraced).trace is None


def test_jobs_that_a_stage_makes_have_the_trace_that_it_says(site: Site) -> None:
    lease = site.run(site.submit_one("parent", trace=TRACE))
    below = TRACE.replace("b7ad6b7169203331", "00f067aa0ba902b7")
    made = [
        *site.spawn(lease, trace=below),
        *site.submit_from(lease, trace=below),
        *site.submit_from(lease),
    ]
    site.pass_(lease)

    assert [site.job(job_id).trace for job_id in made] == [below, below, None]


def test_the_next_stage_in_the_same_slot_is_leased_with_the_trace(site: Site) -> None:
    lease = site.run(site.submit_one("three", trace=TRACE))

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here, slots=0))

    (kept,) = answer.leases
    assert (kept.stage, kept.trace) == ("second", TRACE)


@pytest.mark.parametrize("trace", ["", "00-0-0-01", TRACE.upper(), TRACE + "-more"])
def test_what_is_no_traceparent_is_refused(site: Site, trace: str) -> None:
    with pytest.raises(UsageError, match="is no traceparent"):
        site.submit(trace=trace)
    assert site.ids() == []
