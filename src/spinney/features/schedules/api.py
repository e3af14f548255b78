"""Schedules: jobs that are made again and again."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import Field

from spinney.control import Control
from spinney.define.params.duration_field import DurationField
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.values.lists import All
from spinney.schemas import CreatedJob
from spinney.web.api.json_routes import routes
from spinney.web.api.not_found import missing_is_404
from spinney.web.api.request_types import NamePath, ReasonRequest, RequestModel, Word
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("schedules")
PROBLEMS = documented(404, 409, 415)
COMING_MAX = 100


class ScheduleRequest(RequestModel):
    """What is made, and when: by `cron` or by `every_s`."""

    type: Word
    cron: Word | None = Field(
        default=None,
        description="Five fields, as crontab(5), or a word such as `@daily`.",
        examples=["0 6 * * mon"],
    )
    every_s: Annotated[float, DurationField()] | None = Field(
        default=None, description="Seconds, or text such as `1h30m`, from one time to the next."
    )
    zone: Word = Field(default="UTC", description="IANA name of the time zone that `cron` is read in.")
    params: dict[str, Any] = Field(default={})
    options: dict[Word, Any] = Field(
        default={}, description="Of each job: `queue`, `priority`, `share`, `collection`, `submitter`."
    )
    overlap: Annotated[Overlap, Field(strict=False)] = Field(
        Overlap.SKIP, description="When the last job is still open: `skip`, `queue` or `allow`."
    )
    catch_up: Annotated[CatchUp, Field(strict=False)] = Field(
        CatchUp.LAST, description="Of times that passed meanwhile: `none`, `last` or `all`."
    )


class PauseRequest(ReasonRequest):
    """Whether it is to rest."""

    paused: bool


@router.get("/schedules", summary="List schedules")
async def list_schedules(context: Authenticated) -> All[Schedule]:
    """By name."""
    return await context.run(lambda control: All(items=control.queries.schedules()))


@router.get("/schedules/{name}", summary="Show a schedule", responses=documented(404))
async def show_schedule(name: NamePath, context: Authenticated) -> Schedule:
    """What it makes, and when next."""
    return await context.run(lambda control: _schedule(control, name))


@router.put("/schedules/{name}", summary="Make or replace a schedule", responses=PROBLEMS)
async def put_schedule(
    name: NamePath,
    asked: ScheduleRequest,
    context: Authenticated,
    replace: Annotated[bool, Query(description="Replace one that is there; else that is refused.")] = False,
) -> Schedule:
    """Its jobs are checked as a submission is. It is as you want it from now on, whatever code declares."""
    given = {field: getattr(asked, field) for field in ScheduleRequest.model_fields}

    def call(control: Control) -> Schedule:
        control.schedules.put(Schedule(name=name, **given), replace=replace)
        return control.queries.schedule(name)

    return await context.run(call)


@router.patch("/schedules/{name}", summary="Pause a schedule, or let it go on", responses=PROBLEMS)
async def pause_schedule(name: NamePath, asked: PauseRequest, context: Authenticated) -> Schedule:
    """Paused it makes no jobs; what passed meanwhile is caught up with by its policy."""

    def call(control: Control) -> Schedule:
        _schedule(control, name)
        (control.schedules.pause if asked.paused else control.schedules.resume)(name, reason=asked.reason)
        return control.queries.schedule(name)

    return await context.run(call)


@router.delete(
    "/schedules/{name}", summary="Drop a schedule", status_code=204, responses=documented(404, 409)
)
async def drop_schedule(
    name: NamePath,
    context: Authenticated,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> None:
    """Its jobs stay."""

    def call(control: Control) -> None:
        _schedule(control, name)
        control.schedules.drop(name, reason=reason)

    await context.run(call, long=True)


@router.post(
    "/schedules/{name}/run", summary="Make a job of a schedule now", status_code=201, responses=PROBLEMS
)
async def run_schedule(
    name: NamePath, context: Authenticated, _: Annotated[ReasonRequest, Body()] = ReasonRequest()
) -> CreatedJob:
    """Apart from its times."""

    def call(control: Control) -> CreatedJob:
        _schedule(control, name)
        return CreatedJob(id=control.schedules.run(name), held=False)

    return await context.run(call)


@router.get(
    "/schedules/{name}/runs", summary="List the latest times of a schedule", responses=documented(404)
)
async def list_runs(
    name: NamePath,
    context: Authenticated,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many.")] = 20,
) -> All[ScheduleRun]:
    """Newest first, and what became of each."""

    def call(control: Control) -> All[ScheduleRun]:
        _schedule(control, name)
        return All(items=control.queries.runs(name, limit=limit))

    return await context.run(call)


@router.get(
    "/schedules/{name}/coming", summary="List the next times of a schedule", responses=documented(404)
)
async def list_coming(
    name: NamePath,
    context: Authenticated,
    count: Annotated[int, Query(ge=1, le=COMING_MAX, description="How many.")] = 5,
) -> Sequence[int]:
    """Microseconds since 1970 UTC, whether it is paused or not."""

    def call(control: Control) -> Sequence[int]:
        _schedule(control, name)
        return control.queries.coming(name, count)

    return await context.run(call)


def _schedule(control: Control, name: str) -> Schedule:
    with missing_is_404():
        return control.queries.schedule(name)
