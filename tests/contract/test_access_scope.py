"""Limits: what is read within them is what lies within them, however it is asked for, and nothing is counted beyond."""

from collections import Counter
from unittest import mock

import pytest

from spinney.model.access import AccessScope
from spinney.model.errors import Refused
from spinney.model.jobs import Filter, Job
from spinney.model.operators.stats import Stats
from spinney.model.states import LEASED, State
from spinney.store.parts import Store

from .behind import access_paths
from .everything import Everything, fill
from .words import USUAL, Clock, Site

LIMITS: dict[str, AccessScope] = {
    "one collection": AccessScope(collections=("alpha",)),
    "two collections": AccessScope(collections=("alpha", "beta")),
    "no collection": AccessScope(collections=()),
    "an unknown collection": AccessScope(collections=("gamma",)),
    "one queue": AccessScope(queues=("narrow",)),
    "two queues": AccessScope(queues=("default", "urgent")),
    "a collection in a queue": AccessScope(collections=("alpha",), queues=("default",)),
    "collections in queues": AccessScope(collections=("alpha", "beta"), queues=("default", "narrow")),
    "everything": AccessScope(),
}
SOME = {name: within for name, within in LIMITS.items() if not within.everywhere}
BESIDE: dict[str, Filter] = {
    "nothing": Filter(),
    "a collection": Filter(collection="alpha"),
    "another collection": Filter(collection="beta"),
    "a queue": Filter(queue="default"),
    "another queue": Filter(queue="narrow"),
    "a type": Filter(type="one"),
    "roots": Filter(roots_only=True),
    "states": Filter(states=(State.FAILED, State.PENDING, State.RUNNING, State.COMPLETED)),
    "what waits to be claimed": Filter(states=(State.PENDING,), stage="work"),
    "a submitter": Filter(submitter="ann"),
    "a message": Filter(message="disk"),
}


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    return Site(store, clock)


@pytest.fixture
def made(site: Site) -> Everything:
    """With jobs of two collections in several queues beside those that everybody knows."""
    made = fill(site)
    site.submit(n=2, collection="alpha", queue="narrow")
    site.submit(n=3, collection="beta", queue="urgent")
    return made


def everything(site: Site) -> list[Job]:
    return site.store.jobs(Filter(), limit=1000)


def stats(site: Site, within: AccessScope | None) -> Stats:
    return site.store.statistics.stats(window_s=60, now_us=site.now, within=within)


@pytest.mark.parametrize("limits", LIMITS)
def test_a_filter_finds_and_counts_what_lies_within(site: Site, made: Everything, limits: str) -> None:
    within = LIMITS[limits]
    for beside, which in BESIDE.items():
        fits = Filter(
            **{f: getattr(which, f) for f in which.__dataclass_fields__ if f != "within"}, within=within
        )
        lawful = [
            job for job in site.store.jobs(which, limit=1000) if within.holds(job.collection, job.queue)
        ]

        assert [job.id for job in site.store.jobs(fits, limit=1000)] == [job.id for job in lawful], beside
        assert site.store.job_lists.count(fits, most=1000) == len(lawful), beside
        expected = Counter(str(job.state) for job in lawful)
        assert {str(s): n for s, n in site.store.counts(fits).items()} == expected, beside


@pytest.mark.parametrize("limits", SOME)
def test_large_numbers_are_counted_by_the_index_to_the_same_end(
    site: Site, made: Everything, limits: str
) -> None:
    exact = dict(site.store.counts(Filter(within=SOME[limits])))

    with mock.patch.object(access_paths, "ENOUGH", 1):  # as if all were more than can be looked at
        assert dict(site.store.counts(Filter(within=SOME[limits]))) == exact


def test_a_page_within_limits_goes_on_where_the_one_before_ended(site: Site, made: Everything) -> None:
    fits = Filter(within=AccessScope(collections=("alpha", "beta")))
    whole = [job.id for job in site.store.jobs(fits, limit=1000, newest=True)]

    paged: list[int] = []
    while page := site.store.jobs(fits, after=paged[-1] if paged else 0, limit=3, newest=True):
        paged += [job.id for job in page]

    assert paged == whole
    assert len(whole) > 6


@pytest.mark.parametrize("limits", LIMITS)
def test_a_tree_within_limits_is_what_lies_within_and_has_so_many(site: Site, limits: str) -> None:
    # given
    site.knows(*USUAL)
    within = LIMITS[limits]
    top, (branch, _) = site.family(child="parent", n=2, collection="alpha")
    lease = site.claim_by_job()[branch]
    for collection, queue in (("beta", "urgent"), ("alpha", "narrow"), ("beta", "default"), (None, "narrow")):
        site.spawn(lease, "one", n=2, collection=collection, queue=queue)
    site.pass_(lease)
    lawful = [job for job in site.store.tree(top) if within.holds(job.collection, job.queue)]

    # when, then
    for limit in (1, 2, 3, 1000):
        assert site.store.tree(top, limit=limit, within=within) == lawful[:limit]


