"""What an exchange makes claimable and does not take itself: it says so, that others can be woken for it."""

import pytest

from spinney.model.outcomes import Outcome

from .words import Site


@pytest.mark.parametrize(("slots", "left"), [(1, True), (3, False)])
def test_children_that_find_no_slot_where_they_are_born_are_left_for_others(
    site: Site, slots: int, left: bool
) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease, n=3)

    answer = site.flush_and_claim([site.entry(lease)], site.want(site.here, slots))

    assert (len(answer.leases), answer.work_for_others) == (slots, left)


def test_what_a_node_that_wants_nothing_hands_back_is_left_for_others(site: Site) -> None:
    site.submit(n=2)
    leases = site.claim(slots=2)

    answer = site.flush_and_claim([site.entry(lease, Outcome.RETURNED, started_us=0) for lease in leases])

    assert answer.work_for_others


def test_others_hear_of_it_once(site: Site) -> None:
    parent = site.run(site.submit_one("parent"))
    site.spawn(parent, n=3)
    assert site.pass_(parent).work_for_others

    assert not site.flush_and_claim([], site.want(site.here, 1)).work_for_others


def test_a_flush_of_plain_jobs_beside_a_backlog_leaves_nothing_new(site: Site) -> None:
    site.submit(n=10)
    site.flush_and_claim([], site.want(site.here, 0))
    lease = site.claim_one()

    assert not site.flush_and_claim([site.entry(lease)], site.want(site.here, 1)).work_for_others


def test_what_nobody_may_claim_is_left_for_nobody(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease, at_us=site.now + 60_000_000)

    assert not site.pass_(lease).work_for_others
