"""Which transitions lead from a job's state in Merritt's queue to what holds here."""

import pytest

from spinney.apps.ingest.merritt import progress
from spinney.bridges.merritt import JobState
from spinney.bridges.merritt.states import next_states
from spinney.jobs import Job, State


def job(state: State | None, stage: str | None) -> Job | None:
    if state is None:
        return None
    made = Job.__new__(Job)
    object.__setattr__(made, "state", state)
    object.__setattr__(made, "stage", stage)
    return made


@pytest.mark.parametrize(
    ("before", "state", "stage", "states"),
    [
        ("Pending", State.PENDING, "estimating", "Estimating"),
        ("Pending", State.RUNNING, "downloading", "Estimating Provisioning Downloading"),
        ("Downloading", State.RUNNING, "downloading", ""),
        ("Downloading", State.RUNNING, "estimating", ""),
        ("Processing", State.RUNNING, "recording", "Storing Recording"),
        ("Estimating", State.FAILED, "downloading", "Provisioning Downloading Failed"),
        ("Recording", State.FAILED, "estimating", "Failed"),
        ("Notify", State.COMPLETED, None, "Completed"),
        ("Pending", State.CANCELLED, None, "Estimating Failed"),
        ("Downloading", None, None, "Failed"),
    ],
)
def test_states_follow_one_transition_after_the_other(
    before: str, state: State | None, stage: str | None, states: str
) -> None:
    entered = progress.steps(JobState(before), job(state, stage))

    assert entered == [JobState(name) for name in states.split()]
    for now, after in zip([JobState(before), *entered], entered, strict=False):
        assert after in next_states(now)
