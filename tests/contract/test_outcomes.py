"""What becomes of a job with each outcome of a stage."""

import pytest

from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.types import Backoff

from .words import Site, kind, locked, stage

PATIENT = kind("patient", stage("work", max_attempts=9), "then")


@pytest.fixture
def patient(site: Site) -> Site:
    site.knows(PATIENT)
    return site


# --- passed ---------------------------------------------------------------------------------


def test_the_last_passed_stage_completes_the_job(site: Site) -> None:
    job = site.submit_one()
    lease = site.run(job)
    site.clock.forward(3)

    site.pass_(lease)

    done = site.job(job)
    assert (done.state, done.stage, done.settled_us) == (State.COMPLETED, None, site.now)
    assert done.fence is None
    assert site.claim() == []


def test_a_passed_stage_takes_the_job_to_its_next_one(site: Site) -> None:
    job = site.submit_one("three")

    site.pass_(site.run(job))

    assert (site.state(job), site.job(job).stage) == (State.PENDING, "second")
    assert site.claim_one().stage == "second"


def test_stages_run_in_their_order_once_each(site: Site) -> None:
    job = site.submit_one("three")

    ran = site.drain()

    assert ran == [(job, "first"), (job, "second"), (job, "third")]
    assert site.state(job) is State.COMPLETED


def test_a_warning_passes_and_is_counted_on_the_job(site: Site) -> None:
    job = site.submit_one("three")

    site.record(site.run(job), Outcome.WARNING, message="two rows skipped", result=2)
    site.record(site.run(job), Outcome.WARNING)
    site.pass_(site.run(job))

    assert (site.state(job), site.job(job).warnings) == (State.COMPLETED, 2)
    assert site.store.results(job)["first"] == 2


def test_not_applicable_passes_and_stores_no_value(site: Site) -> None:
    job = site.submit_one("three")

    site.record(site.run(job), Outcome.NOT_APPLICABLE, message="nothing to do here")

    assert site.job(job).stage == "second"
    assert "first" not in site.store.results(job)
    assert [a.outcome for a in site.store.attempts(job)] == [Outcome.NOT_APPLICABLE]


def test_finish_completes_the_job_without_its_later_stages(site: Site) -> None:
    job = site.submit_one("three")

    site.record(site.run(job), Outcome.FINISH, result="early")

    assert (site.state(job), site.job(job).stage) == (State.COMPLETED, None)
    assert site.claim() == []
    assert site.store.results(job) == {"first": "early"}


def test_a_stage_starts_only_when_the_one_before_is_durable(site: Site) -> None:
    job = site.submit_one("three")
    site.run(job)

    assert site.claim() == []


# --- errors ---------------------------------------------------------------------------------


def test_an_error_without_attempts_left_fails_the_job_where_it_stands(site: Site) -> None:
    job = site.submit_one("three")
    site.pass_(site.run(job))

    site.record(site.run(job), Outcome.ERROR, message="no such host", error={"type": "OSError"})

    failed = site.job(job)
    assert (failed.state, failed.stage, failed.message) == (State.FAILED, "second", "no such host")
    assert failed.settled_us == site.now
    assert site.claim() == []


def test_an_error_is_tried_again_after_a_rest(site: Site) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), Outcome.ERROR, message="busy")

    resting = site.job(job)
    assert (resting.state, resting.stage, resting.attempts) == (State.SCHEDULED, "work", 1)
    assert (resting.wake_us, resting.message) == (site.now + 1_000_000, "busy")
    assert site.claim() == []
    site.later(1)
    assert site.claim_one().attempt == 2


def test_each_rest_is_longer_up_to_the_cap(patient: Site) -> None:
    job = patient.submit_one("patient")

    rests = []
    for _ in range(5):
        patient.record(patient.run(job), Outcome.ERROR)
        wake_us = patient.job(job).wake_us
        assert wake_us is not None
        rests.append((wake_us - patient.now) / 1e6)
        patient.later(rests[-1])

    assert rests == [1, 2, 3, 3, 3]