@pytest.mark.parametrize("limits", LIMITS)
def test_figures_are_of_what_lies_within(site: Site, made: Everything, limits: str) -> None:
    within = LIMITS[limits]
    mine = [job for job in everything(site) if within.holds(job.collection, job.queue)]

    statistics = stats(site, within)

    assert {str(s): n for s, n in statistics.states.items()} == Counter(str(job.state) for job in mine)
    for state, field in (
        (State.PENDING, "pending"),
        (State.FAILED, "failed"),
        (State.HELD, "held"),
        (State.WAITING, "waiting"),
        (State.SCHEDULED, "scheduled"),
    ):
        expected = Counter(job.queue for job in mine if job.state is state)
        assert {q.queue: getattr(q, field) for q in statistics.queues if getattr(q, field)} == expected, state
    assert within.queues is None or {q.queue for q in statistics.queues} <= set(within.queues)
    at_work = sum(job.state in LEASED for job in mine)
    assert sum(n.leases for n in statistics.nodes) == at_work
    assert sum(q.running for q in statistics.queues) == sum(s.running for s in statistics.shares) <= at_work
    assert sum(s.pending for s in statistics.stages) == sum(job.state is State.PENDING for job in mine)
    shares = {job.share for job in mine} | {str(job.root_id) for job in mine} | {None}
    assert {s.share for s in statistics.shares} <= shares


def test_a_measure_that_knows_no_collection_is_left_out_and_one_that_knows_its_queue_is_not(
    site: Site, made: Everything
) -> None:
    of_all = stats(site, None)
    by_collection = stats(site, AccessScope(collections=("alpha",)))
    by_queue = stats(site, AccessScope(queues=("narrow",)))

    assert (by_collection.rate, {q.rate for q in by_collection.queues}) == (None, {None})
    assert {(s.ended, s.failures, s.rate, s.sampled, s.wait_s, s.run_s) for s in by_collection.stages} == {
        (None, None, None, 0, None, None)
    }
    assert of_all.rate
    assert by_queue.rate == next(q.rate for q in of_all.queues if q.queue == "narrow")


@pytest.mark.parametrize("limits", SOME)
def test_failures_are_grouped_of_what_lies_within(site: Site, made: Everything, limits: str) -> None:
    within = SOME[limits]
    bad = [job for job in everything(site) if job.state in (State.FAILED, State.ORPHANED)]
    mine = [job for job in bad if within.holds(job.collection, job.queue)]

    groups = site.store.failures.groups(within=within)

    assert groups.jobs + groups.consequences == len(mine)
    for group in groups.items:
        there = site.store.jobs(Filter(fingerprint=group.fingerprint, within=within), limit=100)
        assert group.jobs == len(there)
        assert group.first_us == min(job.settled_us or 0 for job in there)
        assert site.store.failures.find(group.fingerprint, within=within) == group.fingerprint
    hidden = {g.fingerprint for g in site.store.failures.groups().items} - {
        g.fingerprint for g in groups.items
    }
    for mark in hidden:
        with pytest.raises(Refused, match="no failed job has"):
            site.store.failures.find(mark, within=within)


def test_a_cause_is_counted_for_a_type_within_limits(site: Site, made: Everything) -> None:
    alpha, beta = AccessScope(collections=("alpha",)), AccessScope(collections=("beta",))

    assert {g.type for g in site.store.failures.groups(type_="one", within=alpha).items} == {"one"}
    assert site.store.failures.groups(type_="three", within=alpha).jobs == 0
    assert site.store.failures.groups(type_="three", within=beta).jobs == 1


def test_locks_of_others_are_not_there(site: Site, made: Everything) -> None:
    owner = site.job(made["lock owner"])
    (lock,) = {info.name for info in site.store.locks.all()}
    here, elsewhere = AccessScope(queues=(owner.queue,)), AccessScope(queues=("urgent",))

    assert {info.name for info in site.store.locks.all(within=here)} == {lock}
    assert [info.owner_id for info in site.store.locks.get(lock, within=here)] == [owner.id]
    assert list(site.store.locks.all(within=elsewhere)) == []
    assert list(site.store.locks.get(lock, within=elsewhere)) == []


def test_of_those_that_wait_for_a_lock_those_within_are_counted(site: Site) -> None:
    site.knows(*USUAL)
    for collection in ("alpha", "beta", "beta"):
        site.submit_one("locked", {"serno": "A"}, collection=collection)
    site.claim(slots=3)

    (one,) = site.store.locks.all(within=AccessScope(collections=("beta",)))

    assert (one.name, one.waiting) == ("receiver:A", 2)
    assert [info.waiting for info in site.store.locks.all(within=AccessScope(collections=("alpha",)))] == [0]


def test_queues_are_those_of_the_limits_with_counts_of_what_lies_within(site: Site, made: Everything) -> None:
    alpha = AccessScope(collections=("alpha",))
    mine = [job for job in everything(site) if job.collection == "alpha" and job.state is State.PENDING]

    assert [
        q.queue for q in site.store.queue_admin.all(within=AccessScope(queues=("narrow", "nowhere")))
    ] == ["narrow"]
    queues = {q.queue: q for q in site.store.queue_admin.all(within=alpha)}
    assert {name: q.pending for name, q in queues.items() if q.pending} == Counter(job.queue for job in mine)
    assert site.store.queue_admin.get("urgent").types != queues["urgent"].types
    assert set(queues["urgent"].types) == {job.type for job in mine if job.queue == "urgent"}
    assert site.store.queue_admin.get("narrow", within=alpha).pending == queues["narrow"].pending


def test_names_are_those_that_jobs_within_bear(site: Site, made: Everything) -> None:
    names = site.store.bulk.names

    assert set(names("collection", within=AccessScope(collections=("alpha",)))) == {"alpha"}
    assert set(names("submitter", within=AccessScope(queues=("narrow",)))) < set(names("submitter"))
    assert set(names("queue", within=AccessScope(queues=("narrow",)))) == {"narrow"}
    urgent = {job.collection for job in everything(site) if job.queue == "urgent"} - {None}
    assert set(names("collection", within=AccessScope(queues=("urgent",)))) == urgent
    assert set(names("submitter")) == {"ann", "ben"}
