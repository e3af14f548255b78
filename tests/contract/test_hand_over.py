"""From stage to stage in the same slot: the recording transaction keeps the lease when it may."""

import pytest

from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.types import Isolation

from .words import Site, kind, locked, stage


def _hand_over(site: Site, lease: Lease, outcome: Outcome = Outcome.OK) -> list[Lease]:
    """Record the stage as passed and ask to keep the slot; the node asks for nothing else."""
    record = site.entry(lease, outcome, keep=True)
    return site.flush_and_claim([record], site.want(site.here, 0)).leases


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.WARNING, Outcome.NOT_APPLICABLE])
def test_a_node_that_asks_keeps_the_lease_for_the_next_stage(site: Site, outcome: Outcome) -> None:
    job = site.submit_one("three", {"k": 1})
    first = site.run(job)

    (second,) = _hand_over(site, first, outcome)

    assert (second.job_id, second.stage, second.slot, second.attempt) == (job, "second", first.slot, 1)
    assert (second.type, second.params, second.root_id) == (first.type, first.params, first.root_id)
    assert site.job(job).fence == second.fence
    assert site.state(job) in (State.CLAIMED, State.RUNNING)
    assert site.claim() == []


def test_a_job_is_handed_over_up_to_its_end(site: Site) -> None:
    job = site.submit_one("three")
    lease = site.run(job)

    for _ in range(2):
        (lease,) = _hand_over(site, lease)

    assert _hand_over(site, lease) == []
    assert site.state(job) is State.COMPLETED
    assert site.stages_run(job) == ["first", "second", "third"]


def test_a_node_that_does_not_ask_keeps_nothing(site: Site) -> None:
    job = site.submit_one("three")

    answer = site.flush_and_claim([site.entry(site.run(job))], site.want(site.here, 0))

    assert answer.leases == []
    assert site.state(job) is State.PENDING


def test_an_error_keeps_nothing(site: Site) -> None:
    job = site.submit_one("tenacious")
    record = site.entry(site.run(job), Outcome.ERROR, keep=True)

    assert site.flush_and_claim([record], site.want(site.here, 0)).leases == []
    assert site.state(job) is State.SCHEDULED


def test_the_record_of_a_handed_over_stage_counts_only_once(site: Site) -> None:
    job = site.submit_one("three")
    record = site.entry(site.run(job), keep=True)
    (second,) = site.flush_and_claim([record], site.want(site.here, 0)).leases

    answer = site.flush_and_claim([record], site.want(site.here, 0))

    assert (answer.refused, answer.leases) == ([record], [])
    assert (site.job(job).stage, site.job(job).fence) == ("second", second.fence)


def test_another_queue_is_another_claim(site: Site) -> None:
    site.knows(kind("t", "first", stage("second", queue="net")))
    job = site.submit_one("t")

    assert _hand_over(site, site.run(job)) == []
    assert (site.state(job), site.job(job).queue) == (State.PENDING, "net")


def test_another_isolation_is_another_claim(site: Site) -> None:
    site.knows(kind("t", "first", stage("second", isolation=Isolation.COLD)))
    job = site.submit_one("t")

    assert _hand_over(site, site.run(job)) == []
    assert site.state(job) is State.PENDING


@pytest.mark.parametrize("urgent_first", [True, False])
def test_what_the_same_flush_makes_ready_is_not_overtaken(site: Site, urgent_first: bool) -> None:
    need, job = site.submit_one(), site.submit_one("three")
    leases = site.claim_by_job()
    urgent = site.submit_one(needs=(need,), priority=10)
    records = [site.entry(leases[job_id], keep=True) for job_id in (need, job)]

    answer = site.flush_and_claim(records[:: 1 if urgent_first else -1], site.want(site.here, slots=1))

    assert [lease.job_id for lease in answer.leases] == [urgent]