def test_a_jittered_rest_lies_within_its_share_below_the_full_one(site: Site) -> None:
    backoff = Backoff(base_s=10, factor=2, cap_s=15, jitter=0.4)
    site.knows(kind("jittery", stage("work", max_attempts=2, backoff=backoff)))
    ids = site.submit("jittery", n=30)

    for lease in site.claim():
        site.record(lease, Outcome.ERROR)

    rests = [((site.job(job).wake_us or 0) - site.now) / 1e6 for job in ids]
    assert all(6 <= rest <= 10 for rest in rests)
    assert len(set(rests)) > 1


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.TIMEOUT])
def test_the_last_allowed_attempt_fails_the_job(site: Site, outcome: Outcome) -> None:
    job = site.submit_one("tenacious")

    for rest in (1, 2):
        site.record(site.run(job), outcome)
        assert site.state(job) is State.SCHEDULED
        site.later(rest)
    site.record(site.run(job), outcome)

    assert site.state(job) is State.FAILED


def test_an_error_that_is_not_retryable_fails_at_once(site: Site) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), Outcome.ERROR, retryable=False, message="bad input")

    assert (site.state(job), site.job(job).message) == (State.FAILED, "bad input")


def test_attempts_are_counted_anew_in_the_next_stage(patient: Site) -> None:
    job = patient.submit_one("patient")
    patient.record(patient.run(job), Outcome.ERROR)
    patient.later(1)

    patient.pass_(patient.run(job))

    assert patient.job(job).attempts == 0
    assert patient.claim_one().attempt == 1


def test_the_handlers_own_code_is_kept_on_the_job(site: Site) -> None:
    job = site.submit_one()

    site.record(site.run(job), Outcome.ERROR, retryable=False, code=42, message="quota exceeded")

    assert (site.state(job), site.job(job).code) == (State.FAILED, 42)


@pytest.mark.parametrize("needed", [False, True])
@pytest.mark.parametrize("end", [Outcome.OK, Outcome.ERROR])
def test_the_code_is_that_of_the_last_outcome_and_none_where_that_gave_none(
    site: Site, end: Outcome, needed: bool
) -> None:
    site.knows(kind("two", "first", "second"))
    job = site.submit_one("two")
    site.record(site.run(job), Outcome.WARNING, code=7)
    assert site.job(job).code == 7
    if needed:
        site.submit_one(needs=(job,))

    site.record(site.run(job), end, retryable=False)

    assert site.job(job).code is None


def test_a_completed_job_with_a_result_has_no_code_of_an_earlier_stage(site: Site) -> None:
    site.knows(kind("two", "first", "second"))
    job = site.submit_one("two")
    site.record(site.run(job), Outcome.WARNING, code=7)

    site.pass_(site.run(job), result=1)

    assert site.job(job).code is None


# --- neither passed nor failed --------------------------------------------------------------


def test_a_deferred_job_comes_again_after_its_seconds_without_using_an_attempt(site: Site) -> None:
    job = site.submit_one()

    site.record(site.run(job), Outcome.DEFER, delay_s=30.0, message="disk is full")

    waiting = site.job(job)
    assert (waiting.state, waiting.wake_us) == (State.SCHEDULED, site.now + 30_000_000)
    assert (waiting.attempts, waiting.message) == (0, "disk is full")
    site.later(29)
    assert site.claim() == []
    site.later(1)
    assert site.claim_one().attempt == 1


def test_a_job_may_be_deferred_more_often_than_it_has_attempts(site: Site) -> None:
    job = site.submit_one()

    for _ in range(5):
        site.record(site.run(job), Outcome.DEFER, delay_s=1.0)
        site.later(1)
    site.pass_(site.run(job))

    assert site.state(job) is State.COMPLETED


def test_a_hold_parks_the_job_with_its_reason_for_an_operator(site: Site) -> None:
    job = site.submit_one("three")

    site.record(site.run(job), Outcome.HOLD, message="look at the digest")

    held = site.job(job)
    assert (held.state, held.stage, held.attempts) == (State.HELD, "first", 0)
    assert held.message == "look at the digest"
    site.later(3600)
    assert site.claim() == []


