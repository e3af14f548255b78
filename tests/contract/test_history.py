"""The history of a job: every attempt, who ran it, when, and what became of it."""

import pytest

from spinney.model.outcomes import Outcome

from .words import Site

ERROR = {"type": "OSError", "message": "no such host", "traceback": "Traceback …"}


def test_every_attempt_is_kept_oldest_first(site: Site) -> None:
    job = site.submit_one("tenacious")
    for rest in (1, 2):
        site.record(site.run(job), Outcome.ERROR)
        site.later(rest)
    site.pass_(site.run(job))

    attempts = site.store.attempts(job)

    assert [a.outcome for a in attempts] == [Outcome.ERROR, Outcome.ERROR, Outcome.OK]
    assert [a.attempt for a in attempts] == [1, 2, 3]
    assert [a.fence for a in attempts] == sorted(a.fence for a in attempts)
    assert {(a.job_id, a.stage, a.superseded) for a in attempts} == {(job, "work", False)}


def test_an_attempt_tells_where_and_when_it_ran(site: Site) -> None:
    node = site.node("n-1")
    lease = site.run(site.submit_one(), node)
    started_us = site.now
    site.clock.forward(7)

    site.flush_and_claim([site.entry(lease, started_us=started_us, ended_us=site.now)])

    (attempt,) = site.store.attempts(lease.job_id)
    assert (attempt.node, attempt.fence) == ("n-1", lease.fence)
    assert (attempt.started_us, attempt.ended_us) == (started_us, site.now)


def test_an_error_keeps_its_traceback_type_stage_and_attempt(site: Site) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), Outcome.ERROR, error=ERROR, message="no such host", code=7)

    (attempt,) = site.store.attempts(job)
    assert attempt.error == ERROR
    assert (attempt.stage, attempt.attempt, attempt.code) == ("work", 1, 7)
    assert attempt.message == "no such host"


def test_a_running_attempt_is_last_and_has_no_outcome(site: Site) -> None:
    job = site.submit_one("three")
    site.pass_(site.run(job))
    lease = site.run(job)

    passed, running = site.store.attempts(job)

    assert (passed.stage, passed.outcome) == ("first", Outcome.OK)
    assert (running.stage, running.outcome, running.ended_us) == ("second", None, None)
    assert (running.fence, running.node) == (lease.fence, "here")


def test_the_history_of_a_handed_over_job_names_every_stage(site: Site) -> None:
    job = site.submit_one("three")
    lease = site.run(job)
    while leases := site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here, 0)).leases:
        (lease,) = leases

    assert [(a.stage, a.outcome) for a in site.store.attempts(job)] == [
        ("first", Outcome.OK),
        ("second", Outcome.OK),
        ("third", Outcome.OK),
    ]


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.OK,
        Outcome.WARNING,
        Outcome.NOT_APPLICABLE,
        Outcome.ERROR,
        Outcome.DEFER,
        Outcome.HOLD,
        Outcome.FINISH,
        Outcome.TIMEOUT,
        Outcome.DIED,
    ],
)
def test_every_word_of_a_stage_stands_in_the_history(site: Site, outcome: Outcome) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), outcome, message="why")

    (attempt,) = site.store.attempts(job)
    assert (attempt.outcome, attempt.message) == (outcome, "why")


def test_a_value_stands_in_the_history(site: Site) -> None:
    job = site.submit_one()

    site.pass_(site.run(job), result={"n": 1})

    assert site.store.attempts(job)[0].result == {"n": 1}


def test_a_job_that_never_ran_has_no_history(site: Site) -> None:
    assert site.store.attempts(site.submit_one()) == []


def test_a_refused_record_takes_no_place_of_an_attempt_that_counts(site: Site) -> None:
    dead = site.node("dead")
    late = site.run(site.submit_one(), dead)
    site.recover(dead)
    site.pass_(late, result="late")

    site.pass_(site.run(late.job_id), result="right")

    assert site.store.results(late.job_id) == {"work": "right"}
    assert [a.outcome for a in site.store.attempts(late.job_id) if a.fence != late.fence] == [Outcome.OK]


def test_what_settled_tells_when(site: Site) -> None:
    job = site.submit_one()
    created_us = site.now
    site.clock.forward(1)
    lease = site.run(job)
    started_us = site.now
    site.clock.forward(1)

    site.flush_and_claim([site.entry(lease, started_us=started_us, ended_us=site.now)])

    seen = site.job(job)
    assert (seen.created_us, seen.started_us, seen.settled_us) == (created_us, started_us, site.now)
    assert seen.node == "here"


def test_a_job_says_where_output_is_that_could_not_be_told_apart(site: Site) -> None:
    job = site.submit_one()

    site.record(site.claim_one(), Outcome.OK, remark="it wrote more than that")

    assert site.job(job).message == "it wrote more than that"