@pytest.mark.parametrize("urgent_first", [True, False])
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.WARNING])
def test_of_two_jobs_the_more_urgent_one_keeps_its_slot(
    site: Site, outcome: Outcome, urgent_first: bool
) -> None:
    # Given two jobs whose next stages need the same lock
    site.knows(kind("t", "first", stage("second", locks=locked("receiver"))))
    urgent, other = site.submit_one("t", priority=10), site.submit_one("t", priority=50)
    leases = site.claim_by_job()
    # When both have passed in one flush
    records = [site.entry(leases[urgent], outcome, keep=True), site.entry(leases[other], keep=True)]
    answer = site.flush_and_claim(records[:: 1 if urgent_first else -1], site.want(site.here, 0))
    # Then the more urgent one goes on
    assert [lease.job_id for lease in answer.leases] == [urgent]


def test_a_lock_taken_by_another_keeps_the_job_from_going_on(site: Site) -> None:
    site.knows(kind("t", "first", stage("second", locks=locked("receiver:{serno}"))))
    owner = site.submit_one("locked", {"serno": 1})
    site.run(owner)
    job = site.submit_one("t", {"serno": 1})

    assert _hand_over(site, site.run(job)) == []
    assert site.claim() == []
    assert site.state(job) in (State.PENDING, State.WAITING)


def test_a_free_lock_of_the_next_stage_is_taken_with_the_hand_over(site: Site) -> None:
    site.knows(kind("t", "first", stage("second", locks=locked("receiver:{serno}"))))
    job = site.submit_one("t", {"serno": 1})
    (second,) = _hand_over(site, site.run(job))
    rival = site.submit_one("locked", {"serno": 1})

    assert site.claim() == []
    site.pass_(second)

    assert site.claim_one().job_id == rival


@pytest.mark.parametrize(("priority", "first"), [(10, "other"), (50, "same"), (90, "same")])
def test_a_lock_of_both_stages_goes_to_the_job_that_is_first_in_its_line(
    site: Site, priority: int, first: str
) -> None:
    # Given two stages in a row with one lock, for which another job waits
    site.knows(kind("t", *(stage(name, locks=locked("receiver:{serno}")) for name in ("first", "second"))))
    job = site.submit_one("t", {"serno": 1}, priority=50)
    lease = site.run(job)
    other = site.submit_one("locked", {"serno": 1}, priority=priority)
    assert site.claim() == []
    assert site.state(other) is State.WAITING
    # When the first stage has passed
    kept = _hand_over(site, lease)
    # Then the slot is only kept when that job comes later
    assert len(kept) == (first == "same")
    assert [claimed.job_id for claimed in kept or site.claim()] == [other if first == "other" else job]


def test_a_cancel_wish_lets_no_later_stage_start(site: Site) -> None:
    job = site.submit_one("three")
    lease = site.run(job)
    site.cancel(job)

    assert _hand_over(site, lease) == []
    assert site.state(job) is State.CANCELLED


def test_waiting_work_of_higher_priority_goes_first(site: Site) -> None:
    job = site.submit_one("three", priority=50)
    lease = site.run(job)
    urgent = site.submit_one("one", priority=10)

    assert _hand_over(site, lease) == []
    assert site.state(job) is State.PENDING
    assert site.claim_one().job_id == urgent


@pytest.mark.parametrize("priority", [50, 90])
def test_waiting_work_of_equal_or_lower_priority_does_not(site: Site, priority: int) -> None:
    job = site.submit_one("three", priority=50)
    lease = site.run(job)
    site.submit_one("one", priority=priority)

    assert [kept.job_id for kept in _hand_over(site, lease)] == [job]


def test_a_job_that_waits_for_its_children_keeps_no_slot(site: Site) -> None:
    job = site.submit_one("parent")
    lease = site.run(job)
    site.spawn(lease)

    assert _hand_over(site, lease) == []
    assert site.state(job) is State.WAITING


def test_a_handed_over_slot_counts_once_against_the_limit(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=2)])
    first, second, _ = site.submit("three", n=3, queue="q")
    leases = site.claim_by_job(slots=2)
    (kept,) = _hand_over(site, leases[first])

    assert site.claim() == []
    site.fail(leases[second])

    assert len(site.claim()) == 1
    assert site.job(first).fence == kept.fence
