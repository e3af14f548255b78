"""External stages: an external worker that is no node joins, claims, keeps alive and settles (docs/external.md)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Path, Request
from pydantic import Field

from spinney.commands.fields import Text, Word
from spinney.define.params.duration_field import DurationField
from spinney.features.external import output as external_output
from spinney.features.external.service import SPAWN_MAX, External
from spinney.model.external import CLAIM_MAX, LEASE_S, ClaimedWork, ExternalWorker, HeartbeatReply, Settlement
from spinney.model.fleet import SLOTS_MAX
from spinney.model.outcomes import Outcome
from spinney.model.values.lists import All
from spinney.schemas import (
    ExternalWorkerDetails,
    KeptOutput,
    ListLength,
    LockResult,
    ReturnedJobs,
    SpawnedJobs,
)
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import Fence, JobId, RequestModel
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

T = TypeVar("T")

router = routes("external", "/external")
PROBLEMS = documented(404, 408, 409, 413, 415)
FENCE_MAX = 2**62
_LANES_MAX = 1_000
_MESSAGE_MAX = 20_000
_PRINT_MAX = 2**18

Key = Annotated[
    str,
    Path(
        alias="worker",
        min_length=1,
        max_length=50,
        description="`external_worker` of its joining.",
        examples=["12-1"],
    ),
]
Seen = Annotated[
    int,
    Field(
        ge=0,
        le=FENCE_MAX,
        examples=[0, 4711],
        description="The highest fence of which the external worker has ever heard; 0 when it has joined just now.",
    ),
]
_Fence = Annotated[int, Field(ge=1, le=FENCE_MAX)]
Long = Annotated[str, Field(max_length=_MESSAGE_MAX)]


class Lane(RequestModel):
    """A stage that an external worker runs."""

    type: Word = Field(description="The job type.", examples=["talk"])
    stage: Word = Field(description="Its external stage.", examples=["listen"])


class JoinRequest(RequestModel):
    """An external worker that comes."""

    name: Word = Field(
        description="Under which it is listed; one that comes again under it takes over from itself.",
        examples=["ear-1"],
    )
    lanes: list[Lane] = Field(min_length=1, max_length=_LANES_MAX, description="What it runs.")
    slots: int = Field(1, ge=1, le=SLOTS_MAX, description="How many attempts it runs at once.")
    lease_s: Annotated[float, Field(ge=LEASE_S[0], le=LEASE_S[1]), DurationField()] = Field(
        60.0,
        description="Seconds, or text such as `5m`: so long it may be silent before its attempts go back.",
    )


class ClaimAttemptsRequest(RequestModel):
    """An external worker that wants work."""

    seen: Seen
    limit: int = Field(1, ge=1, le=CLAIM_MAX, description="How many attempts at most.")


class HeartbeatRequest(RequestModel):
    """A sign of life."""

    seen: Seen
    fences: list[_Fence] = Field(
        max_length=SLOTS_MAX, description="All attempts on which the external worker works now."
    )


class SettleRequest(RequestModel):
    """What became of an attempt."""

    outcome: Literal[
        "ok",
        "warning",
        "not_applicable",
        "finish",
        "error",
        "defer",
        "hold",
        "cancelled",
        "returned",
        "locked",
    ] = Field(description="`returned`: handed back, not begun. `locked`: `lock` was not to be had.")
    result: Any = Field(None, description="The value of the stage, up to 64 kB of JSON, for what has passed.")
    message: Long | None = Field(None, description="A line for people.", examples=["no sound"])
    error: Mapping[Literal["type", "message", "traceback"], str] | None = Field(
        None, description="For `error`."
    )
    retryable: bool = Field(True, description="For `error`: whether another attempt has a point.")
    code: int | None = Field(
        None, ge=1, le=2**31 - 1, description="A status code of the external worker's own."
    )
    delay_s: Annotated[float, Field(ge=0), DurationField()] | None = Field(
        None, description="For `defer`: seconds, or text such as `5m`, until the stage is tried again."
    )
    lane: bool = Field(
        False, description="For `defer`: all jobs of the stage sleep so long, and one probes then."
    )
    lock: Word | None = Field(None, description="For `locked`.")

    def settlement(self) -> Settlement:
        """Raises UsageError, BadParameters for parts that do not go together."""
        given = self.model_dump()
        return Settlement(**{**given, "outcome": Outcome(self.outcome)})


class ProgressRequest(RequestModel):
    """How far an attempt is."""

    fraction: float = Field(ge=0, le=1, examples=[0.25])
    message: Text | None = Field(None, examples=["12 of 48 minutes"])


class OutputRequest(RequestModel):
    """What an attempt prints."""

    stream: Literal["stdout", "stderr"] = "stdout"
    text: str = Field(
        max_length=_PRINT_MAX, description="The next piece, with its line feeds.", examples=["begun\n"]
    )


class DataRequest(RequestModel):
    """An entry of a job's data."""

    name: Word = Field(examples=["words"])
    value: Any = Field(description="Any JSON, up to 64 kB; null removes the entry.", examples=[17])
    of: Literal["job", "parent", "root"] = Field("job", description="Whose data.")


