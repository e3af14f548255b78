"""Locks, and how much there is of them."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from spinney.answers import Capacity, Freed
from spinney.control import Control
from spinney.model.capacities import AMOUNT_MAX
from spinney.model.operators import CapacityInfo, LockInfo
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import PAGE, All, JobNumber, Limit, Named, Page, Reason, Word
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("locks")


class CapacityAsked(Reason):
    """How much there is to be of a lock."""

    capacity: Annotated[int, Field(ge=1, le=AMOUNT_MAX)] | None = Field(
        description="null: take back what was set.", examples=[3]
    )


@router.get("/locks", summary="List locks")
async def list_locks(
    hands: Asked,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: Limit = PAGE,
) -> Page[LockInfo]:
    """Those that are held or waited for, by name; one that several have has a line for each."""

    def call(control: Control) -> Page[LockInfo]:
        found = control.look.locks(after=after, limit=limit)
        names = {lock.name for lock in found}
        return Page(items=found, next=found[-1].name if len(names) >= limit else None)

    return await hands.run(call)


@router.get("/locks/{name}", summary="Show a lock")
async def show_lock(name: Named, hands: Asked) -> All[LockInfo]:
    """Who has it and how many wait for it; no lines where nobody has it and nobody waits."""
    return await hands.run(lambda control: All(items=control.look.lock(name)))


@router.delete("/locks/{name}", summary="Take a lock away", responses=documented(404, 409))
async def free_lock(
    name: Named,
    hands: Asked,
    reason: Annotated[Word, Query(description="Why; kept in the audit.")],
    job: Annotated[JobNumber | None, Query(description="From this job alone.")] = None,
) -> Freed:
    """Who waits for it goes on at once, beside the old owner if that is still at work: make sure that it is not."""
    return await hands.run(lambda control: Freed(lost=control.locks.free(name, reason=reason, job_id=job)))


@router.get("/capacities", summary="List how much there is of locks")
async def list_capacities(hands: Asked) -> All[CapacityInfo]:
    """What operators set and applications declare, by name."""
    return await hands.run(lambda control: All(items=control.look.capacities()))


@router.put(
    "/capacities/{name}", summary="Set how much there is of a lock", responses=documented(404, 409, 415)
)
async def set_capacity(name: Named, asked: CapacityAsked, hands: Asked) -> Capacity:
    """Of one, or of each of a family (`download:*`)."""

    def call(control: Control) -> Capacity:
        done = control.locks.set_capacity(name, asked.capacity, reason=asked.reason)
        return Capacity(name=name, capacity=done)

    return await hands.run(call)
