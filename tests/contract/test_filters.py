"""Filters: every field lets through what fits and nothing else, alone and with others."""

from typing import Any

import pytest

from spinney.model.jobs import Filter
from spinney.model.states import SETTLED, State
from spinney.store.parts import Store

from .everything import STANDS, Everything, fill
from .words import ONE, Clock, Site


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    """One that ``fill`` makes all types known to."""
    return Site(store, clock)


@pytest.fixture
def made(site: Site) -> Everything:
    return fill(site)


def names(made: Everything, ids: list[int]) -> set[str]:
    return {made.name(job_id) for job_id in ids}


FITTING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "message": ({"message": "no such receiver"}, {"failed late"}),
    "message in other letters": ({"message": "DISK FULL"}, {"failed", "failed keyed"}),
    "message with a mark of patterns": ({"message": "disk_full"}, set()),
    "message with per cent": ({"message": "%"}, set()),
    "message of what rests": ({"message": "did not answer"}, {"resting"}),
    "message and state": (
        {"message": "its subjob", "states": (State.FAILED,)},
        {"bad batch", "deep root", "deep branch"},
    ),
    "message of what has none": (
        {"message": "disk", "states": (State.COMPLETED, State.PENDING, State.RUNNING)},
        set(),
    ),
    "node of what runs": ({"node": "oak"}, {"claimed", "running", "cancelling", "spawning"}),
    "node that has left": ({"node": "elm"}, {"orphaned"}),
    "no such node": ({"node": "ash"}, set()),
    "node and state": ({"node": "oak", "states": (State.CLAIMED,)}, {"claimed"}),
    "superseded": ({"superseded": True}, {"superseded ok", "superseded failed"}),
    "states from several tables": (
        {"states": (State.ORPHANED, State.CLAIMED, State.PENDING, State.SCHEDULED)},
        {
            n
            for n, s in STANDS.items()
            if s in (State.ORPHANED, State.CLAIMED, State.PENDING, State.SCHEDULED)
        },
    ),
    "no state": ({"states": ()}, set()),
}


@pytest.mark.parametrize("case", FITTING)
def test_a_field_lets_only_what_fits_through(site: Site, made: Everything, case: str) -> None:
    which, expected = FITTING[case]

    matched = site.store.job_lists.find(Filter(**which))

    assert names(made, matched) == expected
    assert matched == sorted(matched)
    assert site.ids(**which) == matched
    assert (
        site.store.job_lists.count(Filter(**which), most=1000)
        == len(matched)
        == sum(site.count(**which).values())
    )


def test_letters_of_all_languages_are_told_from_marks_and_not_from_capitals(site: Site) -> None:
    site.knows(ONE)
    job = site.submit_one()
    site.fail(site.run(job), message="ÜBERGRÖSSE: Straße 50%_x\\y")

    for text in ("übergrösse", "Übergrösse", "50%_X\\Y", "STRAßE"):
        assert site.ids(message=text) == [job], text
    for text in ("50%x", "50__x", "x\\\\y"):
        assert site.ids(message=text) == []


def test_numbers_are_a_filter_among_others(site: Site, made: Everything) -> None:
    ids = (made["failed"], made["completed"], made["running"], 10**9)

    assert site.ids(ids=ids) == sorted(ids[:3])
    assert site.ids(ids=ids, states=(State.FAILED, State.RUNNING)) == sorted(
        [made["failed"], made["running"]]
    )
    assert site.ids(ids=()) == []


def test_times_cut_at_the_microsecond(site: Site, made: Everything) -> None:
    at_us = site.job(made["waiting batch"]).created_us
    everything = set(site.ids())

    before, after = set(site.ids(created_before_us=at_us)), set(site.ids(created_after_us=at_us))

    assert before | after == everything
    assert not before & after
    assert made["waiting batch"] in after
    assert made["failed"] in before


def test_what_settled_after_a_time_is_told_from_what_settled_at_it(site: Site, made: Everything) -> None:
    at_us = site.job(made["done child"]).settled_us
    assert at_us is not None

    after = site.ids(settled_after_us=at_us)

    assert made["done child"] not in after
    assert {(site.job(j).settled_us or 0) > at_us for j in after} == {True}
    assert made["waiting batch failed"] in after
    before = site.ids(settled_before_us=at_us)
    assert {(site.job(j).settled_us or at_us) < at_us for j in before} == {True}
    settled = site.ids(states=tuple(SETTLED))
    assert {*settled} == {*before, *after} | {j for j in settled if site.job(j).settled_us == at_us}


def test_a_tree_is_found_whole_and_with_every_other_field(site: Site, made: Everything) -> None:
    root = made["bad batch"]

    assert names(made, site.ids(root_id=root)) == {n for n in made if n.startswith("bad batch")}
    assert names(made, site.ids(root_id=root, states=(State.FAILED,), type="one")) == {
        "bad batch failed",
        "bad batch failed too",
    }
    assert names(made, site.ids(root_id=made["bad batch ok"])) == set(), "it is no root"
    assert names(made, site.ids(below=site.job(made["deep root"]).lineage)) == {"deep branch", "deep leaf"}
    assert names(made, site.ids(parent_id=made["deep root"], states=(State.FAILED,))) == {"deep branch"}


@pytest.mark.parametrize(
    "which",
    [
        {},
        {"states": (State.FAILED,)},
        {"states": (State.FAILED, State.COMPLETED, State.PENDING, State.RUNNING)},
        {"message": "i"},
    ],
    ids=str,
)
def test_pages_cover_everything_once_in_both_directions(
    site: Site, made: Everything, which: dict[str, Any]
) -> None:
    whole = site.ids(**which)
    assert len(whole) > 4

    for newest in (False, True):
        pages: list[int] = []
        after = 0
        while page := site.store.job_lists.find(Filter(**which), after=after, limit=4, newest=newest):
            pages += page
            after = page[-1]
        assert pages == sorted(whole, reverse=newest)


def test_a_search_keeps_within_its_bounds(site: Site, made: Everything) -> None:
    ids = site.ids()

    assert site.store.job_lists.find(Filter(), after=ids[2], until=ids[7]) == ids[3:8]
    assert site.store.job_lists.find(Filter(), after=ids[7], until=ids[2], newest=True) == ids[2:7][::-1]
    assert site.store.job_lists.count(Filter(), most=5) == 5


def test_names_are_those_that_something_bears(site: Site, made: Everything) -> None:
    store = site.store.bulk

    assert {"narrow", "urgent", "default"} <= set(store.names("queue"))
    assert set(store.names("collection")) == {"alpha", "beta"}
    assert set(store.names("submitter")) == {"ann", "ben"}
    assert {"oak", "elm", "here"} == set(store.names("node"))


def test_the_job_that_has_a_key_is_found_by_it_and_no_other(site: Site, made: Everything) -> None:
    assert names(made, site.ids(key="taken")) == {"pending keyed"}
    assert site.count(key="taken") == {State.PENDING: 1}
    assert site.ids(key="taken", states=(State.COMPLETED,)) == []
    assert site.ids(key="once") == [], "it was free again when its job had settled"
    assert site.ids(key="never") == []


def test_the_same_key_is_another_below_each_parent(site: Site) -> None:
    site.knows(ONE)
    parents = site.submit(n=2)
    leases = site.claim_by_job(slots=2)
    below = [site.spawn(leases[parent], keys=("k",)) for parent in parents]
    top = site.submit_one(keys=("k",))

    assert [site.ids(key="k", parent_id=parent) for parent in parents] == below
    assert site.ids(key="k") == [top]
