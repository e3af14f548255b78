"""Jobs and attempts that stand in no store."""

from typing import Any

from spinney.model.jobs import Attempt, Job
from spinney.model.outcomes import Outcome
from spinney.model.states import State

_JOB: dict[str, Any] = {
    "id": 17,
    "type": "three",
    "queue": "default",
    "priority": 50,
    "share": "17",
    "collection": None,
    "submitter": None,
    "key": None,
    "parent_id": None,
    "root_id": 17,
    "lineage": "000000000017",
    "params": {},
    "created_us": 1,
    "started_us": None,
    "settled_us": None,
    "wake_us": None,
    "attempts": 0,
    "interruptions": 0,
    "warnings": 0,
    "code": None,
    "message": None,
    "waits_for": None,
    "cancelling": False,
    "node": None,
    "fence": None,
    "progress": None,
    "progress_message": None,
}


def job(*, state: State, stage: str | None, **more: Any) -> Job:
    return Job(**_JOB | {"state": state, "stage": stage} | more)


def attempt(stage: str, outcome: Outcome | None, *, fence: int = 1) -> Attempt:
    return Attempt(
        job_id=17,
        fence=fence,
        stage=stage,
        attempt=1,
        outcome=outcome,
        node="oak",
        started_us=1,
        ended_us=None if outcome is None else 2,
    )