class SpawnRequest(RequestModel):
    """Subjobs to be made."""

    jobs: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=SPAWN_MAX,
        description="Each as a line of a submission: `type`, `params`, and any options (`key`, `queue`, `priority` …).",
        examples=[[{"type": "part", "params": {"n": 1}}]],
    )


class LockRequest(RequestModel):
    """A lock that an attempt wants."""

    name: Word = Field(examples=["receiver:SG-1"])
    until: Literal["attempt", "job"] = Field("attempt", description="How long it is kept.")
    amount: int = Field(1, ge=1, le=2**31 - 1, description="How much of its capacity.")


# --- coming and going -----------------------------------------------------------------------------


@router.get("", summary="List external workers")
async def list_parties(context: Authenticated) -> All[ExternalWorkerDetails]:
    """Those that are there: all for an operator without limits, else your own."""
    found = await _said(context, lambda external: external.all())
    return All(items=[_shown(external_worker) for external_worker in found])


@router.post("", status_code=201, summary="Join as an external worker", responses=PROBLEMS)
async def join(asked: JoinRequest, context: Authenticated) -> ExternalWorkerDetails:
    """Join, to run external stages. Which job types' stages you may run is among your rights (`external`), whatever
    your role. An external worker of yours that has joined under this name is taken over: what it had begun counts as
    interrupted, and goes back at once."""
    lanes = [(lane.type, lane.stage) for lane in asked.lanes]
    return _shown(
        await _said(
            context,
            lambda external: external.join(asked.name, lanes, slots=asked.slots, lease_s=asked.lease_s),
        )
    )


@router.delete("/{worker}", summary="Leave", responses=PROBLEMS)
async def leave(external_worker: Key, context: Authenticated) -> ReturnedJobs:
    """Go. What the external worker still has goes back, and no attempt is used up by it."""
    return ReturnedJobs(jobs=await _said(context, lambda external: external.leave(external_worker)))


# --- leases ---------------------------------------------------------------------------------------


@router.post("/{worker}/claim", summary="Claim attempts", responses=PROBLEMS)
async def claim(external_worker: Key, asked: ClaimAttemptsRequest, context: Authenticated) -> ClaimedWork:
    """Attempts for the external worker's free slots, in the order and within the limits that hold for nodes. Ask once
    at a time:
    what an earlier claim gave, and of which `seen` says that the external worker has not heard, goes back with this
    one."""
    return await _said(
        context, lambda external: external.claim(external_worker, seen=asked.seen, limit=asked.limit)
    )


@router.post("/{worker}/heartbeat", summary="Give a sign of life", responses=PROBLEMS)
async def heartbeat(external_worker: Key, asked: HeartbeatRequest, context: Authenticated) -> HeartbeatReply:
    """Say on what the external worker works, several times a lease period. The answer says what of it is to be
    cancelled, and what it has lost. What it had heard of and does not name goes back."""
    return await _said(
        context, lambda external: external.heartbeat(external_worker, seen=asked.seen, fences=asked.fences)
    )


@router.post(
    "/{worker}/attempts/{job}/{fence}/settle",
    status_code=204,
    summary="Settle an attempt",
    responses=PROBLEMS,
)
async def settle(
    external_worker: Key, job: JobId, fence: Fence, asked: SettleRequest, context: Authenticated
) -> None:
    """Say what became of it. May be said again when the answer got lost. 409 when the attempt has lost its lease:
    somebody else owns the job, and nothing was written."""
    said = asked.settlement()
    await _said(context, lambda external: external.settle(external_worker, job, fence, said))


