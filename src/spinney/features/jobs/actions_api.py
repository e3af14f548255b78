"""What is done to single jobs."""

from typing import Annotated

from fastapi import Body, Query
from pydantic import Field

from spinney.commands.fields import Priority, Time, Word
from spinney.control import Control
from spinney.model.errors import Refused
from spinney.model.rights.operators import BulkStep, Order, Verb
from spinney.schemas import VerbResult
from spinney.service.order_scope import OrderScope
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import JobId, ReasonRequest
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

router = routes("verbs")
PROBLEMS = documented(404, 409, 415)


class RetryJobRequest(ReasonRequest):
    """How a job is to run again."""

    stage: Word | None = Field(default=None, description="From this stage on.")
    queue: Word | None = Field(default=None, description="In this queue.")


class CancelJobRequest(ReasonRequest):
    """How a job is to be cancelled."""

    tree: bool = Field(default=False, description="With all below it.")


class HoldJobRequest(ReasonRequest):
    """Why a job is to be held."""

    reason: Word = Field(description="Why; shown to everybody.", examples=["the receiver is being repaired"])
    until: Time | None = Field(default=None, description="It ends by itself at this time.")


class MoveJobRequest(ReasonRequest):
    """Where a job is to go."""

    queue: Word


class PriorityRequest(ReasonRequest):
    """How urgent a job is."""

    priority: Priority


@router.post("/jobs/{job}/retry", summary="Retry a job", responses=PROBLEMS)
async def retry_job(
    job: JobId,
    context: Authenticated,
    how: Annotated[RetryJobRequest, Body()] = RetryJobRequest(),
) -> VerbResult:
    """Open what failed, was cancelled or orphaned: behind the last stage that passed, or from an earlier one."""
    order = Order(verb=Verb.RETRY, reason=how.reason, stage=how.stage, queue=how.queue)
    return await _done(context, order, job)


@router.post("/jobs/{job}/rerun", summary="Run a job again", responses=PROBLEMS)
async def rerun_job(
    job: JobId,
    context: Authenticated,
    how: Annotated[RetryJobRequest, Body()] = RetryJobRequest(),
) -> VerbResult:
    """Run a settled job again from its first stage, or from `stage`, whatever had passed."""
    order = Order(verb=Verb.RERUN, reason=how.reason, stage=how.stage, queue=how.queue)
    return await _done(context, order, job)


@router.post("/jobs/{job}/cancel", summary="Cancel a job", responses=PROBLEMS)
async def cancel_job(
    job: JobId,
    context: Authenticated,
    how: Annotated[CancelJobRequest, Body()] = CancelJobRequest(),
) -> VerbResult:
    """What waits is cancelled at once; what runs is asked to end, then made to."""
    order = Order(verb=Verb.CANCEL, reason=how.reason, tree=how.tree)
    return await _done(context, order, job, long=how.tree)


@router.post("/jobs/{job}/hold", summary="Hold a job", responses=PROBLEMS)
async def hold_job(job: JobId, context: Authenticated, how: HoldJobRequest) -> VerbResult:
    """Nothing of it starts until it is released; a stage that runs finishes."""
    return await _done(context, Order(verb=Verb.HOLD, reason=how.reason, until_us=how.until), job)


@router.post("/jobs/{job}/release", summary="Release a job", responses=PROBLEMS)
async def release_job(
    job: JobId,
    context: Authenticated,
    how: Annotated[ReasonRequest, Body()] = ReasonRequest(),
) -> VerbResult:
    """Let a held job go on."""
    return await _done(context, Order(verb=Verb.RELEASE, reason=how.reason), job)


@router.post("/jobs/{job}/move", summary="Move a job into another queue", responses=PROBLEMS)
async def move_job(job: JobId, context: Authenticated, how: MoveJobRequest) -> VerbResult:
    """It stays there for later stages and subjobs."""
    return await _done(context, Order(verb=Verb.MOVE, reason=how.reason, queue=how.queue), job)


@router.post("/jobs/{job}/priority", summary="Give a job another priority", responses=PROBLEMS)
async def prioritise_job(job: JobId, context: Authenticated, how: PriorityRequest) -> VerbResult:
    """0 is first, 99 last."""
    return await _done(context, Order(verb=Verb.PRIORITY, reason=how.reason, priority=how.priority), job)


@router.delete("/jobs/{job}", summary="Delete a job", responses=PROBLEMS)
async def delete_job(
    job: JobId,
    context: Authenticated,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> VerbResult:
    """With all below it, and their folders."""
    return await _done(context, Order(verb=Verb.DELETE, reason=reason), job, long=True)


async def _done(context: RequestContext, order: Order, job_id: int, *, long: bool = False) -> VerbResult:
    return await context.run(lambda control: _do(control, order, job_id), long=long)


def _do(control: Control, order: Order, job_id: int) -> VerbResult:
    """Raises NoSuchJob, Forbidden, Refused with what the state of the job says."""
    OrderScope(service=control, order=order).require_job(job_id)
    control.queries.job(job_id)
    steps: list[BulkStep] = []
    bulk = control.bulk
    plan = bulk.plan(order, ids=[job_id])
    report = bulk.run(plan, on_step=lambda _, step: steps.append(step))
    if report.refused:
        raise Refused(next(iter(report.refused.values())))
    return VerbResult(
        touched=[n for step in steps for n in step.touched],
        reopened=[n for step in steps for n in step.reopened],
    )
