"""What becomes of a job after an attempt that did not pass.

Called by the store inside the transaction that records the attempt, so that every node and every recovery decides in
the same way."""

from dataclasses import dataclass

from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec
from spinney.scheduling.backoff import delay_s

DEFER_DEFAULT_S = 60.0
DEFER_LEAST_S = 0.1
"""A stage that defers itself again and again must not keep the cluster busy."""
DEFER_MOST_S = 100 * 366 * 86_400.0
"""About a hundred years, past which no calendar of ours needs to reach; a worker refuses more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """The job's next state, and what is counted against its limits."""

    state: State
    """pending, scheduled (after ``delay_s``), waiting (for the lock), held, failed, cancelled or
    orphaned."""
    delay_s: float = 0.0
    """Seconds until it is due again, for ``scheduled``."""
    attempt_used: bool = False
    """It counts against ``max_attempts`` of the stage."""
    interruption: bool = False
    """Whether the attempt counts as an interruption, towards poison."""
    poison: bool = False
    """It fails because workers or nodes died under it again and again."""
    reason: str | None = None
    """The job's message when the attempt itself has none."""


def decide(
    spec: TypeSpec,
    stage: StageSpec,
    outcome: Outcome,
    *,
    attempt: int,
    interruptions: int,
    started: bool,
    retryable: bool,
    defer_s: float | None,
    draw: float,
) -> RetryDecision:
    """Return what becomes of the job. ``attempt`` counts from 1 within the stage, ``interruptions`` before this one.

    ``started`` tells whether user code had begun: an attempt that never began is handed back and counts nothing.
    ``retryable``: False when the stage said that further attempts are pointless. ``defer_s``: the seconds that a stage
    asked for when it deferred; None: the default. ``draw``: a random number in 0..1, for the jitter.
    """
    if outcome is Outcome.CANCELLED:
        return RetryDecision(state=State.CANCELLED, reason="cancelled")
    if outcome is Outcome.RETURNED or (outcome in (Outcome.LOST, Outcome.DIED) and not started):
        return RetryDecision(state=State.PENDING)
    if outcome is Outcome.HOLD:
        return RetryDecision(state=State.HELD, reason="held by its own stage")
    if outcome is Outcome.DEFER:
        wait = DEFER_DEFAULT_S if defer_s is None else min(max(DEFER_LEAST_S, defer_s), DEFER_MOST_S)
        return RetryDecision(state=State.SCHEDULED, delay_s=wait)
    if outcome is Outcome.LOCKED:
        return RetryDecision(state=State.WAITING)
    if outcome in (Outcome.LOST, Outcome.DIED):
        return _interrupted(spec, stage, outcome, attempt, interruptions, draw)
    if not retryable or attempt >= stage.max_attempts:
        return RetryDecision(state=State.FAILED, attempt_used=True)
    return RetryDecision(
        state=State.SCHEDULED,
        delay_s=delay_s(stage.backoff, attempt, draw),
        attempt_used=True,
    )


def _interrupted(
    spec: TypeSpec, stage: StageSpec, outcome: Outcome, attempt: int, before: int, draw: float
) -> RetryDecision:
    """Return what becomes of a job whose worker or node died under it. ``before``: the interruptions
    before this one.

    Enough deaths make it poison, whichever they were. A worker's death uses up an attempt, since the
    stage may be at fault; a node's does not, and the job goes back to its queue, or becomes orphaned
    where its type wants that.
    """
    if before + 1 >= spec.poison_after:
        return RetryDecision(
            state=State.FAILED,
            interruption=True,
            attempt_used=outcome is Outcome.DIED,
            poison=True,
            reason=f"poison: its worker or node died {before + 1} times under it",
        )
    if outcome is Outcome.DIED:
        if attempt >= stage.max_attempts:
            return RetryDecision(state=State.FAILED, attempt_used=True, interruption=True)
        wait = delay_s(stage.backoff, attempt, draw)
        return RetryDecision(state=State.SCHEDULED, delay_s=wait, attempt_used=True, interruption=True)
    if spec.on_lost == "orphan":
        return RetryDecision(
            state=State.ORPHANED,
            interruption=True,
            reason="its type forbids a silent second run",
        )
    return RetryDecision(state=State.PENDING, interruption=True)