def test_what_is_handed_back_goes_back_uncounted(site: Site) -> None:
    job = site.submit_one()

    for _ in range(5):
        lease = site.claim_one()
        assert lease.attempt == 1
        site.record(lease, Outcome.RETURNED, started_us=0)

    back = site.job(job)
    assert (back.state, back.attempts, back.interruptions) == (State.PENDING, 0, 0)


def test_a_returned_job_keeps_its_place_before_later_ones(site: Site) -> None:
    first, second = site.submit(n=2)

    site.record(site.claim_one(), Outcome.RETURNED, started_us=0)

    assert [site.claim_one().job_id for _ in range(2)] == [first, second]


# --- died -----------------------------------------------------------------------------------


def test_a_dead_worker_uses_an_attempt_and_is_counted_as_interruption(site: Site) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), Outcome.DIED, message="killed by SIGSEGV")

    died = site.job(job)
    assert (died.state, died.attempts, died.interruptions) == (State.SCHEDULED, 1, 1)


def test_a_job_that_kills_its_worker_so_often_is_failed_as_poison(patient: Site) -> None:
    job = patient.submit_one("patient")

    for rest in (1, 2):
        patient.record(patient.run(job), Outcome.DIED)
        assert patient.state(job) is State.SCHEDULED
        patient.later(rest)
    patient.record(patient.run(job), Outcome.DIED)

    assert patient.state(job) is State.FAILED
    assert "poison" in (patient.job(job).message or "")


def test_what_died_before_it_began_is_handed_back_uncounted(site: Site) -> None:
    job = site.submit_one()

    site.record(site.claim_one(), Outcome.DIED, started_us=0)

    back = site.job(job)
    assert (back.state, back.attempts, back.interruptions) == (State.PENDING, 0, 0)


# --- a lane put to sleep --------------------------------------------------------------------


def _sleeping_lane(site: Site, n: int = 6) -> list[int]:
    """``n`` jobs of one lane, the first of which put the lane to sleep for 60 seconds."""
    ids = site.submit(n=n)
    site.record(site.run(ids[0]), Outcome.DEFER, delay_s=60.0, lane=True, message="disk is full")
    return ids


def test_a_lane_put_to_sleep_gives_no_job_before_its_time(site: Site) -> None:
    _sleeping_lane(site)
    other = site.submit_one("three")

    assert [lease.job_id for lease in site.claim()] == [other]
    site.later(59)
    assert site.claim() == []


def test_a_sleeping_lane_tells_when_it_is_due(site: Site) -> None:
    _sleeping_lane(site)

    assert site.flush_and_claim([], site.want(site.here)).wake_us == site.now + 60_000_000


def test_a_lane_that_wakes_lets_one_probe_first(site: Site) -> None:
    _sleeping_lane(site)
    site.later(60)

    assert len(site.claim()) == 1
    assert site.claim() == []


@pytest.mark.parametrize("at_once", [True, False])
def test_one_job_probes_for_a_stage_whose_jobs_are_in_several_queues(site: Site, at_once: bool) -> None:
    first, *_ = _sleeping_lane(site, n=2)
    beside = site.submit(n=2, queue="beside")
    site.later(60)

    claims = [site.claim()] if at_once else [site.claim(slots=1), site.claim()]

    assert [len(leases) for leases in claims] == ([1] if at_once else [1, 0])
    (probe,) = claims[0]
    site.pass_(probe)
    assert {lease.job_id for lease in site.claim()} | {probe.job_id} == {first, first + 1, *beside}


def test_who_began_before_its_lane_slept_is_no_probe_and_bars_none(site: Site) -> None:
    site.run(site.submit_one())
    _, *others = _sleeping_lane(site, n=3)
    site.later(59)
    assert site.claim() == []
    site.later(1)

    (probe,) = site.claim()
    assert site.claim() == [], "one at a time"
    site.pass_(probe)
    assert {lease.job_id for lease in site.claim()} | {probe.job_id} >= {*others}


