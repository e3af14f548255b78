"""Work given ahead: only what a slot will get to soon, and never before every free slot has a job."""

from collections import Counter

from spinney.model.jobs import ClaimRequest, LaneRequest, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec

from .behind import RUN_MAX
from .words import Site, kind


def test_without_a_measured_run_time_nothing_is_looked_ahead(site: Site) -> None:
    site.submit(n=20)
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=10, run_us=None)

    assert Counter(lease.slot for lease in leases) == {0: 1, 1: 1}


def test_a_slot_gets_no_more_jobs_than_it_asks(site: Site) -> None:
    site.submit(n=50)
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=5, run_us=1.0)

    assert Counter(lease.slot for lease in leases) == {0: 5, 1: 5}


def test_fences_of_a_slot_grow_in_the_order_in_which_it_runs_them(site: Site) -> None:
    kinds = ("one", "tenacious", "parent")
    for n, of in enumerate(kinds):
        site.submit(of, n=10, queue=f"queue{n}")
    node = site.node("n", slots=4)

    leases = site.claim(node, jobs=6, run_us=1.0)

    assert Counter(lease.slot for lease in leases) == {0: 6, 1: 6, 2: 6, 3: 6}
    assert {lease.type for lease in leases if lease.slot == 0} == set(kinds)
    for slot in range(4):
        fences = [lease.fence for lease in leases if lease.slot == slot]
        assert fences == sorted(fences)
    assert len({lease.fence for lease in leases}) == 24
    assert site.pass_(*leases).refused == []


def test_a_queue_at_its_limit_is_given_more_in_the_slots_that_it_has(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="default", limit=2)])
    site.submit(n=50)
    node = site.node("n", slots=3)

    leases = site.claim(node, jobs=5, run_us=1.0)

    assert Counter(lease.slot for lease in leases) == {0: 5, 1: 5}


def test_nothing_is_put_behind_a_stage_that_goes_on_in_its_slot_and_may_take_long(site: Site) -> None:
    job = site.submit_one("three")
    node = site.node("n", slots=1)
    (lease,) = site.claim(node)
    del node.busy[lease.fence]
    site.submit(n=5)
    lanes = {**site.lanes(run_us=10.0), ("three", "second"): LaneRequest()}

    answer = site.flush_and_claim(
        [site.entry(lease, keep=True)],
        ClaimRequest(node_id=node.id, slots=[SlotRequest(0, 10, 1e5, True)], lanes=lanes),
    )

    assert [(kept.job_id, kept.stage) for kept in answer.leases] == [(job, "second")]


def test_a_slot_gets_no_more_run_time_than_it_asks(site: Site) -> None:
    site.submit(n=50)
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=200, run_us=25_000.0, budget_us=100_000.0)

    assert Counter(lease.slot for lease in leases) == {0: 4, 1: 4}


def test_a_free_slot_gets_one_job_however_long_it_runs(site: Site) -> None:
    site.submit(n=5)
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=10, run_us=9e9, budget_us=1000.0)

    assert Counter(lease.slot for lease in leases) == {0: 1, 1: 1}


def test_every_free_slot_gets_one_job_before_anything_is_looked_ahead(site: Site) -> None:
    site.submit(n=4)
    node = site.node("n", slots=4)

    leases = site.claim(node, jobs=50, run_us=1.0)

    assert Counter(lease.slot for lease in leases) == {0: 1, 1: 1, 2: 1, 3: 1}


def test_a_busy_slot_may_be_given_work_ahead_behind_the_free_ones(site: Site) -> None:
    site.submit_one()
    node = site.node("n", slots=2)
    (first,) = site.claim(node, slots=1)
    site.submit(n=3)
    want = ClaimRequest(
        node_id=node.id,
        slots=[SlotRequest(first.slot, 5, 1e5, False), SlotRequest(1 - first.slot, 1, 1e5, True)],
        lanes=site.lanes(run_us=1000.0),
    )

    leases = site.flush_and_claim([], want).leases

    assert Counter(lease.slot for lease in leases) == {first.slot: 2, 1 - first.slot: 1}
    assert len({lease.job_id for lease in leases}) == 3


def test_a_slot_without_a_warm_worker_gets_only_what_needs_none(site: Site) -> None:
    site.knows(kind("warm", "work"), kind("thread", "work"))
    site.submit("warm", n=3, priority=1)
    (thread,) = site.submit("thread", priority=2)
    lanes = {("warm", "work"): LaneRequest(), ("thread", "work"): LaneRequest(warm=False)}
    slots = [
        SlotRequest(0, 1, 1e5, True),
        SlotRequest(1, 1, 0.0, True, warm=False),
        SlotRequest(2, 1, 0.0, True, warm=False),
    ]

    leases = site.flush_and_claim(
        [], ClaimRequest(node_id=site.node("n", slots=3).id, slots=slots, lanes=lanes)
    ).leases

    assert {lease.slot: lease.type for lease in leases} == {0: "warm", 1: "thread"}
    assert [lease.job_id for lease in leases if lease.slot == 1] == [thread]


