"""Which transitions lead from a job's state in Merritt's queue to what holds here."""

from dataclasses import replace

import pytest

from bridges.merritt.trees import new_job
from spinney.apps.ingest.merritt import progress
from spinney.apps.ingest.merritt.orders import object_order
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.merritt import STEPS, JobState, MerrittQueue
from spinney.bridges.merritt.states import next_states
from spinney.jobs import Job, State

from ..access.filled_service import ARK
from ..served.conftest import Served, served

__all__ = ["served"]


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
        ("Estimating", State.DELETED, "estimating", "Failed"),
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


EARLY = [JobState.PENDING, JobState.ESTIMATING]
BUT_RECORDING = [state for state in STEPS if state is not JobState.RECORDING]


@pytest.mark.parametrize(
    ("ours", "before", "state", "stage", "states"),
    [
        (EARLY, "Pending", State.RUNNING, "estimating", "Estimating"),
        (EARLY, "Estimating", State.PENDING, "provisioning", ""),
        (EARLY, "Estimating", State.COMPLETED, "provisioning", "Provisioning"),
        (EARLY, "Pending", State.COMPLETED, "provisioning", "Estimating Provisioning"),
        (EARLY, "Estimating", State.FAILED, "estimating", "Failed"),
        (BUT_RECORDING, "Processing", State.RUNNING, "recording", "Storing"),
        (BUT_RECORDING, "Processing", State.HELD, "recording", "Storing"),
        (BUT_RECORDING, "Storing", State.RUNNING, "notify", ""),
        (BUT_RECORDING, "Storing", State.HELD, "notify", "Recording"),
        (BUT_RECORDING, "Storing", State.FAILED, "recording", "Failed"),
        (BUT_RECORDING, "Notify", State.COMPLETED, None, "Completed"),
    ],
)
def test_the_first_state_of_others_is_entered_when_the_job_has_stopped(
    ours: list[JobState], before: str, state: State, stage: str | None, states: str
) -> None:
    entered = progress.steps(JobState(before), job(state, stage), ours)

    assert entered == [JobState(name) for name in states.split()]


@pytest.mark.parametrize(
    ("others", "claimed_in", "until", "comes_back"),
    [
        ("", "Pending", None, False),
        ("Recording", "Pending", "notify", True),
        ("Recording", "Notify", None, False),
        ("Recording Notify", "Pending", "notify", False),
        ("Notify", "Recording", "notify", False),
        ("Estimating", "Pending", "estimating", False),
        ("Estimating", "Provisioning", None, False),
        ("Processing Storing Recording", "Downloading", "processing", False),
        ("Pending Estimating Provisioning Downloading", "Processing", None, False),
    ],
)
def test_an_order_ends_before_the_first_state_of_others(
    queue: MerrittQueue, others: str, claimed_in: str, until: str | None, comes_back: bool
) -> None:
    left = [JobState(name) for name in others.split()]
    settings = Settings(states=tuple(state for state in STEPS[:-1] if state not in left))
    made = replace(new_job(queue), state=JobState(claimed_in))

    order = object_order(made, "bid-6ba7b810-9dad-11d1-80b4-00c04fd430c8", settings)

    assert (order.until, order.returns) == (until, comes_back)


def test_the_address_of_a_manifest_is_one_that_the_server_answers(
    queue: MerrittQueue, served: Served
) -> None:
    served.service.holds({"a.txt": b"1"})
    names = dict.fromkeys(("who", "what", "when"), "x")
    results = {"processing": {"ark": ARK, "version": 1, "local_ids": [], **names}, "recording": {}}

    written = progress.write_parts(queue, new_job(queue), results, "http://localhost/", lambda name, _: name)

    assert written.inventory == written.store
    answer = served["ann"].get(written.store["manifest_url"])
    assert answer.status_code == 200, answer.text
    assert "a.txt" in answer.text
