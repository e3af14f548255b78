"""Fair shares: the next slot goes to the share that holds fewest, ties in rotation."""

from collections import Counter

import pytest

from spinney.model.jobs import Lease
from spinney.model.settings.queues import QueueSpec

from .behind import RUN_MAX
from .words import Site


def _shares(site: Site, leases: list[Lease]) -> Counter[str]:
    return Counter(site.job(lease.job_id).share for lease in leases)


def test_slots_are_dealt_evenly_however_many_jobs_a_share_has(site: Site) -> None:
    site.submit(n=50, share="ann")
    site.submit(n=5, share="bob")

    assert _shares(site, site.claim(slots=6)) == {"ann": 3, "bob": 3}


def test_the_next_slot_goes_to_the_share_that_holds_fewest(site: Site) -> None:
    site.submit(n=50, share="ann")
    site.claim(slots=4)
    site.submit(n=50, share="bob")

    assert _shares(site, site.claim(slots=4)) == {"bob": 4}
    assert _shares(site, site.claim(slots=2)) == {"ann": 1, "bob": 1}


def test_jobs_that_find_their_lock_taken_cost_their_share_no_turn(site: Site) -> None:
    receivers = [{"serno": "A"}] * 3
    site.submit("locked", *receivers, share="ann")
    site.claim_one()
    site.submit("locked", *receivers, share="bob")
    free = site.submit_one("locked", {"serno": "B"}, share="bob")
    site.submit(n=5, share="ann")

    assert site.claim_one().job_id == free


def test_jobs_that_find_their_lock_taken_use_up_no_quota_of_their_share(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="quota", sharing="quota")])
    node = site.node("n", slots=2)
    site.submit_one("locked", {"serno": "A"})
    site.claim_one(node)
    *_, free = site.submit("locked", *[{"serno": "A"}] * 3, {"serno": "B"}, queue="quota", share="ann")
    site.submit_one(priority=99)

    assert site.claim_one(node).job_id == free


def test_what_a_share_holds_is_counted_over_all_nodes(site: Site) -> None:
    site.submit(n=50, share="ann")
    ours, theirs = site.node("ours", 4), site.node("theirs", 4)
    site.claim(ours, slots=3)
    site.submit(n=50, share="bob")

    assert _shares(site, site.claim(theirs, slots=3)) == {"bob": 3}


def test_ties_go_in_rotation_behind_the_last_served(site: Site) -> None:
    for share in ("ann", "bob", "cat", "dan"):
        site.submit(n=5, share=share)

    served = []
    for _ in range(8):
        lease = site.claim_one()
        served.append(site.job(lease.job_id).share)
        site.pass_(lease)

    assert sorted(served[:4]) == ["ann", "bob", "cat", "dan"]
    assert served[4:] == served[:4]


def test_no_slot_idles_while_somebody_may_use_it(site: Site) -> None:
    site.submit(n=20, share="ann")
    site.submit(n=1, share="bob")

    assert _shares(site, site.claim(slots=10)) == {"ann": 9, "bob": 1}


def test_a_newcomer_is_served_next(site: Site) -> None:
    site.submit(n=1000, share="ann")
    leases = site.claim(slots=4)
    newcomer = site.submit_one(share="bob")

    answer = site.flush_and_claim([site.entry(leases[0])], site.want(site.here, 1))

    assert [lease.job_id for lease in answer.leases] == [newcomer]


def test_submissions_without_a_share_are_shares_of_their_own(site: Site) -> None:
    ours = set(site.submit(n=50))
    theirs = set(site.submit(n=50))

    claimed = {lease.job_id for lease in site.claim(slots=6)}

    assert (len(claimed & ours), len(claimed & theirs)) == (3, 3)


def test_many_shares_are_all_served_before_any_twice(site: Site) -> None:
    ids = [site.submit(n=2, share=f"s{k:03d}") for k in range(40)]
    node = site.node("n", slots=80)

    leases = site.claim(node, slots=40)

    assert set(_shares(site, leases).values()) == {1}
    assert {lease.job_id for lease in leases} == {first for first, _ in ids}


