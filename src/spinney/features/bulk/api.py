"""One verb, many jobs: looked at first, then done, with progress where it is asked for."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

from fastapi import Request
from pydantic import Field
from starlette.responses import StreamingResponse

from spinney.commands.fields import Priority, Time, Word
from spinney.control import Control
from spinney.define.params.duration_field import DurationField
from spinney.model.bulk_runs import Plan, Report
from spinney.model.errors import Refused, UsageError
from spinney.model.rights.operators import BulkStep, Order, Verb
from spinney.schemas import BulkPreview, BulkResult
from spinney.service.canary import Canary, CanaryRun
from spinney.web.api.job_filter import JobFilterBody
from spinney.web.api.json_routes import NDJSON, line, routes
from spinney.web.api.request_types import JobNumber, ReasonRequest, RequestModel, removing
from spinney.web.problems import TooMany, documented, of_error
from spinney.web.request_context import Authenticated, RequestContext

router = routes("verbs")
IDS_MAX = 10_000
SAMPLE = 20
TOLD_MAX = 1_000
"""Refusals that are told one by one."""
CANARY_MOST_S = 3_600
AGAIN_S = 30.0


class CanaryRequest(RequestModel):
    """A few jobs first; more only while few of those fail."""

    first: Annotated[int, Field(ge=1, le=IDS_MAX)] = Field(
        description="So many jobs go first.", examples=[10]
    )
    stop_at: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.1, description="The share of failures, 0 to 1, at which it stops."
    )
    patience_s: Annotated[float, Field(gt=0, le=CANARY_MOST_S), DurationField()] = Field(
        default=600.0,
        description="Seconds, or text such as `5m`: so long it waits for jobs to settle, each time.",
    )


class VerbRequest(ReasonRequest):
    """A verb, and to which jobs: those of `ids`, those that fit `filter`, or of these those that fit."""

    verb: Annotated[Verb, Field(strict=False)]
    filter: JobFilterBody | None = Field(
        default=None, description="To all jobs that fit; at least one field is given."
    )
    ids: Annotated[list[JobNumber], Field(min_length=1, max_length=IDS_MAX)] | None = Field(
        default=None, description="To these jobs."
    )
    stage: Word | None = Field(default=None, description="retry, rerun: from this stage on.")
    and_after: bool = Field(
        default=False, description="retry, rerun: also what finished after the first failure of its tree."
    )
    tree: bool = Field(default=False, description="cancel: with all below.")
    queue: Word | None = Field(default=None, description="move: where to; retry, rerun: in this queue.")
    priority: Priority | None = Field(default=None, description="priority: which.")
    until: Time | None = Field(default=None, description="hold: ends by itself at this time.")
    dry_run: bool = Field(
        default=False,
        description="Only say to how many it would be done, without those that it would be refused for.",
    )
    expect: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Refuse unless it would be done to so many jobs, as the dry run said."
    )
    canary: CanaryRequest | None = Field(default=None, description="retry, rerun: a few jobs first.")

    def order(self) -> Order:
        return Order(
            verb=self.verb,
            reason=self.reason,
            stage=self.stage,
            and_after=self.and_after,
            tree=self.tree,
            queue=self.queue,
            priority=self.priority,
            until_us=self.until,
        )


@router.post(
    "/jobs/verbs",
    summary="Do something to many jobs",
    responses=documented(404, 409, 415)
    | {
        200: {
            "description": "What it would come to (`dry_run`), or came to. With `Accept: application/x-ndjson` a "
            'line for each step, `{"step": …}`, and a last one, `{"report": …}` or `{"problem": …}`.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        },
    },
)
async def do_to_many(
    asked: VerbRequest, context: Authenticated, request: Request
) -> BulkPreview | BulkResult:
    """Look first with `dry_run`, then give its number as `expect`. Who goes away before the end stops it after the step
    that is being done; the same request, given again, does the rest."""
    _require_named(asked)
    if asked.dry_run:
        return await context.run(lambda control: _planned(control, asked), long=True)
    running = _Running(context, request, asked)
    if NDJSON in request.headers.get("accept", ""):
        lines: Any = StreamingResponse(running.lines(), media_type=NDJSON)
        return cast(BulkResult, lines)
    return await running.report()


def _require_named(asked: VerbRequest) -> None:
    if asked.ids is None and (asked.filter is None or not asked.filter.model_fields_set):
        raise UsageError(
            f"name the jobs to {asked.verb} in ids, or say which in filter, with at least one field"
        )


def _planned(control: Control, asked: VerbRequest) -> BulkPreview:
    plan = _plan(control, asked)
    if plan.which is None:
        sample: Sequence[int] = plan.ids[:SAMPLE]
    else:
        sample = [job.id for job in control.queries.jobs(plan.which, limit=SAMPLE)]
    stages = control.bulk.stages(plan)
    return BulkPreview(verb=plan.order.verb, jobs=plan.jobs, more=plan.more, stages=stages, sample=sample)


def _plan(control: Control, asked: VerbRequest) -> Plan:
    which = None if asked.filter is None else asked.filter.filter(control)
    exact = asked.dry_run or asked.expect is not None
    plan = control.bulk.plan(asked.order(), which, asked.ids or (), exact=exact)
    if asked.expect is not None and (plan.jobs != asked.expect or plan.more):
        raise Refused(
            f"it would be done to {'more than ' if plan.more else ''}{plan.jobs:,} jobs now, not to {asked.expect:,}; "
            f"look again with dry_run"
        )
    return plan


class _Running:
    """One run, in a thread of the server's for what is long."""

    def __init__(self, context: RequestContext, request: Request, asked: VerbRequest) -> None:
        self._context, self._request, self._asked = context, request, asked
        self._gone = threading.Event()
        """Nobody waits for it any more."""
        self._told: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    async def report(self) -> BulkResult:
        """Do it; what it came to."""
        try:
            with _canary_room(self._request, self._asked):
                return await self._context.run(self._run, long=True)
        except asyncio.CancelledError:
            self._gone.set()
            raise

    async def lines(self) -> AsyncIterator[bytes]:
        """Do it; a line for each step, and one for the end."""
        done = asyncio.create_task(self.report())
        done.add_done_callback(lambda _: self._told.put_nowait(None))
        try:
            while (told := await self._told.get()) is not None:
                yield told
            error = done.exception()
            if error is None:
                yield line({"report": done.result()})
            else:
                problem = of_error(error, instance=self._request.url.path)  # type: ignore[arg-type]
                yield b'{"problem":' + bytes(problem.body) + b"}\n"
        finally:
            self._gone.set()

    def _run(self, control: Control) -> BulkResult:
        canary = self._asked.canary
        trial = (
            None
            if canary is None
            else Canary(first=canary.first, stop_at=canary.stop_at, patience_s=canary.patience_s)
        )
        plan = _plan(control, self._asked)
        report = control.bulk.run(
            plan, remove=removing(self._request), canary=trial, on_step=self._step, on_canary_check=self._look
        )
        self._context.refused_jobs(control.store, report)
        return _reported(plan, report)

    def _step(self, report: Report, step: BulkStep) -> None:
        self._tell(
            {
                "step": {
                    "touched": report.touched,
                    "reopened": report.reopened,
                    "skipped": report.skipped,
                    "refused": len(report.refused),
                }
            }
        )

    def _look(self, report: Report, trial: CanaryRun) -> None:
        self._tell({"canary": {"begun": trial.begun, "rested": trial.rested, "bad": trial.bad}})

    def _tell(self, value: object) -> None:
        if self._gone.is_set():
            raise Refused("nobody waits for it any more; it was stopped, and the same request does the rest")
        self._loop.call_soon_threadsafe(self._told.put_nowait, line(value))


def _reported(plan: Plan, report: Report) -> BulkResult:
    told = dict(list(report.refused.items())[:TOLD_MAX])
    return BulkResult(
        verb=plan.order.verb,
        touched=report.touched,
        reopened=report.reopened,
        skipped=report.skipped,
        refused=told,
        refused_jobs=len(report.refused),
        stopped=report.stopped,
    )


@contextmanager
def _canary_room(request: Request, asked: VerbRequest) -> Iterator[None]:
    """A canary waits long, in one of few threads: one at a time."""
    state = request.app.state
    if asked.canary is None:
        yield
        return
    if getattr(state, "canary", False):
        raise TooMany("another canary is being watched by this server; wait until it has ended", AGAIN_S)
    state.canary = True
    try:
        yield
    finally:
        state.canary = False
