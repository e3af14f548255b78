"""Consumers in the process of a test, and what is reported to them: without stores, on a real queue."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from kazoo.client import KazooClient

from spinney.apps.ingest.merritt.consumer import MerrittConsumer
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.foreign import Claim, ClaimLost, Report
from spinney.bridges.merritt import STEPS, JobState, MerrittQueue
from spinney.jobs import Job as SpinneyJob
from spinney.jobs import State

NONE = cast(Any, None)
NO_RESULTS: Mapping[str, Any] = {}
BUT_RECORDING = tuple(state for state in STEPS[:-1] if state is not JobState.RECORDING)
Start = Callable[..., MerrittConsumer]


@pytest.fixture
def start(connect: Callable[[], KazooClient], queue: MerrittQueue) -> Start:
    """Start a consumer with a session of its own; its lists are due at each look."""

    def one(node: str, states: tuple[JobState, ...] = BUT_RECORDING, **fields: Any) -> MerrittConsumer:
        folder = fields.pop("queue", None)
        config = Settings(work=frozenset(["jobs"]), states=states, queue=folder).model_copy(
            update={"poll": 0}
        )
        options = {"collection_of": lambda profile: profile} | fields
        made = MerrittConsumer(connect(), "db", node, config, access=NONE, mirror=NONE, **options)
        made.begin(node, linked=False)
        return made

    return one


def here(state: State, stage: str | None, message: str | None = None) -> SpinneyJob:
    """Return a job of this side."""
    job = SpinneyJob.__new__(SpinneyJob)
    for name, value in {"state": state, "stage": stage, "message": message, "priority": 5}.items():
        object.__setattr__(job, name, value)
    return job


def report(
    consumer: MerrittConsumer, claim: Claim, job: SpinneyJob | None, results: Mapping[str, Any] = NO_RESULTS
) -> dict[str, ClaimLost]:
    made = Report(
        entry=claim.entry,
        claim=claim.claim,
        job=job,
        attempts=[],
        results=lambda: results,
        output=NONE,
    )
    return dict(consumer.report([made]))
