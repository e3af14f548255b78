"""Holds: stops with a reason."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field
from starlette.background import BackgroundTask

from spinney.model.rights.operators import HoldPreview
from spinney.model.settings.holds import Hold, Scope
from spinney.model.values.lists import All
from spinney.web.api.json_routes import routes, told
from spinney.web.api.request_types import Moment, RequestModel, Word
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

router = routes("holds")
HoldId = Annotated[int, Path(alias="hold", ge=1, le=2**62, description="Its number.")]


class HoldRequest(RequestModel):
    """What is to be held, and why."""

    scope: Annotated[Scope, Field(strict=False)] = Field(examples=["queue"])
    name: Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        default="",
        description="Of the queue, type, collection or submitter; a job's number for `tree` and `job`; else empty.",
        examples=["slow"],
    )
    reason: Word = Field(description="Why; shown to everybody.", examples=["the receiver is being repaired"])
    until: Moment | None = Field(default=None, description="It ends by itself at this time.")
    dry_run: bool = Field(
        default=False, description="Only say how many jobs would stand held; not for `job`."
    )


@router.get("/holds", summary="List holds")
async def list_holds(
    context: Authenticated,
    released: Annotated[
        bool,
        Query(description="Instead those that were released while what they kept does not all go on yet."),
    ] = False,
) -> All[Hold]:
    """Those in force, oldest first."""
    return await context.run(
        lambda control: All(items=control.holds.lifted() if released else control.queries.holds())
    )


@router.post("/holds", summary="Lay a hold", status_code=201, responses=documented(404, 409, 415))
async def lay_hold(asked: HoldRequest, context: Authenticated) -> Hold | HoldPreview:
    """When this answers nothing that it covers is claimed any more; that jobs stand as `held` follows."""
    if asked.dry_run:
        preview = await context.run(
            lambda control: control.holds.would_hold(
                asked.scope, asked.name, reason=asked.reason, until_us=asked.until
            )
        )
        return told(preview, 200)
    done = await context.run(
        lambda control: control.holds.lay(asked.scope, asked.name, reason=asked.reason, until_us=asked.until)
    )
    return _swept(context, done, 201)


@router.delete("/holds/{hold}", summary="Release a hold", responses=documented(404, 409))
async def lift_hold(
    hold: HoldId,
    context: Authenticated,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
    dry_run: Annotated[bool, Query(description="Only say how many jobs would go on.")] = False,
    together: Annotated[
        list[int], Query(max_length=1_000, description="dry_run: if these holds were released, too.")
    ] = [],  # noqa: B006 - never changed
) -> Hold | HoldPreview:
    """What no other hold covers goes on. A release that was cut off before all did may be asked for again."""
    if dry_run:
        return told(await context.run(lambda control: control.holds.would_lift([hold, *together])), 200)
    done = await context.run(lambda control: control.holds.lift(hold, reason=reason))
    return _swept(context, done, 200)


def _swept(context: RequestContext, hold: Hold, status: int) -> Hold:
    """The hold; what it covers follows after the answer, unless a node is quicker."""

    async def sweep() -> None:
        await context.run(lambda control: control.holds.sweep(), long=True)

    return told(hold, status, background=BackgroundTask(sweep))
