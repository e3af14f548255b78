"""What a batch is shown as, whatever its job does."""

import pytest

from spinney.apps.ingest.deposits.states import BatchState, shown
from spinney.model.states import State

S, B = State, BatchState


@pytest.mark.parametrize(
    ("state", "stage", "begun", "reports", "failed", "expected"),
    [
        (S.PENDING, "processing", False, 0, 0, B.PENDING),
        (S.SCHEDULED, "processing", False, 0, 0, B.PENDING),
        (S.WAITING, "processing", False, 0, 0, B.PENDING),
        (S.HELD, "processing", False, 0, 0, B.HELD),
        (S.CLAIMED, "processing", False, 0, 0, B.PROCESSING),
        (S.RUNNING, "processing", True, 0, 0, B.PROCESSING),
        (S.PENDING, "processing", True, 0, 0, B.PROCESSING),  # cut off, and begun anew
        (S.SCHEDULED, "processing", True, 0, 0, B.PROCESSING),
        (S.FAILED, "processing", True, 1, 0, B.FAILED),  # a manifest that could not be read
        (S.WAITING, "reporting", True, 0, 0, B.PROCESSING),  # for its objects
        (S.PENDING, "reporting", True, 0, 0, B.REPORTING),
        (S.RUNNING, "reporting", True, 0, 0, B.REPORTING),
        (S.SCHEDULED, "reporting", True, 0, 0, B.REPORTING),
        (S.RUNNING, "sent", True, 0, 0, B.REPORTING),
        (S.RUNNING, "sent", True, 1, 0, B.REPORTING),  # it has just been counted
        (S.COMPLETED, None, True, 1, 0, B.COMPLETED),
        (S.COMPLETED, None, True, 1, 2, B.FAILED),
        (S.FAILED, None, True, 1, 2, B.FAILED),
        (S.WAITING, "reporting", True, 1, 2, B.PROCESSING),  # objects are being mended
        (S.RUNNING, "reporting", True, 1, 2, B.UPDATE_REPORTING),
        (S.RUNNING, "sent", True, 2, 0, B.UPDATE_REPORTING),
        (S.COMPLETED, None, True, 2, 0, B.COMPLETED),
        (S.HELD, "reporting", True, 1, 2, B.HELD),
        (S.CANCELLED, "reporting", True, 0, 0, B.FAILED),
        (S.ORPHANED, "reporting", True, 0, 0, B.FAILED),
        (S.DELETED, None, True, 1, 0, B.DELETED),
    ],
)
def test_a_batch_is_shown_by_its_job(
    state: State, stage: str | None, begun: bool, reports: int, failed: int, expected: BatchState
) -> None:
    assert shown(state, stage, begun=begun, reports=reports, failed=failed) is expected


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("stage", [None, "processing", "reporting", "sent"])
def test_every_state_of_a_job_has_a_word(state: State, stage: str | None) -> None:
    assert shown(state, stage, begun=True, reports=0) in BatchState
