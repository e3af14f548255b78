"""Which transitions lead from a job's state in Merritt's queue to what holds here."""

import pytest

from spinney.apps.ingest.merritt import progress
from spinney.bridges.foreign import Report
from spinney.bridges.merritt import JobState
from spinney.bridges.merritt.states import next_states
from spinney.jobs import Job, State


def report(state: State | None, stage: str | None) -> Report:
    job = None if state is None else Job.__new__(Job)
    if job is not None:
        object.__setattr__(job, "state", state)
        object.__setattr__(job, "stage", stage)
    return Report(
        entry="jid0000000001", claim="0.a", job=job, attempts=(), results=dict, output=lambda *_: iter(())
    )


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
    entered = progress.steps(JobState(before), report(state, stage))

    assert entered == [JobState(name) for name in states.split()]
    for now, after in zip([JobState(before), *entered], entered, strict=False):
        assert after in next_states(now)
