"""The three state machines of Merritt's queues: of jobs, of batches and of access requests.

The tables are the only place that knows the transitions. They follow ``states.yml`` of Merritt's queue library, which
is newer than its design pages: jobs have the state Storing, and what was held goes back to Pending.
"""

from enum import StrEnum
from itertools import pairwise
from typing import Any

from spinney.bridges.merritt.errors import MerrittStateError


class JobState(StrEnum):
    """The states of a job of the ingest queue."""

    PENDING = "Pending"
    HELD = "Held"
    ESTIMATING = "Estimating"
    PROVISIONING = "Provisioning"
    DOWNLOADING = "Downloading"
    PROCESSING = "Processing"
    STORING = "Storing"
    RECORDING = "Recording"
    NOTIFY = "Notify"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETED = "Deleted"


class BatchState(StrEnum):
    """The states of a batch, which is what one depositor submitted at once."""

    PENDING = "Pending"
    HELD = "Held"
    PROCESSING = "Processing"
    REPORTING = "Reporting"
    UPDATE_REPORTING = "UpdateReporting"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETED = "Deleted"


class AccessState(StrEnum):
    """The states of an access request: an object or version to be assembled for download."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    DELETED = "Deleted"


State = JobState | BatchState | AccessState
"""The state of any item."""

STEPS = (
    JobState.PENDING,
    JobState.ESTIMATING,
    JobState.PROVISIONING,
    JobState.DOWNLOADING,
    JobState.PROCESSING,
    JobState.STORING,
    JobState.RECORDING,
    JobState.NOTIFY,
    JobState.COMPLETED,
)
"""The way of a job that succeeds."""

# The states that may follow each state. Without a follower an item is done, and may be deleted.
_JOB = {
    JobState.PENDING: (JobState.HELD, JobState.ESTIMATING, JobState.FAILED),
    JobState.HELD: (JobState.PENDING, JobState.DELETED),
    **{state: (after, JobState.FAILED) for state, after in pairwise(STEPS[1:])},
    JobState.COMPLETED: (),
    JobState.FAILED: (*STEPS[:-1], JobState.DELETED),
    JobState.DELETED: (),
}
_BATCH = {
    BatchState.PENDING: (BatchState.HELD, BatchState.PROCESSING),
    BatchState.HELD: (BatchState.PENDING, BatchState.DELETED),
    BatchState.PROCESSING: (BatchState.REPORTING, BatchState.FAILED),
    BatchState.REPORTING: (BatchState.COMPLETED, BatchState.FAILED),
    BatchState.UPDATE_REPORTING: (BatchState.COMPLETED, BatchState.FAILED),
    BatchState.COMPLETED: (),
    BatchState.FAILED: (BatchState.UPDATE_REPORTING, BatchState.DELETED),
    BatchState.DELETED: (),
}
_ACCESS = {
    AccessState.PENDING: (AccessState.PROCESSING,),
    AccessState.PROCESSING: (AccessState.COMPLETED, AccessState.FAILED),
    AccessState.COMPLETED: (),
    AccessState.FAILED: (AccessState.PROCESSING, AccessState.DELETED),
    AccessState.DELETED: (),
}


_TRANSITIONS: dict[type, dict[Any, tuple[Any, ...]]] = {
    JobState: _JOB,
    BatchState: _BATCH,
    AccessState: _ACCESS,
}


def next_states(state: State) -> tuple[State, ...]:
    """Return the states that may follow ``state``."""
    return _TRANSITIONS[state.__class__][state]


def is_deletable(state: State) -> bool:
    """Tell whether an item in this state may be deleted, which is so where no state follows."""
    return not next_states(state)


def require_transition(path: str, before: State, after: State) -> None:
    """Raise MerrittStateError unless ``after`` may follow ``before``; ``path`` names the item in the message."""
    if after not in next_states(before):
        allowed = ", ".join(next_states(before)) or "nothing"
        raise MerrittStateError(f"{path} is {before} and cannot become {after}; it can become {allowed}.")


def requeue_target(last_successful: str | None) -> JobState:
    """Return the state in which a failed job goes on: the one after the last that succeeded.

    That is Estimating where none succeeded, and where another library wrote a state that is no step.
    """
    if last_successful in STEPS[:-2]:
        return STEPS[STEPS.index(JobState(last_successful)) + 1]
    return JobState.ESTIMATING
