"""What becomes of a job after an attempt that did not pass: one answer whoever asks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import State, lawful
from spinney.model.types import Backoff, StageSpec, TypeSpec
from spinney.scheduling.retry_decision import RetryDecision, decide

STAGE = StageSpec(name="work", max_attempts=3, backoff=Backoff(base_s=2, factor=2, cap_s=60, jitter=0))
SPEC = TypeSpec(name="t", stages=(STAGE,), poison_after=3)
ORPHAN = TypeSpec(name="o", stages=(STAGE,), poison_after=3, on_lost="orphan")


def judge(outcome: Outcome, spec: TypeSpec = SPEC, **facts: Any) -> RetryDecision:
    usual: dict[str, Any] = {
        "attempt": 1,
        "interruptions": 0,
        "started": True,
        "retryable": True,
        "defer_s": None,
        "draw": 0.5,
    }
    return decide(spec, spec.stages[0], outcome, **usual | facts)


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.TIMEOUT])
@pytest.mark.parametrize(
    ("attempt", "state", "rest_s"),
    [
        (1, State.SCHEDULED, 2.0),
        (2, State.SCHEDULED, 4.0),
        (3, State.FAILED, 0.0),
    ],
)
def test_an_error_rests_and_is_tried_again_until_its_attempts_are_used_up(
    outcome: Outcome, attempt: int, state: State, rest_s: float
) -> None:
    judgement = judge(outcome, attempt=attempt)

    assert (judgement.state, judgement.delay_s, judgement.attempt_used) == (state, rest_s, True)


def test_an_error_that_is_not_retryable_fails_at_once() -> None:
    assert judge(Outcome.ERROR, retryable=False).state is State.FAILED


@pytest.mark.parametrize(
    "outcome", [Outcome.DEFER, Outcome.HOLD, Outcome.LOCKED, Outcome.RETURNED, Outcome.LOST]
)
def test_what_is_no_failure_uses_no_attempt(outcome: Outcome) -> None:
    assert not judge(outcome).attempt_used


@pytest.mark.parametrize(
    ("asked_s", "waits_s"),
    [
        (5.0, 5.0),
        (0.0, 0.1),
        (-3.0, 0.1),
        (float("nan"), 0.1),
        (None, 60.0),
        (1e300, 100 * 366 * 86_400.0),
    ],
)
def test_a_deferred_job_comes_again_after_the_seconds_it_named(asked_s: float | None, waits_s: float) -> None:
    judgement = judge(Outcome.DEFER, defer_s=asked_s)

    assert (judgement.state, judgement.delay_s) == (State.SCHEDULED, waits_s)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.HOLD, State.HELD),
        (Outcome.LOCKED, State.WAITING),
        (Outcome.RETURNED, State.PENDING),
        (Outcome.CANCELLED, State.CANCELLED),
    ],
)
def test_the_other_words_have_one_place_each(outcome: Outcome, state: State) -> None:
    assert judge(outcome).state is state


def test_a_lost_attempt_goes_back_to_the_queue_as_an_interruption() -> None:
    judgement = judge(Outcome.LOST)

    assert (judgement.state, judgement.interruption, judgement.attempt_used) == (State.PENDING, True, False)


def test_a_lost_attempt_of_a_type_that_forbids_a_silent_second_run_is_orphaned() -> None:
    assert judge(Outcome.LOST, ORPHAN).state is State.ORPHANED


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.DIED])
@pytest.mark.parametrize("spec", [SPEC, ORPHAN])
def test_what_never_began_is_handed_back_uncounted(outcome: Outcome, spec: TypeSpec) -> None:
    judgement = judge(outcome, spec, started=False, interruptions=99)

    assert (judgement.state, judgement.interruption, judgement.attempt_used) == (State.PENDING, False, False)


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.DIED])
def test_so_many_deaths_fail_a_job_as_poison(outcome: Outcome) -> None:
    before = judge(outcome, interruptions=1)
    assert (before.state is State.FAILED, before.poison) == (False, False)

    judgement = judge(outcome, interruptions=2)

    assert (judgement.state, judgement.poison) == (State.FAILED, True)
    assert judgement.reason is not None
    assert "poison" in judgement.reason


@pytest.mark.parametrize(("attempt", "state"), [(1, State.SCHEDULED), (3, State.FAILED)])
def test_a_dead_worker_is_a_retryable_error_that_is_also_counted(attempt: int, state: State) -> None:
    judgement = judge(Outcome.DIED, attempt=attempt)

    assert (judgement.state, judgement.attempt_used, judgement.interruption) == (state, True, True)


@given(
    outcome=st.sampled_from(sorted(set(Outcome) - PASSED)),
    spec=st.sampled_from([SPEC, ORPHAN]),
    attempt=st.integers(1, 5),
    interruptions=st.integers(0, 5),
    started=st.booleans(),
    retryable=st.booleans(),
    defer_s=st.none() | st.floats(-10, 1e6),
    draw=st.floats(0, 1),
)
def test_every_verdict_is_a_lawful_step_for_a_running_job_and_never_in_the_past(
    outcome: Outcome, spec: TypeSpec, **facts: Any
) -> None:
    judgement = judge(outcome, spec, **facts)

    assert lawful(State.RUNNING, judgement.state)
    assert judgement.delay_s >= 0
    assert judgement.state is State.SCHEDULED or judgement.delay_s == 0
