"""Claims: strict priority first, queues in turn, order within a queue, limits never exceeded."""

import json
from collections.abc import Callable

import pytest

from spinney.model.jobs import ClaimRequest, SlotRequest
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site, kind, submission

# --- what a lease is ------------------------------------------------------------------------


def test_a_claim_tells_the_node_all_that_it_needs(site: Site) -> None:
    parent, (child,) = site.family(n=1)
    node = site.node("n", slots=2)

    lease = site.claim_one(node)

    assert (lease.job_id, lease.type, lease.stage, lease.attempt) == (child, "one", "work", 1)
    assert (lease.params, lease.parent_id, lease.root_id) == ("{}", parent, parent)
    assert lease.slot in range(2)


def test_parameters_travel_as_the_text_that_was_submitted(site: Site) -> None:
    site.submit_one(params={"serno": "SG-1", "n": 3, "s": "ü"})

    assert json.loads(site.claim_one().params) == {"serno": "SG-1", "n": 3, "s": "ü"}


def test_a_claimed_job_is_shown_as_claimed_and_then_as_running(site: Site) -> None:
    job = site.submit_one()
    node = site.node("n")
    lease = site.claim_one(node)
    claimed = site.job(job)
    site.clock.forward(2)

    site.start(lease)

    assert (claimed.state, claimed.node, claimed.fence) == (State.CLAIMED, "n", lease.fence)
    running = site.job(job)
    assert (running.state, running.node, running.fence) == (State.RUNNING, "n", lease.fence)
    assert running.started_us == site.now


def test_to_start_an_unknown_fence_is_no_mistake(site: Site) -> None:
    site.submit_one()
    lease = site.claim_one()
    site.pass_(lease)

    site.store.started([lease.fence, 987_654_321], now_us=site.now)

    assert site.state(lease.job_id) is State.COMPLETED


def test_very_many_are_started_in_one_call_and_no_others(
    site: Site, open_another: Callable[[], Store]
) -> None:
    site.submit(n=310)
    node = site.node("n", slots=310)
    leases = site.claim(node)
    ended, started, left = leases[:10], leases[10:160], leases[160:]
    site.pass_(*ended)
    site.clock.forward(2)
    unknown = range(10**9, 10**9 + 300_000)
    fences = [lease.fence for lease in (*ended, *started, *started)]

    site.store.started([*unknown, *fences], now_us=site.now)

    other = open_another()
    assert site.count() == {State.COMPLETED: 10, State.RUNNING: 150, State.CLAIMED: 150}
    assert {(j.state, j.started_us) for j in (other.job(lease.job_id) for lease in started)} == {
        (State.RUNNING, site.now)
    }
    assert {(j.state, j.started_us) for j in (other.job(lease.job_id) for lease in left)} == {
        (State.CLAIMED, None)
    }


def test_to_start_nothing_is_no_mistake(site: Site) -> None:
    job = site.submit_one()
    site.claim_one()

    site.store.started([], now_us=site.now)

    assert site.state(job) is State.CLAIMED


def test_a_job_is_claimed_by_one_node_only(site: Site) -> None:
    ids = site.submit(n=3)
    ours, theirs = site.node("ours", 8), site.node("theirs", 8)

    first, second = site.claim(ours), site.claim(theirs)

    assert sorted(lease.job_id for lease in first) == ids
    assert second == []


def test_fences_only_grow_over_all_nodes(site: Site) -> None:
    site.submit(n=6)
    ours, theirs = site.node("ours", 8), site.node("theirs", 8)
    fences = []

    for node in (ours, theirs, ours):
        leases = site.claim(node, slots=2)
        fences += [lease.fence for lease in leases]
        site.fail(*leases)
    site.retry(site.ids()[0])
    fences.append(site.claim_one(theirs).fence)

    assert fences == sorted(set(fences))
    assert len(fences) == 7


def test_every_slot_that_asks_gets_at_most_what_it_asks(site: Site) -> None:
    site.submit(n=9)
    node = site.node("n", slots=4)

    leases = site.claim(node, slots=3)

    assert len(leases) == 3
    assert len({lease.slot for lease in leases}) == 3


