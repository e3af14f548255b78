"""What pages alone ask of a store: names for filters, and what a node ran lately."""

import pytest

from spinney.features.jobs.sql import SUGGESTED_MAX

from .behind import effort_of_names
from .words import Site, submission

MANY = SUGGESTED_MAX + 50


@pytest.mark.parametrize("kind", ["collection", "submitter"])
def test_the_names_that_filters_suggest_are_those_of_all_jobs_in_order(site: Site, kind: str) -> None:
    for name in ("b", "a", "b", None):
        site.submit_all(submission(**{kind: name}))  # type: ignore[arg-type]

    assert site.store.job_lists.names(kind) == ["a", "b"]


def test_without_any_collection_filters_suggest_none(site: Site) -> None:
    site.submit_one()

    assert site.store.job_lists.names("collection") == []


def test_of_very_many_names_filters_suggest_the_first(site: Site) -> None:
    names = _very_many_collections(site)

    assert site.store.job_lists.names("collection") == names[:SUGGESTED_MAX]


def test_no_more_values_are_sought_than_are_asked_for(site: Site) -> None:
    _very_many_collections(site)

    few, all_of_them = effort_of_names(site.store, 5), effort_of_names(site.store, None)

    assert few < all_of_them / 20


def _very_many_collections(site: Site) -> list[str]:
    names = [f"n{number:03}" for number in range(MANY)]
    for name in names:
        site.submit_one(collection=name)
    return names


def test_a_node_is_shown_what_it_runs_and_what_it_has_ended(site: Site) -> None:
    ended, running = site.submit_one(), site.submit_one()
    site.pass_(site.claim_one())
    site.start(site.claim_one())
    (node,) = site.store.nodes()
    attempts = site.store.node_attempts

    assert [attempt.job_id for attempt in attempts.running(node.id, None)] == [running]
    assert [attempt.job_id for attempt in attempts.ended(node.id, 0, None)] == [ended]
