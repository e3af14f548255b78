"""The state in which a batch is shown, derived from its job and not stored."""

from enum import StrEnum

from spinney.jobs import State


class BatchState(StrEnum):
    """The states of a batch, in the words of the Merritt repository's queue design."""

    PENDING = "pending"
    HELD = "held"
    PROCESSING = "processing"
    REPORTING = "reporting"
    COMPLETED = "completed"
    FAILED = "failed"
    UPDATE_REPORTING = "update-reporting"
    DELETED = "deleted"


READING, REPORTING, SENT = "processing", "reporting", "sent"
"""The stages of a batch: it reads its payload and makes a job an object; when these have settled, it reports."""
STOPPABLE = (State.WAITING, State.SCHEDULED)
"""The states of the job of a batch that is held while in progress: it waits for its objects, or for its next try."""
_BEFORE = frozenset({State.PENDING, State.SCHEDULED, State.WAITING})
_SETTLED = {
    State.COMPLETED: BatchState.COMPLETED,
    State.FAILED: BatchState.FAILED,
    State.ORPHANED: BatchState.FAILED,
    State.CANCELLED: BatchState.FAILED,
    State.DELETED: BatchState.DELETED,
    State.HELD: BatchState.HELD,
}


def shown(
    state: State, stage: str | None, *, begun: bool, reports: int, failed: int = 0, stopped: bool = False
) -> BatchState:
    """Return the state of a batch, by its job's ``state`` and ``stage``; ``begun``: an attempt of it has begun;
    ``reports``: how many reports have been sent; ``failed``: how many objects had failed by the last of them;
    ``stopped``: a hold applies to its open jobs."""
    settled = _SETTLED.get(state)
    if settled is BatchState.COMPLETED and failed:
        return BatchState.FAILED  # the job itself has completed: it reported
    if settled is not None:
        return settled
    if stopped and state in STOPPABLE:
        return BatchState.HELD
    if stage not in (None, READING) and state is not State.WAITING:
        # The last stage counts the current report when it ends.
        return BatchState.UPDATE_REPORTING if reports > (stage == SENT) else BatchState.REPORTING
    # A failed batch whose objects were requeued is in progress again.
    return BatchState.PENDING if state in _BEFORE and not begun else BatchState.PROCESSING