def test_nothing_is_claimed_where_there_is_nothing(site: Site) -> None:
    answer = site.flush_and_claim([], site.want(site.here))

    assert (answer.leases, answer.refused, answer.starved) == ([], [], False)


def test_the_answer_says_when_work_was_left_for_want_of_room(site: Site) -> None:
    site.submit(n=3)
    node = site.node("n", slots=4)

    assert site.flush_and_claim([], site.want(node, 1)).starved
    assert not site.flush_and_claim([], site.want(node, 2)).starved


def test_the_answer_says_when_a_scheduled_job_becomes_due(site: Site) -> None:
    site.submit_one(at_us=site.now + 90_000_000)
    site.submit_one(at_us=site.now + 30_000_000)

    assert site.flush_and_claim([], site.want(site.here)).wake_us == site.now + 30_000_000


# --- lanes ----------------------------------------------------------------------------------


def test_a_node_gets_only_lanes_that_it_knows(site: Site) -> None:
    site.submit_one("three")
    job = site.submit_one("one")

    leases = site.claim(lanes=[("one", "work")])

    assert [lease.job_id for lease in leases] == [job]


def test_a_job_that_no_node_knows_stays_pending(site: Site) -> None:
    job = site.submit_one("three")

    assert site.claim(lanes=[("one", "work"), ("three", "second")]) == []
    site.later(3600)

    assert site.state(job) is State.PENDING


def test_work_of_unknown_lanes_bars_nobody_even_at_first_priority(site: Site) -> None:
    site.submit("three", n=20, priority=0)
    job = site.submit_one("one", priority=99)

    assert site.claim_one(lanes=[("one", "work")]).job_id == job


# --- priority -------------------------------------------------------------------------------


def test_the_smaller_number_goes_first_whenever_it_came(site: Site) -> None:
    last, first, middle = (site.submit_one(priority=p) for p in (99, 0, 50))

    assert [site.claim_one().job_id for _ in range(3)] == [first, middle, last]


def test_priority_is_strict_over_all_queues_that_a_node_serves(site: Site) -> None:
    site.submit(n=4, queue="a", priority=20)
    urgent = site.submit(n=3, queue="b", priority=10)
    node = site.node("n", slots=4)

    leases = site.claim(node)

    assert [lease.job_id in urgent for lease in leases].count(True) == 3


def test_priority_is_strict_over_shares(site: Site) -> None:
    site.submit(n=3, share="ann", priority=20)
    urgent = site.submit(n=3, share="bob", priority=10)

    assert {lease.job_id for lease in site.claim(slots=3)} == set(urgent)


def test_a_limited_queue_of_first_priority_bars_no_other(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="a", limit=1)])
    site.submit(n=5, queue="a", priority=0)
    other = site.submit(n=5, queue="b", priority=90)

    leases = site.claim(slots=4)

    assert sum(lease.job_id in other for lease in leases) == 3


# --- queues in turn -------------------------------------------------------------------------


def test_within_a_priority_queues_take_turns(site: Site) -> None:
    site.submit(n=8, queue="a")
    site.submit(n=8, queue="b")

    leases = site.claim(slots=4)

    assert sorted(site.job(lease.job_id).queue for lease in leases) == ["a", "a", "b", "b"]


def test_queues_take_turns_over_single_claims_too(site: Site) -> None:
    for queue in "abc":
        site.submit(n=8, queue=queue)

    served = []
    for _ in range(6):
        lease = site.claim_one()
        served.append(site.job(lease.job_id).queue)
        site.pass_(lease)

    assert sorted(served[:3]) == ["a", "b", "c"]
    assert served[3:] == served[:3]


def test_a_queue_without_work_leaves_its_turn_to_others(site: Site) -> None:
    site.submit(n=1, queue="a")
    site.submit(n=8, queue="b")

    leases = site.claim(slots=6)

    assert len(leases) == 6


# --- order in a queue -----------------------------------------------------------------------