def test_with_sharing_none_the_order_holds_over_all_jobs_of_the_queue(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="none")])
    ids = site.submit(n=4, share="ann", queue="q") + site.submit(n=4, share="bob", queue="q")

    assert [lease.job_id for lease in site.claim(slots=5)] == ids[:5]


def test_a_fifo_queue_may_share_all_the_same(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", order="fifo", sharing="shares")])
    site.submit(n=4, share="ann", queue="q")
    site.submit(n=4, share="bob", queue="q")

    assert _shares(site, site.claim(slots=4)) == {"ann": 2, "bob": 2}


@pytest.mark.parametrize(
    ("shares", "most"),
    [(1, 9), (2, 5), (3, 3), (5, 2), (10, 1)],
)
def test_a_quota_keeps_slots_free_for_a_newcomer(site: Site, shares: int, most: int) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    for k in range(shares):
        site.submit(n=20, share=f"s{k}", queue="q")
    node = site.node("n", slots=10)

    leases = site.claim(node)

    assert max(_shares(site, leases).values()) <= most
    assert len(leases) == min(10, shares * most)


def test_a_quota_counts_what_a_share_already_holds(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    site.submit(n=50, share="ann", queue="q")
    node = site.node("n", slots=10)

    total = sum(len(site.claim(node, slots=3)) for _ in range(5))

    assert total == 9


@pytest.mark.parametrize("limit", [4, "10%"])
def test_a_quota_keeps_a_slot_of_the_queues_limit_free_for_a_newcomer(site: Site, limit: int | str) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota", limit=limit)])
    site.submit(n=50, share="ann", queue="q")
    node = site.node("n", slots=40)

    assert len(site.claim(node)) == 3

    newcomer = site.submit_one(share="bob", queue="q")
    assert [lease.job_id for lease in site.claim(node)] == [newcomer]


def test_a_newcomer_under_a_quota_is_served_at_once(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    site.submit(n=50, share="ann", queue="q")
    node = site.node("n", slots=10)
    site.claim(node)
    newcomer = site.submit_one(share="bob", queue="q")

    assert [lease.job_id for lease in site.claim(node)] == [newcomer]


def test_under_a_quota_with_a_turn_shares_are_served_by_turns_of_that_many(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota", turn=4)])
    for k in range(5):
        site.submit(n=20, share=f"s{k}", queue="q")
    node = site.node("n", slots=12)

    first, second = site.claim(node, slots=4), site.claim(node, slots=8)

    assert list(_shares(site, first).values()) == [4]
    assert sorted(_shares(site, second).values()) == [4, 4]
    assert not set(_shares(site, first)) & set(_shares(site, second))


def test_a_turn_is_a_floor_of_the_quota(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota", turn=4)])
    for k in range(5):
        site.submit(n=20, share=f"s{k}", queue="q")
    node = site.node("n", slots=10)

    leases = site.claim(node)

    assert max(_shares(site, leases).values()) <= 4
    assert len(leases) == 10


def test_claims_ahead_serve_no_more_shares_while_others_hold_leases(site: Site) -> None:
    for n in range(100):
        site.submit(n=RUN_MAX, share=f"s{n}")
    here, ahead = site.node("two", 2), 4 * RUN_MAX

    served, leases = [], {slot: site.claim(here, 1, jobs=ahead, run_us=10.0) for slot in (0, 1)}
    for turn in range(12):
        site.flush_and_claim([site.entry(lease) for lease in leases[turn % 2]])
        leases[turn % 2] = site.claim(here, 1, jobs=ahead, run_us=10.0)
        served.append(len(_shares(site, leases[turn % 2])))

    # The first job of a slot comes from a share of its own, and a last run may be cut.
    assert min(served) >= 4
    assert max(served) <= 4 + 2
