"""Locks: who has them, who waits, how much there is of each; to take one away, and to set how much there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.model.access import Role
from spinney.model.capacities import AMOUNT_MAX
from spinney.model.errors import UsageError
from spinney.model.operators import CapacityInfo, LockInfo
from spinney.server.asking import Asked
from spinney.server.ui.given import Form, deed, shown
from spinney.server.ui.rendering import with_query
from spinney.server.ui.words import plural

router = APIRouter(include_in_schema=False)

LOCKS = "/locks"
PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """One lock, with all who have it."""

    name: str
    owners: Sequence[LockInfo]
    """Nobody: somebody waits for it who will be woken."""
    waiting: int
    used: int
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of the list."""

    locks: Sequence[Lock]
    capacities: Sequence[CapacityInfo]
    next: str | None


@router.get(LOCKS, summary="Locks")
async def locks(request: Request, hands: Asked, after: str = "") -> Response:
    """Those that are held or waited for, and what is set of how much there is."""

    def read(control: Control) -> Found:
        lines = control.look.locks(after=after[:200], limit=PAGE)
        made = [_lock(name, list(of)) for name, of in groupby(lines, key=lambda line: line.name)]
        more = made[-1].name if len(made) >= PAGE else None
        return Found(locks=made, capacities=control.look.capacities(), next=more)

    found = await hands.run(read)
    rights = hands.asker.rights
    named = {lock.name for lock in found.locks} | {capacity.name for capacity in found.capacities}
    mine = {name for name in named if rights.permits(Role.OPERATOR) and rights.names_lock(name)}
    return shown(
        request,
        hands,
        "locks",
        topics=() if after else ("locks",),
        found=found,
        mine=mine,
        after=after,
        next=with_query(LOCKS, after=found.next) if found.next else None,
    )


@router.post(f"{LOCKS}/free", summary="Take a lock away")
async def free(hands: Asked, form: Form) -> Response:
    """From all that have it, or from one job. Who waits goes on at once."""
    name = form.text("name")

    def call(control: Control) -> int:
        job = form.whole("job", "job's number")
        return control.locks.free(name, reason=form.text("reason"), job_id=job)

    return await deed(hands, LOCKS, call, lambda lost: f"{plural(lost, 'job')} lost the lock {name}")


@router.post(f"{LOCKS}/capacity", summary="Set how much there is of a lock")
async def set_capacity(hands: Asked, form: Form) -> Response:
    """Of one, or of each of a family."""
    name = form.text("name")

    def call(control: Control) -> int:
        capacity = form.whole("capacity", "capacity")
        if capacity is None:
            raise UsageError(f"say how much there is to be of {name or 'the lock'}: 1 to {AMOUNT_MAX:,}")
        return control.locks.set_capacity(name, capacity, reason=form.maybe("reason"))

    return await deed(hands, LOCKS, call, lambda now: f"There is {now:,} of {name} now")


@router.post(f"{LOCKS}/declared", summary="Take back how much was set of a lock")
async def as_declared(hands: Asked, form: Form) -> Response:
    """As its application says."""
    name = form.text("name")
    return await deed(
        hands,
        LOCKS,
        lambda control: control.locks.set_capacity(name, None, reason=form.maybe("reason")),
        lambda now: f"There is {now:,} of {name} again, as is declared",
    )


def _lock(name: str, lines: Sequence[LockInfo]) -> Lock:
    first = lines[0]
    owners = [line for line in lines if line.until]
    return Lock(name=name, owners=owners, waiting=first.waiting, used=first.used, capacity=first.capacity)
