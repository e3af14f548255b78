"""What a batch is shown as: derived from its job, kept nowhere."""

from enum import StrEnum

from spinney.jobs import State


class BatchState(StrEnum):
    """The words of the Merritt repository, of whose queue design they are."""

    PENDING = "pending"
    HELD = "held"
    PROCESSING = "processing"
    REPORTING = "reporting"
    COMPLETED = "completed"
    FAILED = "failed"
    UPDATE_REPORTING = "update-reporting"
    DELETED = "deleted"


READING, REPORTING, TOLD = "processing", "reporting", "told"
"""The stages of a batch: it reads its payload and makes a job an object; when these have settled, it reports."""
STOPPABLE = (State.WAITING, State.SCHEDULED)
"""Where a batch stands that is held in its middle: its job waits for its objects, or rests."""
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
    """The state of a batch, by its job's ``state`` and ``stage``; ``begun``: an attempt of it has begun; ``reports``:
    how many reports have been told; ``failed``: how many objects had failed by the last of them; ``stopped``: a
    hold keeps what is open of it."""
    settled = _SETTLED.get(state)
    if settled is BatchState.COMPLETED and failed:
        return BatchState.FAILED  # its job has done all of its own work: it reported
    if settled is not None:
        return settled
    if stopped and state in STOPPABLE:
        return BatchState.HELD
    if stage not in (None, READING) and state is not State.WAITING:
        # The last stage counts the report that is under way, at its end.
        return BatchState.UPDATE_REPORTING if reports > (stage == TOLD) else BatchState.REPORTING
    # One that failed and is being mended is in work again; it is what its objects are.
    return BatchState.PENDING if state in _BEFORE and not begun else BatchState.PROCESSING
