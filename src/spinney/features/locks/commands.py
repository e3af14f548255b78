"""The commands for locks: their owners, their capacities, and freeing a lock whose owner is gone.

A caller with limits whose rights name locks may free these, whichever job has them; without such rights,
those that only visible jobs have. A capacity concerns all jobs, so without such rights it takes a caller
without limits.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import PAGE, PRINTABLE, JobNumber, Limit, Reason, RequiredReason
from spinney.model.access import Role
from spinney.model.errors import Forbidden, Refused
from spinney.model.operators.locks import LockInfo
from spinney.model.settings.capacities import AMOUNT_MAX, CapacityInfo
from spinney.model.values.lists import All, Page
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service, limits
from spinney.service.visibility import Visibility

LockName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="The lock's name.",
        examples=["disk:work"],
    ),
]
Amount = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": AMOUNT_MAX})]
"""The store checks the number, so that its message can say what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedLock:
    """What freeing a lock by hand did to the jobs that had it."""

    lost: int
    """How many jobs have lost it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much there is of a lock."""

    name: str
    capacity: int
    """The capacity in force now."""


class ListLocks(Command, route="GET /locks"):
    """List locks.

    Those that a visible job has or waits for, by name; with an item for each owner. Owners that you may not see are
    not named."""

    after: Annotated[
        str, Field(max_length=200, description="Continue after this lock: `next` of the previous page.")
    ] = ""
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[LockInfo]:
        infos = service.part(Queries).locks(after=self.after, limit=self.limit)
        more = len({info.name for info in infos}) >= self.limit
        return Page(items=infos, next=infos[-1].name if more else None)


class ShowLock(Command, route="GET /locks/{name}"):
    """Show a lock.

    Its owners, and how many jobs wait for it; no items when no visible job has it or waits for it."""

    name: LockName

    def run(self, service: Service) -> All[LockInfo]:
        return All(items=service.part(Queries).lock(self.name))


class FreeLock(Command, route="DELETE /locks/{name}", role=Role.OPERATOR, to="free locks"):
    """Free a lock.

    A job that waits for it goes on at once, beside the old owner if that still runs: make sure that it does not."""

    name: LockName
    reason: RequiredReason
    job: JobNumber | None = Field(default=None, description="Free the lock only from this job.")

    def run(self, service: Service) -> ReleasedLock:
        """Free the lock, and wake nodes for the jobs that waited; return how many jobs have lost it.

        Rights are checked before the transaction that frees the lock, which takes it from no owner that
        was not among those checked. Raises Forbidden, NoSuchJob, and Refused where no such job has it.
        """
        _require_named(service, self.name, "free")
        if self.job is not None and not service.rights.everywhere:
            service.require_within(service.store.job(self.job))
        seen = None
        if self.job is None and _limited_to_visible(service):
            seen = _seen_owners(service, self.name)
        actor, now_us = service.actor(self.reason), service.clock()
        try:
            lost = service.store.locks.free(self.name, actor, job_id=self.job, only_from=seen, now_us=now_us)
        except Refused:
            if service.rights.everywhere:
                raise
            # The store's message names other locks, and the owners of this one.
            raise _not_had(self.name) from None
        service.wake_nodes()
        return ReleasedLock(lost=lost)


class ListCapacities(Command, route="GET /capacities"):
    """List the capacities of locks.

    Those that operators set and applications declare, by name. A caller with limits sees those that are declared, and
    those of locks that the rights of the caller name."""

    def run(self, service: Service) -> All[CapacityInfo]:
        capacities, rights = service.store.locks.capacities(), service.rights
        if rights.everywhere:
            return All(items=capacities)
        own = rights.locks is not None
        return All(
            items=[c for c in capacities if c.declared is not None or (own and rights.names_lock(c.name))]
        )


class SetCapacity(
    Command, route="PUT /capacities/{name}", role=Role.OPERATOR, to="set the capacity of locks"
):
    """Set the capacity of a lock.

    Sets the capacity of one lock, or of each lock of a family (`download:*`). With a larger one, waiting jobs go on;
    with a smaller one, no job loses a lock that it has."""

    name: LockName
    capacity: Amount | None = Field(
        description="The capacity; null: reset it to what is declared.", examples=[3]
    )
    reason: Reason = None

    def run(self, service: Service) -> Capacity:
        _require_named(service, self.name, "set the capacity of")
        if _limited_to_visible(service):
            service.require_everywhere(self.role, self.to)
        actor, now_us = service.actor(self.reason), service.clock()
        done = service.store.locks.set_capacity(self.name, self.capacity, actor, now_us=now_us)
        service.wake_nodes()
        return Capacity(name=self.name, capacity=done)


def _require_named(service: Service, name: str, act: str) -> None:
    """Raise Forbidden unless the caller's rights allow this lock. ``act``: what the caller wants to do to
    it."""
    if not service.rights.names_lock(name):
        may = " or ".join(service.rights.locks or ()) or "none"
        raise Forbidden(f"{service.by} may {act} {may}, not {name!r}; {ASK}")


def _limited_to_visible(service: Service) -> bool:
    """Return whether the caller's locks are only those that visible jobs have."""
    return service.rights.locks is None and not service.rights.everywhere


def _seen_owners(service: Service, name: str) -> set[int]:
    """Return the jobs that have the lock. Raises Refused when no visible job has it, Forbidden when jobs have it that
    the caller may not see."""
    owners = {info.owner_id for info in service.store.locks.get(name) if info.owner_id is not None}
    visible = Visibility(service.store, service.rights.within).visible(owners)
    if not visible:
        raise _not_had(name)
    if visible != owners:
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)} and may not free the lock {name!r}, which other "
            f"jobs have, too; name the job to take it from, or {ASK}"
        )
    return owners


def _not_had(name: str) -> Refused:
    """Return the error that does not say whether a job that is not visible has the lock."""
    return Refused(
        f"no job within your limits has the lock {name!r}, the job that you named does not have it, or another job "
        f"has just taken it; 'spinney locks' lists all locks"
    )