def test_one_claim_gives_no_more_than_a_bounded_number(site: Site) -> None:
    site.submit(n=6_000)
    node = site.node("n", slots=8)

    answer = site.flush_and_claim([], site.want(node, jobs=600, run_us=1.0))

    assert 100 <= len(answer.leases) <= 1_000
    assert answer.starved
    assert {lease.slot for lease in answer.leases} == set(range(8))


def test_look_ahead_within_one_slot_occupies_one_slot_of_the_limit(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=1)])
    site.submit(n=20, queue="q")
    ours, theirs = site.node("ours", 4), site.node("theirs", 4)

    leases = site.claim(ours, jobs=6, run_us=1.0)

    assert len({lease.slot for lease in leases}) == 1
    assert 1 <= len(leases) <= 6
    assert site.claim(theirs) == []


def test_of_many_shares_with_little_each_all_are_given_ahead(site: Site) -> None:
    for n in range(60):
        site.submit(n=1 + n % 2, share=f"share {n}")
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=30, run_us=1.0)

    assert Counter(lease.slot for lease in leases) == {0: 30, 1: 30}
    assert len({site.job(lease.job_id).share for lease in leases}) >= 58


def test_short_jobs_of_a_share_follow_one_another_but_not_many(site: Site) -> None:
    for n in range(5):
        site.submit(n=3 * RUN_MAX, share=f"share {n}")
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=2 * RUN_MAX, run_us=1.0)

    held = Counter(site.job(lease.job_id).share for lease in leases)
    # The first job of a slot comes from a share of its own.
    assert RUN_MAX <= max(held.values()) <= 1 + RUN_MAX
    assert len(held) >= 4


def test_shares_that_have_less_than_a_run_follow_one_another_with_all_they_have(site: Site) -> None:
    little = RUN_MAX // 4
    for n in range(60):
        site.submit(n=little, share=f"share {n}")
    node = site.node("n", slots=1)

    leases = site.claim(node, jobs=10 * little, run_us=1.0)

    held = Counter(site.job(lease.job_id).share for lease in leases)
    assert len(leases) == 10 * little
    # The first job of the slot comes from a share of its own.
    assert len(held) <= 10 + 2


def test_jobs_that_take_a_while_are_given_ahead_one_of_each_share(site: Site) -> None:
    for n in range(20):
        site.submit(n=50, share=f"share {n}")
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=11, run_us=1_000.0)

    held = Counter(site.job(lease.job_id).share for lease in leases)
    assert sorted(held.values()) == [1] * 18 + [2] * 2


def test_work_ahead_is_dealt_by_shares_too(site: Site) -> None:
    site.submit(n=50, share="ann")
    site.submit(n=50, share="bob")
    node = site.node("n", slots=2)

    leases = site.claim(node, jobs=10, run_us=1.0)

    held = Counter(site.job(lease.job_id).share for lease in leases)
    assert held == {"ann": 10, "bob": 10}


def test_work_given_ahead_goes_back_uncounted_to_where_it_was(site: Site) -> None:
    ids = site.submit(n=3)
    node = site.node("n", slots=1)
    leases = site.claim(node, jobs=3, run_us=1.0)

    site.flush_and_claim([site.entry(lease, Outcome.RETURNED, started_us=0) for lease in leases[1:]])

    again = [site.claim_one() for _ in range(2)]
    assert [lease.job_id for lease in again] == ids[1:]
    assert [lease.attempt for lease in again] == [1, 1]


def test_nothing_is_put_behind_a_job_that_may_take_long(site: Site) -> None:
    site.knows(kind("long", "work"), kind("short", "work"))
    site.submit("long", priority=1)
    site.submit("short", n=5)
    lanes = {("long", "work"): LaneRequest(), ("short", "work"): LaneRequest(run_us=5.0)}

    want = ClaimRequest(node_id=site.here.id, slots=[SlotRequest(0, 10, 1e5, True)], lanes=lanes)

    assert [lease.type for lease in site.flush_and_claim([], want).leases] == ["long"]


def test_what_cannot_be_given_ahead_is_not_kept_waiting_by_what_can(site: Site) -> None:
    """A slot that is filled again and again never comes free for it."""
    site.knows(kind("slow", "work"))
    site.submit(n=1_000)
    node = site.node("n", slots=1)
    lanes = {**site.lanes(run_us=1_000.0), ("slow", "work"): LaneRequest()}
    held = site.flush_and_claim(
        [], ClaimRequest(node_id=node.id, slots=[SlotRequest(0, 10, 1e5, True)], lanes=lanes)
    ).leases
    slow = site.submit_one("slow")

    ran = []
    for _ in range(40):
        site.clock.forward(0.01)
        done, held = held[:5], held[5:]
        ahead = SlotRequest(0, 10 - len(held), 1e5, not held)
        answer = site.flush_and_claim(
            [site.entry(lease) for lease in done], ClaimRequest(node_id=node.id, slots=[ahead], lanes=lanes)
        )
        held += answer.leases
        ran += [lease.job_id for lease in answer.leases]
        if slow in ran:
            break

    assert slow in ran, "a slot came free for it"
    assert len(ran) >= 25, "and until then slots were filled ahead"
