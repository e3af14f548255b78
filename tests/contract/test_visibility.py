"""A long submission is written in steps, and yet nobody ever sees a part of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Filter
from spinney.store.parts import Store

from .words import Clock, Site, submission

MANY = 8000


def _while_running(work: Callable[[], object], look: Callable[[], None]) -> None:
    """Run ``work`` in a thread, and ``look`` again and again until it has ended, then once more."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(work)
        while not running.done():
            look()
    running.result()
    look()


def test_a_reader_elsewhere_sees_all_of_a_long_submission_or_nothing(
    site: Site, open_another: Callable[[], Store]
) -> None:
    reader, writer = open_another(), open_another()
    seen: list[int] = []

    _while_running(
        lambda: writer.submit([submission(n=MANY)], now_us=site.now),
        lambda: seen.append(sum(reader.counts(Filter()).values())),
    )

    assert set(seen) <= {0, MANY}
    assert seen[-1] == MANY


def test_no_list_shows_a_part_of_a_long_submission(site: Site, open_another: Callable[[], Store]) -> None:
    reader, writer = open_another(), open_another()
    seen: list[int] = []

    _while_running(
        lambda: writer.submit([submission(n=MANY)], now_us=site.now),
        lambda: seen.append(len(reader.jobs(Filter(), limit=MANY))),
    )

    assert set(seen) <= {0, MANY}


def test_a_node_elsewhere_gets_no_lease_before_the_whole_is_visible(
    site: Site, clock: Clock, open_another: Callable[[], Store]
) -> None:
    writer, there = open_another(), Site(open_another(), clock)
    node = there.node("there", slots=10_000)
    totals: list[int] = []

    def claim_and_look() -> None:
        if there.claim(node, slots=10):
            totals.append(sum(there.count().values()))

    _while_running(lambda: writer.submit([submission(n=MANY)], now_us=site.now), claim_and_look)

    assert totals
    assert set(totals) == {MANY}


def test_a_short_submission_elsewhere_need_not_wait_for_a_long_one_to_be_seen(
    site: Site, open_another: Callable[[], Store]
) -> None:
    writer, other = open_another(), open_another()
    mine: list[int] = []

    def submit_one() -> None:
        (job,) = other.submit([submission()], now_us=site.now).ids
        assert other.job(job).id == job
        mine.append(job)

    _while_running(lambda: writer.submit([submission(n=MANY)], now_us=site.now), submit_one)

    assert sum(site.count().values()) == MANY + len(mine)


def test_long_lists_of_children_are_born_together_with_their_stage(
    site: Site, open_another: Callable[[], Store]
) -> None:
    lease = site.run(site.submit_one("parent"))
    born = site.spawn(lease, n=MANY)
    reader, seen = open_another(), []

    _while_running(
        lambda: site.pass_(lease),
        lambda: seen.append(sum(reader.counts(Filter(parent_id=lease.job_id)).values())),
    )

    assert len(set(born)) == MANY
    assert set(seen) <= {0, MANY}
    assert seen[-1] == MANY


def test_a_long_list_of_children_vanishes_with_its_attempt(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease, n=MANY)

    site.fail(lease)
    site.sweep()

    assert site.ids() == [lease.job_id]
    assert site.claim() == []


def test_a_verb_on_a_child_that_is_not_born_yet_names_it(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, "one")

    for verb in (site.cancel, site.rerun, site.retry, site.delete, site.release):
        with pytest.raises(NoSuchJob, match=f"no job {child};"):
            verb(child)
