"""External stages: an external worker that is no node joins, claims, keeps alive and settles (docs/external.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from spinney.client.calls import Call, get, json_body, path, request, verb
from spinney.model.external import ClaimedWork, HeartbeatReply
from spinney.model.values import durations
from spinney.model.values.durations import Duration, optional
from spinney.model.values.lists import Page
from spinney.schemas import (
    ExternalWorkerDetails,
    KeptOutput,
    ListLength,
    LockResult,
    ReturnedJobs,
    SpawnedJobs,
)


class SettleOptions(TypedDict, total=False):
    """What became of an attempt, beside its outcome."""

    result: Any
    message: str | None
    error: Mapping[str, str] | None
    """``type``, ``message``, ``traceback``."""
    retryable: bool
    code: int | None
    delay_s: Duration | None
    lane: bool
    lock: str | None


class ExternalVerbs:
    """``external_worker`` is the key that joining gave; ``job`` and ``fence`` are those of a claimed attempt."""

    @verb
    def external_workers(self: None) -> Call[Page[ExternalWorkerDetails]]:
        """Those that are there."""
        return get("/external", Page[ExternalWorkerDetails])

    @verb
    def join(
        self: None, name: str, lanes: Sequence[tuple[str, str]], *, slots: int = 1, lease_s: Duration = 60.0
    ) -> Call[ExternalWorkerDetails]:
        """Come, to run these external stages: pairs of job type and stage."""
        stages = [{"type": type_, "stage": stage} for type_, stage in lanes]
        body = json_body(name=name, lanes=stages, slots=slots, lease_s=durations.seconds(lease_s, "lease_s"))
        return request("POST", "/external", ExternalWorkerDetails, body)

    @verb
    def leave(self: None, external_worker: str) -> Call[ReturnedJobs]:
        """Go; what the external worker still has goes back."""
        return request("DELETE", path("/external/{}", external_worker), ReturnedJobs)

    @verb
    def claim(self: None, external_worker: str, *, seen: int, limit: int = 1) -> Call[ClaimedWork]:
        """Attempts for the external worker's free slots; ``seen``: the highest fence of which it has ever heard."""
        return request(
            "POST",
            path("/external/{}/claim", external_worker),
            ClaimedWork,
            json_body(seen=seen, limit=limit),
        )

    @verb
    def heartbeat(
        self: None, external_worker: str, *, seen: int, fences: Sequence[int]
    ) -> Call[HeartbeatReply]:
        """Say on what the external worker works; what is to be cancelled, and what it has lost."""
        return request(
            "POST",
            path("/external/{}/heartbeat", external_worker),
            HeartbeatReply,
            json_body(seen=seen, fences=list(fences)),
        )

    @verb
    def settle(
        self: None, external_worker: str, job: int, fence: int, outcome: str, **how: Unpack[SettleOptions]
    ) -> Call[None]:
        """Say what became of an attempt; may be said again. Raises StaleFence when it has lost its lease."""
        if "delay_s" in how:
            how["delay_s"] = optional(how["delay_s"], "delay_s")
        return request(
            "POST", _attempt(external_worker, job, fence, "settle"), None, {"outcome": outcome, **how}
        )

    @verb
    def progress(
        self: None, external_worker: str, job: int, fence: int, fraction: float, *, message: str | None = None
    ) -> Call[None]:
        """Show how far it is."""
        return request(
            "POST",
            _attempt(external_worker, job, fence, "progress"),
            None,
            json_body(fraction=fraction, message=message),
        )

    @verb
    def keep_output(
        self: None, external_worker: str, job: int, fence: int, text: str, *, stream: str = "stdout"
    ) -> Call[KeptOutput]:
        """Append to what it has printed."""
        return request(
            "POST",
            _attempt(external_worker, job, fence, "output"),
            KeptOutput,
            json_body(stream=stream, text=text),
        )

    @verb
    def put_data(
        self: None, external_worker: str, job: int, fence: int, name: str, value: Any, *, of: str = "job"
    ) -> Call[None]:
        """Set an entry of the data of the job, its parent or its root; None removes it."""
        return request(
            "PUT",
            _attempt(external_worker, job, fence, "data"),
            None,
            {"name": name, "value": value, "of": of},
        )

    @verb
    def append_data(
        self: None, external_worker: str, job: int, fence: int, name: str, value: Any, *, of: str = "job"
    ) -> Call[ListLength]:
        """Append to the list of that name."""
        return request(
            "POST",
            _attempt(external_worker, job, fence, "data"),
            ListLength,
            {"name": name, "value": value, "of": of},
        )

    @verb
    def spawn(
        self: None, external_worker: str, job: int, fence: int, jobs: Sequence[Mapping[str, Any]]
    ) -> Call[SpawnedJobs]:
        """Make subjobs, each as a line of a submission."""
        return request(
            "POST", _attempt(external_worker, job, fence, "spawn"), SpawnedJobs, {"jobs": list(jobs)}
        )

    @verb
    def take_lock(
        self: None,
        external_worker: str,
        job: int,
        fence: int,
        name: str,
        *,
        until: str = "attempt",
        amount: int = 1,
    ) -> Call[LockResult]:
        """Take a lock if it is to be had; never waits."""
        return request(
            "POST",
            _attempt(external_worker, job, fence, "lock"),
            LockResult,
            json_body(name=name, until=until, amount=amount),
        )


def _attempt(external_worker: str, job: int, fence: int, what: str) -> str:
    return path("/external/{}/attempts/{}/{}/{}", external_worker, job, fence, what)
