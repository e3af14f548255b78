"""The page of locks and capacities: their owners, and the actions that free a lock or set its capacity.

The list has a line for each lock, where the command has one for each owner. Only its first page follows
changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.locks.commands import (
    Capacity,
    FreeLock,
    ListCapacities,
    ListLocks,
    ReleasedLock,
    SetCapacity,
)
from spinney.model.access import Role
from spinney.model.errors import UsageError
from spinney.model.operators.locks import LockInfo
from spinney.model.settings.capacities import AMOUNT_MAX, CapacityInfo
from spinney.model.values.texts import counted
from spinney.web.pages.forms import Form, page_or_part, run_and_redirect
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

LOCKS = "/locks"
PAGE = 100
"""How many locks a page has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock with the jobs that have it, and how many wait for it."""

    name: str
    owners: Sequence[LockInfo]
    """The owners of the lock; empty: a job waits for it and is about to be woken."""
    waiting: int
    """How many jobs wait for it."""
    used: int
    """How much of it jobs have."""
    capacity: int
    """How much there is of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPage:
    """One page of the list of locks, with the capacities that are set or declared."""

    locks: Sequence[Lock]
    capacities: Sequence[CapacityInfo]
    """The capacities that are set or declared, as far as the caller may see them."""
    next: int | str | None
    """What ``after`` of the next page has to be; None: this is the last one."""


@router.get(LOCKS)
async def locks(request: Request, context: Authenticated, after: str = "") -> Response:
    """Show the locks that jobs have or wait for, and the capacities that are set or declared."""

    def read(control: Control) -> LockPage:
        page = control.do(ListLocks(after=after[:200], limit=PAGE))
        listed = [_lock(name, list(infos)) for name, infos in groupby(page.items, key=lambda i: i.name)]
        return LockPage(locks=listed, capacities=control.do(ListCapacities()).items, next=page.next)

    listed = await context.run(read)
    rights = context.principal.rights
    named = {lock.name for lock in listed.locks} | {capacity.name for capacity in listed.capacities}
    mine = {name for name in named if rights.permits(Role.OPERATOR) and rights.names_lock(name)}
    return page_or_part(
        request,
        context,
        "locks",
        topics=() if after else ("locks",),
        lock_page=listed,
        mine=mine,
        after=after,
        next=listed.next,
    )


@router.post(f"{LOCKS}/free")
async def free(context: Authenticated, form: Form) -> Response:
    """Free a lock from all its owners, or from one job. Waiting jobs continue at once."""
    name = form.text("name")

    def call(control: Control) -> ReleasedLock:
        job = form.whole("job", "job's number")
        return control.do(FreeLock(name=name, reason=form.text("reason"), job=job))

    return await run_and_redirect(
        context, LOCKS, call, lambda done: f"{counted(done.lost, 'job')} lost the lock {name}"
    )


@router.post(f"{LOCKS}/capacity")
async def set_capacity(context: Authenticated, form: Form) -> Response:
    """Set the capacity of a lock, or of each lock of a family."""
    name = form.text("name")

    def call(control: Control) -> Capacity:
        capacity = form.whole("capacity", "capacity")
        if capacity is None:
            raise UsageError(f"the capacity of {name or 'the lock'} is missing; enter 1 to {AMOUNT_MAX:,}")
        return control.do(SetCapacity(name=name, capacity=capacity, reason=form.maybe("reason")))

    return await run_and_redirect(
        context, LOCKS, call, lambda now: f"The capacity of {name} is now {now.capacity:,}"
    )


@router.post(f"{LOCKS}/declared")
async def as_declared(context: Authenticated, form: Form) -> Response:
    """Reset the capacity of a lock to what its application declares."""
    name = form.text("name")
    return await run_and_redirect(
        context,
        LOCKS,
        lambda control: control.do(SetCapacity(name=name, capacity=None, reason=form.maybe("reason"))),
        lambda now: f"The capacity of {name} is reset to {now.capacity:,}, as declared",
    )


def _lock(name: str, infos: Sequence[LockInfo]) -> Lock:
    """Return a lock from its items, of which there is one for each owner, or one without a job."""
    first = infos[0]
    owners = [info for info in infos if info.until]
    return Lock(name=name, owners=owners, waiting=first.waiting, used=first.used, capacity=first.capacity)