def _two_trees(site: Site, queue: str) -> tuple[list[int], list[int]]:
    """Two parents, the later one of which bore its children first; returns their children."""
    parents = site.submit("parent", n=2, queue="parents", share="s")
    leases = site.claim_by_job()
    older, younger = (leases[parent] for parent in parents)
    early = site.spawn(younger, n=2, queue=queue)
    site.pass_(younger)
    site.clock.forward(1)
    late = site.spawn(older, n=2, queue=queue)
    site.pass_(older)
    return late, early


def test_by_default_the_earliest_lineage_goes_first(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="none")])
    of_older, of_younger = _two_trees(site, "q")

    assert [site.claim_one().job_id for _ in range(4)] == of_older + of_younger


def test_fifo_goes_by_arrival_and_not_by_lineage(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", order="fifo")])
    of_older, of_younger = _two_trees(site, "q")

    assert [site.claim_one().job_id for _ in range(4)] == of_younger + of_older


def test_lifo_takes_the_latest_first(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", order="lifo")])
    first, second = site.submit(n=2, queue="q")
    third = site.submit_one(queue="q")

    assert [site.claim_one().job_id for _ in range(3)] == [third, second, first]


def test_fifo_holds_over_many_submissions_and_shares(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", order="fifo")])
    ids = [site.submit_one(queue="q", share=share) for share in "abaacb"]

    assert [lease.job_id for lease in site.claim(slots=6)] == ids


def test_jobs_of_one_share_go_in_the_order_of_their_submission(site: Site) -> None:
    ids = site.submit(n=5)

    assert [site.claim_one().job_id for _ in range(5)] == ids


# --- limits ---------------------------------------------------------------------------------


def test_a_limit_counts_occupied_slots_over_all_nodes(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=3)])
    site.submit(n=9, queue="q")
    ours, theirs = site.node("ours", 2), site.node("theirs", 4)

    first, second = site.claim(ours), site.claim(theirs)

    assert (len(first), len(second)) == (2, 1)
    assert site.claim(theirs) == []


def test_an_ended_attempt_makes_room_under_the_limit(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=1)])
    site.submit(n=3, queue="q")
    ours, theirs = site.node("ours", 2), site.node("theirs", 2)
    (lease,) = site.claim(ours)

    answer = site.flush_and_claim([site.entry(lease)], site.want(ours))

    assert len(answer.leases) == 1
    assert site.claim(theirs) == []


def test_nothing_starts_in_a_queue_with_limit_0(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=0)])
    job = site.submit_one(queue="q")
    other = site.submit_one()

    assert [lease.job_id for lease in site.claim()] == [other]
    assert site.state(job) is State.PENDING


def test_a_dead_nodes_slots_count_until_it_is_recovered(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=1)])
    site.submit(n=2, queue="q")
    dead, alive = site.node("dead", 1), site.node("alive", 4)
    site.start(*site.claim(dead))

    assert site.claim(alive) == []
    site.recover(dead)

    assert len(site.claim(alive)) == 1


def test_a_node_never_holds_more_slots_than_it_has(site: Site) -> None:
    site.submit(n=9)
    node = site.node("n", slots=2)
    greedy = ClaimRequest(
        node_id=node.id, slots=[SlotRequest(s, 1, 1e5, True) for s in range(5)], lanes=site.lanes()
    )

    leases = site.flush_and_claim([], greedy).leases
    leases += site.flush_and_claim([], greedy).leases

    assert len({lease.slot for lease in leases}) <= 2


def test_a_limit_holds_for_children_and_retries_alike(site: Site) -> None:
    site.knows(kind("kid", "work"), queues=[QueueSpec(name="q", limit=2)])
    _, born = site.family(n=3, child="kid", queue="q")
    site.submit(n=3, queue="q")
    leases = site.claim(slots=8)
    assert len(leases) == 2
    site.fail(*leases)
    for lease in leases:
        site.retry(lease.job_id)

    assert len(site.claim(slots=8)) == 2
    assert len(born) == 3


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_two_submissions_with_different_queues_fill_all_slots_but_never_beyond_a_limit(
    site: Site, limit: int
) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=limit)])
    site.submit_all(submission(n=10, queue="q"), submission(n=10, queue="free"))

    leases = site.claim(slots=8)

    assert len(leases) == 8
    assert sum(site.job(lease.job_id).queue == "q" for lease in leases) == min(limit, 4)