def test_who_finds_its_lock_taken_is_no_probe_and_bars_none(site: Site) -> None:
    site.knows(kind("holder", stage("work", locks=locked("receiver:{serno}"))))
    first = site.submit_one("locked", {"serno": "A"})
    site.record(site.run(first), Outcome.DEFER, delay_s=60.0, lane=True)
    site.run(site.submit_one("holder", {"serno": "A"}, queue="before"))  # so that the first's queue is next
    free = site.submit_one("locked", {"serno": "B"}, queue="later")
    site.later(60)

    assert [lease.job_id for lease in site.claim()] == [free]


def test_those_who_wait_for_a_probe_keep_no_slot_from_others_of_their_shares(site: Site) -> None:
    _sleeping_lane(site, n=1)
    for share in "abcd":
        site.submit("one", share=share)
    others = [site.submit_one("three", share=share) for share in "abcd"]
    site.submit_one("three", priority=99)
    site.later(60)

    probe, *leases = site.claim(slots=4)

    assert probe.type == "one"
    assert {lease.job_id for lease in leases} < set(others)


def test_a_slot_goes_to_the_first_of_a_woken_lane_whose_lock_is_free(site: Site) -> None:
    site.knows(kind("holder", stage("work", locks=locked("receiver:{serno}"))))
    site.record(site.run(site.submit_one("locked", {"serno": "A"})), Outcome.DEFER, delay_s=60.0, lane=True)
    site.run(site.submit_one("holder", {"serno": "A"}))
    site.submit("locked", *[{"serno": "A"}] * 3, {"serno": "B"}, share="ann")
    site.later(60)

    assert [lease.params for lease in site.claim()] == ['{"serno": "B"}']


def test_a_probe_that_passes_lets_the_others_go_on(site: Site) -> None:
    ids = _sleeping_lane(site)
    site.later(60)
    (probe,) = site.claim()

    site.pass_(probe)

    assert {lease.job_id for lease in site.claim()} | {probe.job_id} == set(ids)


def test_a_probe_that_defers_its_lane_puts_it_to_sleep_again(site: Site) -> None:
    _sleeping_lane(site)
    site.later(60)
    (probe,) = site.claim()

    site.record(probe, Outcome.DEFER, delay_s=60.0, lane=True)

    site.later(59)
    assert site.claim() == []
    site.later(1)
    assert len(site.claim()) == 1


@pytest.mark.parametrize("how", ["lost", "returned", "failed", "cancelled", "held"])
def test_a_lane_whose_probe_ended_otherwise_does_not_sleep_for_ever(site: Site, how: str) -> None:
    ids = _sleeping_lane(site)
    node = site.node("n", slots=8)
    site.later(60)
    (probe,) = site.claim(node)
    site.start(probe)

    match how:
        case "lost":
            site.recover(node)
        case "returned":
            site.record(probe, Outcome.RETURNED)
        case "failed":
            site.fail(probe)
        case "cancelled":
            site.cancel(probe.job_id)
            site.record(probe, Outcome.CANCELLED)
        case "held":
            site.record(probe, Outcome.HOLD)

    site.later(60)
    done = {job for job, _ in site.drain()}
    assert done | {probe.job_id} == set(ids)


def test_a_lane_asleep_leaves_other_stages_and_types_alone(site: Site) -> None:
    site.knows(kind("two", "first", "second"))
    ahead = site.submit_one("two")
    site.pass_(site.run(ahead))
    behind = site.submit("two", n=3)
    leases = site.claim_by_job()
    site.record(leases.pop(behind[0]), Outcome.DEFER, delay_s=60.0, lane=True)
    site.pass_(leases.pop(ahead), leases.pop(behind[1]), leases.pop(behind[2]))

    assert {(lease.job_id, lease.stage) for lease in site.claim()} == {
        (behind[1], "second"),
        (behind[2], "second"),
    }
