"""Locks, and how much there is of them."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from spinney.control import Control
from spinney.model.rights.operators import CapacityInfo, LockInfo
from spinney.model.settings.capacities import AMOUNT_MAX
from spinney.model.values.lists import All, Page
from spinney.schemas import Capacity, ReleasedLock
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import PAGE, JobNumber, Limit, NamePath, ReasonRequest, Word
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("locks")


class CapacityRequest(ReasonRequest):
    """How much there is to be of a lock."""

    capacity: Annotated[int, Field(ge=1, le=AMOUNT_MAX)] | None = Field(
        description="null: take back what was set.", examples=[3]
    )


@router.get("/locks", summary="List locks")
async def list_locks(
    context: Authenticated,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: Limit = PAGE,
) -> Page[LockInfo]:
    """Those that are held or waited for, by name; one that several have has a line for each."""

    def call(control: Control) -> Page[LockInfo]:
        found = control.queries.locks(after=after, limit=limit)
        names = {lock.name for lock in found}
        return Page(items=found, next=found[-1].name if len(names) >= limit else None)

    return await context.run(call)


@router.get("/locks/{name}", summary="Show a lock")
async def show_lock(name: NamePath, context: Authenticated) -> All[LockInfo]:
    """Who has it and how many wait for it; no lines where nobody has it and nobody waits."""
    return await context.run(lambda control: All(items=control.queries.lock(name)))


@router.delete("/locks/{name}", summary="Take a lock away", responses=documented(404, 409))
async def free_lock(
    name: NamePath,
    context: Authenticated,
    reason: Annotated[Word, Query(description="Why; kept in the audit.")],
    job: Annotated[JobNumber | None, Query(description="From this job alone.")] = None,
) -> ReleasedLock:
    """Who waits for it goes on at once, beside the old owner if that is still at work: make sure that it is not."""
    return await context.run(
        lambda control: ReleasedLock(lost=control.locks.free(name, reason=reason, job_id=job))
    )


@router.get("/capacities", summary="List how much there is of locks")
async def list_capacities(context: Authenticated) -> All[CapacityInfo]:
    """What operators set and applications declare, by name."""
    return await context.run(lambda control: All(items=control.queries.capacities()))


@router.put(
    "/capacities/{name}", summary="Set how much there is of a lock", responses=documented(404, 409, 415)
)
async def set_capacity(name: NamePath, asked: CapacityRequest, context: Authenticated) -> Capacity:
    """Of one, or of each of a family (`download:*`)."""

    def call(control: Control) -> Capacity:
        done = control.locks.set_capacity(name, asked.capacity, reason=asked.reason)
        return Capacity(name=name, capacity=done)

    return await context.run(call)
