"""Reading: one job, lists with filters and pages, trees, counts, and a number that moves."""

from collections.abc import Callable

import pytest

from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Filter
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site


def _one_in_each_state(site: Site) -> dict[str, int]:
    made = {}
    for end in ("completed", "failed", "cancelled", "held", "deleted", "running", "claimed"):
        job = made[end] = site.submit_one()
        lease = site.claim_one()
        if end != "claimed":
            site.start(lease)
        if end in ("completed", "deleted"):
            site.pass_(lease)
        if end == "failed":
            site.fail(lease)
        if end == "cancelled":
            site.cancel(job)
            site.record(lease, Outcome.CANCELLED)
        if end == "held":
            site.record(lease, Outcome.HOLD)
        if end == "deleted":
            site.delete(job)
    made["scheduled"] = site.submit_one(at_us=site.now + 10**9)
    made["waiting"] = site.submit_one(needs=(made["scheduled"],))
    made["pending"] = site.submit_one()
    return made


def test_a_job_that_never_was_is_refused(site: Site) -> None:
    with pytest.raises(NoSuchJob):
        site.job(4711)


@pytest.mark.parametrize("state", [s for s in State if s is not State.ORPHANED])
def test_every_state_can_be_asked_for(site: Site, state: State) -> None:
    made = _one_in_each_state(site)

    assert site.ids(states=(state,)) == [made[state]]
    assert site.state(made[state]) is state
    assert site.count(states=(state,)) == {state.value: 1}


def test_several_states_may_be_asked_for_at_once(site: Site) -> None:
    made = _one_in_each_state(site)

    ids = site.ids(states=(State.FAILED, State.RUNNING, State.PENDING))

    assert ids == sorted([made["failed"], made["running"], made["pending"]])


def test_counts_tell_how_many_stand_in_each_state(site: Site) -> None:
    _one_in_each_state(site)
    site.submit(n=4)

    counted = site.count()

    counted.pop("deleted", None)
    assert counted == {
        "completed": 1,
        "failed": 1,
        "cancelled": 1,
        "held": 1,
        "running": 1,
        "claimed": 1,
        "scheduled": 1,
        "waiting": 1,
        "pending": 5,
    }


@pytest.mark.parametrize(
    "which",
    [
        {"type": "three"},
        {"queue": "net"},
        {"collection": "alpha"},
        {"submitter": "ann"},
        {"stage": "first"},
    ],
    ids=lambda which: next(iter(which)),
)
def test_a_filter_lets_only_what_fits_through(site: Site, which: dict[str, str]) -> None:
    site.submit(n=2)
    fits = site.submit("three", n=3, queue="net", collection="alpha", submitter="ann")

    assert site.ids(**which) == fits
    assert site.count(**which) == {"pending": 3}


def test_every_field_of_a_filter_must_fit(site: Site) -> None:
    site.submit(queue="net", collection="alpha")
    site.submit(queue="net", collection="beta")
    (fits,) = site.submit("three", queue="net", collection="beta")

    assert site.ids(queue="net", collection="beta", type="three") == [fits]
    assert site.ids(queue="net", collection="alpha", type="three") == []


def test_the_stage_asked_for_is_the_one_a_job_runs_or_will_run_next(site: Site) -> None:
    first, second = site.submit("three", n=2)
    leases = site.claim_by_job()
    site.pass_(leases[first])

    assert site.ids(stage="second") == [first]
    assert site.ids(stage="first") == [second]


def test_trees_are_filtered_by_root_parent_lineage_and_place(site: Site) -> None:
    root, (branch, leaf) = site.family(child="parent", n=2)
    lease = site.claim_by_job()[branch]
    (grand,) = site.spawn(lease)
    site.pass_(lease)
    other = site.submit_one()

    assert site.ids(root_id=root) == [root, branch, leaf, grand]
    assert site.ids(parent_id=root) == [branch, leaf]
    assert site.ids(roots_only=True) == [root, other]
    assert site.ids(below=site.job(root).lineage) == [branch, leaf, grand]
    assert site.ids(below=site.job(branch).lineage) == [grand]
    assert sum(site.count(below=site.job(root).lineage).values()) == 3


def test_jobs_come_by_id_in_pages(site: Site) -> None:
    ids = site.submit(n=25)

    pages, after = [], 0
    while page := [job.id for job in site.store.jobs(Filter(), after=after, limit=10)]:
        pages.append(page)
        after = page[-1]

    assert pages == [ids[:10], ids[10:20], ids[20:]]


def test_the_newest_come_first_when_asked_and_page_downward(site: Site) -> None:
    ids = site.submit(n=25)[::-1]

    pages, after = [], 0
    while page := [job.id for job in site.store.jobs(Filter(), after=after, limit=10, newest=True)]:
        pages.append(page)
        after = page[-1]

    assert pages == [ids[:10], ids[10:20], ids[20:]]


def test_a_page_of_a_filtered_list_is_full(site: Site) -> None:
    ids = [site.submit_one("three" if i % 3 == 0 else "one") for i in range(30)]

    matched = [job.id for job in site.store.jobs(Filter(type="three"), limit=10)]

    assert matched == ids[::3]


def test_a_tree_comes_in_lineage_order(site: Site) -> None:
    root, (branch, leaf) = site.family(child="parent", n=2)
    lease = site.claim_by_job()[branch]
    grand = site.spawn(lease, n=2)
    site.pass_(lease)

    assert [job.id for job in site.store.tree(root)] == [root, branch, *grand, leaf]
    assert [job.id for job in site.store.tree(branch)] == [branch, *grand]
    assert [job.id for job in site.store.tree(root, limit=3)] == [root, branch, grand[0]]


def test_children_are_the_direct_ones_in_pages(site: Site) -> None:
    root, born = site.family(child="parent", n=5)
    lease = site.claim_one()
    site.spawn(lease, n=2)
    site.pass_(lease)

    assert site.children(root) == born
    assert [job.id for job in site.store.children(root, after=born[1], limit=2)] == born[2:4]


@pytest.mark.parametrize("read", ["tree", "attempts", "children", "get_data", "results"])
def test_whatever_is_asked_of_a_job_that_never_was_gives_nothing(site: Site, read: str) -> None:
    try:
        value = getattr(site.store, read)(4711)
    except NoSuchJob:
        return
    assert not value


def test_a_list_shows_the_same_job_as_a_single_look(site: Site) -> None:
    made = _one_in_each_state(site)
    listed = {job.id: job for job in site.store.jobs(Filter())}

    for state, job_id in made.items():
        if state != "deleted":
            assert listed[job_id] == site.job(job_id)


def test_another_process_sees_what_this_one_sees(site: Site, open_another: Callable[[], Store]) -> None:
    made = _one_in_each_state(site)
    other = open_another()

    assert [other.job(job) for job in made.values()] == [site.job(job) for job in made.values()]
    assert other.counts(Filter()) == site.store.counts(Filter())


def test_the_signature_moves_when_another_process_has_committed(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    before = other.signature()

    site.submit_one()

    assert other.signature() != before


def test_the_signature_stands_while_nothing_happens(site: Site, open_another: Callable[[], Store]) -> None:
    other = open_another()
    before = other.signature()

    other.counts(Filter())
    site.ids()

    assert other.signature() == before