# --- while it runs --------------------------------------------------------------------------------


@router.post(
    "/{worker}/attempts/{job}/{fence}/progress", status_code=204, summary="Show progress", responses=PROBLEMS
)
async def progress(
    external_worker: Key, job: JobId, fence: Fence, asked: ProgressRequest, context: Authenticated
) -> None:
    """For people, while the attempt runs."""
    await _said(
        context,
        lambda external: external.progress(external_worker, job, fence, asked.fraction, asked.message),
    )


@router.post("/{worker}/attempts/{job}/{fence}/output", summary="Keep output", responses=PROBLEMS)
async def keep_output(
    external_worker: Key,
    job: JobId,
    fence: Fence,
    asked: OutputRequest,
    request: Request,
    context: Authenticated,
) -> KeptOutput:
    """Append to what the attempt has printed, to be read as that of any other. Send it before you settle."""
    given = await _said(context, lambda external: external.attempt(external_worker, job, fence))
    attempt, data = f"{given.stage}.{given.fence}", asked.text.encode()
    root = request.app.state.folders
    return KeptOutput(
        kept_bytes=await asyncio.to_thread(external_output.keep, root, job, attempt, asked.stream, data)
    )


@router.put("/{worker}/attempts/{job}/{fence}/data", status_code=204, summary="Keep data", responses=PROBLEMS)
async def put_data(
    external_worker: Key, job: JobId, fence: Fence, asked: DataRequest, context: Authenticated
) -> None:
    """Set an entry of the job's data, its parent's or its root's. It stays, whatever becomes of the attempt."""
    await _said(
        context,
        lambda external: external.put_data(external_worker, job, fence, asked.name, asked.value, of=asked.of),
    )


@router.post("/{worker}/attempts/{job}/{fence}/data", summary="Append to data", responses=PROBLEMS)
async def append_data(
    external_worker: Key, job: JobId, fence: Fence, asked: DataRequest, context: Authenticated
) -> ListLength:
    """Append to the list of that name, which is made when missing. Many may do so at once."""
    return ListLength(
        length=await _said(
            context,
            lambda external: external.append_data(
                external_worker, job, fence, asked.name, asked.value, of=asked.of
            ),
        )
    )


@router.post(
    "/{worker}/attempts/{job}/{fence}/spawn", status_code=201, summary="Make subjobs", responses=PROBLEMS
)
async def spawn(
    external_worker: Key, job: JobId, fence: Fence, asked: SpawnRequest, context: Authenticated
) -> SpawnedJobs:
    """They are there when the attempt has passed, and never when it has not; those with a key are there at once."""
    ids = await _said(
        context,
        lambda external: external.spawn(external_worker, job, fence, asked.jobs),
        long=len(asked.jobs) > 100,
    )
    return SpawnedJobs(ids=list(ids))


@router.post("/{worker}/attempts/{job}/{fence}/lock", summary="Take a lock", responses=PROBLEMS)
async def take_lock(
    external_worker: Key, job: JobId, fence: Fence, asked: LockRequest, context: Authenticated
) -> LockResult:
    """Never waits. An attempt that cannot go on without it is settled as `locked`, and starts again once it is free."""
    return LockResult(
        taken=await _said(
            context,
            lambda external: external.take_lock(
                external_worker, job, fence, asked.name, until=asked.until, amount=asked.amount
            ),
        )
    )


async def _said(context: RequestContext, call: Callable[[External], T], *, long: bool = False) -> T:
    return await context.run(lambda control: call(control.part(External)), long=long)


def _shown(external_worker: ExternalWorker) -> ExternalWorkerDetails:
    return ExternalWorkerDetails(
        external_worker=external_worker.key,
        name=external_worker.name,
        owner=external_worker.owner,
        slots=external_worker.slots,
        lease_s=external_worker.lease_s,
        heartbeat_every_s=external_worker.lease_s / 3,
        lanes=[{"type": type_, "stage": stage} for type_, stage in external_worker.lanes],
    )
