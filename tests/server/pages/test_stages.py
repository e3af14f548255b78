from dataclasses import replace
from typing import Any

from contract.words import kind
from server.pages.sample_jobs import attempt, job
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.web.pages.stages import steps

SPEC = kind("three", "first", "second", "third")


def status(of: Any, *attempts: Any) -> list[str]:
    return [step.status for step in steps(of, SPEC, attempts)]


def test_given_a_job_that_waits_between_stages_then_what_passed_and_what_comes_is_told() -> None:
    shown = job(state=State.WAITING, stage="second")

    assert status(shown, attempt("first", Outcome.WARNING)) == ["warning", "waiting", "later"]


def test_given_a_job_that_failed_then_its_stage_is_failed_whatever_its_last_attempt_says() -> None:
    shown = job(state=State.FAILED, stage="second")

    passed = attempt("first", Outcome.OK)
    assert status(shown, passed, attempt("second", Outcome.TIMEOUT)) == ["ok", "failed", "later"]
    assert status(shown, passed) == ["ok", "failed", "later"]


def test_given_a_stage_that_runs_again_then_what_was_superseded_does_not_count() -> None:
    shown = job(state=State.RUNNING, stage="first")
    old = replace(attempt("first", Outcome.OK), superseded=True)

    first = steps(shown, SPEC, [old, attempt("first", None)])[0]

    assert (first.status, first.attempts) == ("running", 1)


def test_given_a_job_that_finished_early_then_later_stages_are_not_applicable() -> None:
    shown = job(state=State.COMPLETED, stage=None)

    assert status(shown, attempt("first", Outcome.FINISH)) == ["finish", "not_applicable", "not_applicable"]


def test_given_a_stage_that_the_type_has_no_more_then_it_stands_first_and_says_so() -> None:
    shown = steps(job(state=State.PENDING, stage="first"), SPEC, [attempt("old", Outcome.OK)])

    assert [(s.stage, s.removed) for s in shown][:2] == [("old", True), ("first", False)]
