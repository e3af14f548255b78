"""What pages alone ask of a store: names for filters, and what a node ran lately."""

import re

import pytest

from spinney.features.jobs.sql import SUGGESTED_MAX
from spinney.store import skip_scan
from spinney.store.sql import SqlStore
from spinney.store.sql.connection.sqlite import SqliteDatabase

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
    assert isinstance(site.store, SqlStore)

    few, all_of_them = _effort(site.store, 5), _effort(site.store, None)

    assert few < all_of_them / 20


def _very_many_collections(site: Site) -> list[str]:
    names = [f"n{number:03}" for number in range(MANY)]
    for name in names:
        site.submit_one(collection=name)
    return names


def _effort(store: SqlStore, most: int | None) -> int:
    """Return how many steps of its virtual machine SQLite takes, or how many rows PostgreSQL makes in the recursion."""
    sql = skip_scan.distinct("jobs", "collection", "collection is not null", most=most)
    with store.database.look() as tx:
        if not isinstance(store.database, SqliteDatabase):
            plan = "\n".join(row for (row,) in tx.all(f"explain (analyze, timing off, costs off) {sql}"))
            (made,) = re.findall(r"Recursive Union \(actual rows=(\d+)", plan)
            return int(made)
        connection = store.database._reader
        assert connection is not None
        steps: list[None] = []
        connection.set_progress_handler(lambda: steps.append(None), 1)
        tx.all(sql)
        connection.set_progress_handler(None, 1)
    return len(steps)


def test_a_node_is_shown_what_it_runs_and_what_it_has_ended(site: Site) -> None:
    ended, running = site.submit_one(), site.submit_one()
    site.pass_(site.claim_one())
    site.start(site.claim_one())
    (node,) = site.store.nodes()
    attempts = site.store.node_attempts

    assert [attempt.job_id for attempt in attempts.running(node.id, None)] == [running]
    assert [attempt.job_id for attempt in attempts.ended(node.id, 0, None)] == [ended]
