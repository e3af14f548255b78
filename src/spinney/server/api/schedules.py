"""Schedules: jobs that are made again and again."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import Field

from spinney.answers import Made
from spinney.control import Control
from spinney.model.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.params.lengths import LengthOfTime
from spinney.server.api.missing import not_there
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import All, Asking, Named, Reason, Word
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("schedules")
PROBLEMS = documented(404, 409, 415)
COMING_MAX = 100


class ScheduleAsked(Asking):
    """What is made, and when: by `cron` or by `every_s`."""

    type: Word
    cron: Word | None = Field(
        default=None,
        description="Five fields, as crontab(5), or a word such as `@daily`.",
        examples=["0 6 * * mon"],
    )
    every_s: Annotated[float, LengthOfTime()] | None = Field(
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


class Paused(Reason):
    """Whether it is to rest."""

    paused: bool


@router.get("/schedules", summary="List schedules")
async def list_schedules(hands: Asked) -> All[Schedule]:
    """By name."""
    return await hands.run(lambda control: All(items=control.look.schedules()))


@router.get("/schedules/{name}", summary="Show a schedule", responses=documented(404))
async def show_schedule(name: Named, hands: Asked) -> Schedule:
    """What it makes, and when next."""
    return await hands.run(lambda control: _schedule(control, name))


@router.put("/schedules/{name}", summary="Make or replace a schedule", responses=PROBLEMS)
async def put_schedule(
    name: Named,
    asked: ScheduleAsked,
    hands: Asked,
    replace: Annotated[bool, Query(description="Replace one that is there; else that is refused.")] = False,
) -> Schedule:
    """Its jobs are checked as a submission is. It is as you want it from now on, whatever code declares."""
    given = {field: getattr(asked, field) for field in ScheduleAsked.model_fields}

    def call(control: Control) -> Schedule:
        control.schedules.put(Schedule(name=name, **given), replace=replace)
        return control.look.schedule(name)

    return await hands.run(call)


@router.patch("/schedules/{name}", summary="Pause a schedule, or let it go on", responses=PROBLEMS)
async def pause_schedule(name: Named, asked: Paused, hands: Asked) -> Schedule:
    """Paused it makes no jobs; what passed meanwhile is caught up with by its policy."""

    def call(control: Control) -> Schedule:
        _schedule(control, name)
        (control.schedules.pause if asked.paused else control.schedules.resume)(name, reason=asked.reason)
        return control.look.schedule(name)

    return await hands.run(call)


@router.delete(
    "/schedules/{name}", summary="Drop a schedule", status_code=204, responses=documented(404, 409)
)
async def drop_schedule(
    name: Named,
    hands: Asked,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> None:
    """Its jobs stay."""

    def call(control: Control) -> None:
        _schedule(control, name)
        control.schedules.drop(name, reason=reason)

    await hands.run(call, long=True)


@router.post(
    "/schedules/{name}/run", summary="Make a job of a schedule now", status_code=201, responses=PROBLEMS
)
async def run_schedule(name: Named, hands: Asked, _: Annotated[Reason, Body()] = Reason()) -> Made:
    """Apart from its times."""

    def call(control: Control) -> Made:
        _schedule(control, name)
        return Made(id=control.schedules.run(name), held=False)

    return await hands.run(call)


@router.get(
    "/schedules/{name}/runs", summary="List the latest times of a schedule", responses=documented(404)
)
async def list_runs(
    name: Named, hands: Asked, limit: Annotated[int, Query(ge=1, le=1_000, description="How many.")] = 20
) -> All[ScheduleRun]:
    """Newest first, and what became of each."""

    def call(control: Control) -> All[ScheduleRun]:
        _schedule(control, name)
        return All(items=control.look.runs(name, limit=limit))

    return await hands.run(call)


@router.get(
    "/schedules/{name}/coming", summary="List the next times of a schedule", responses=documented(404)
)
async def list_coming(
    name: Named, hands: Asked, count: Annotated[int, Query(ge=1, le=COMING_MAX, description="How many.")] = 5
) -> Sequence[int]:
    """Microseconds since 1970 UTC, whether it is paused or not."""

    def call(control: Control) -> Sequence[int]:
        _schedule(control, name)
        return control.look.coming(name, count)

    return await hands.run(call)


def _schedule(control: Control, name: str) -> Schedule:
    with not_there():
        return control.look.schedule(name)
