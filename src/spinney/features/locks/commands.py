"""What people ask of locks: who has which, how much there is of them, and taking them away from jobs that will not give
them back.

Somebody who is limited and has locks to name may free those, whoever has them; without such locks, those that jobs in
sight have.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import PAGE, PRINTABLE, JobNumber, Limit, Reason, RequiredReason
from spinney.model.access import Role
from spinney.model.errors import Forbidden, Refused
from spinney.model.rights.operators import CapacityInfo, LockInfo
from spinney.model.settings.capacities import AMOUNT_MAX
from spinney.model.values.lists import All, Page
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service, limits
from spinney.service.visibility import Visibility

LockName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=PRINTABLE, description="Its name.", examples=["disk:work"]),
]
Amount = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": AMOUNT_MAX})]
"""The store refuses others, since its sentence says what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedLock:
    """A lock that was taken away."""

    lost: int
    """How many had it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much there is of a lock."""

    name: str
    capacity: int
    """In force now."""


class ListLocks(Command, route="GET /locks"):
    """List locks.

    Those that a job in sight has or waits for, by name; one that several have has a line for each. Owners out of sight
    are not named."""

    after: Annotated[str, Field(max_length=200, description="`next` of the page before.")] = ""
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[LockInfo]:
        found = service.part(Queries).locks(after=self.after, limit=self.limit)
        more = len({lock.name for lock in found}) >= self.limit
        return Page(items=found, next=found[-1].name if more else None)


class ShowLock(Command, route="GET /locks/{name}"):
    """Show a lock.

    Who has it and how many wait for it; no lines where nobody in sight has it or waits for it."""

    name: LockName

    def run(self, service: Service) -> All[LockInfo]:
        return All(items=service.part(Queries).lock(self.name))


class FreeLock(Command, route="DELETE /locks/{name}", role=Role.OPERATOR, to="free locks"):
    """Take a lock away.

    Who waits for it goes on at once, beside the old owner if that is still at work: make sure that it is not."""

    name: LockName
    reason: RequiredReason
    job: JobNumber | None = Field(default=None, description="From this job alone.")

    def run(self, service: Service) -> ReleasedLock:
        _require_named(service, self.name, "free")
        if self.job is not None and not service.rights.everywhere:
            service.require_within(service.store.job(self.job))
        if self.job is None and _named_by_sight(service):
            _require_owners_seen(service, self.name)
        actor, now_us = service.actor(self.reason), service.clock()
        try:
            lost = service.store.locks.free(self.name, actor, job_id=self.job, now_us=now_us)
        except Refused:
            if service.rights.everywhere:
                raise
            # The store's sentence names other locks, and who has this one.
            raise _not_had(self.name) from None
        service.wake_nodes()
        return ReleasedLock(lost=lost)


class ListCapacities(Command, route="GET /capacities"):
    """List how much there is of locks.

    What operators set and applications declare, by name. Somebody with limits is told what is declared, and what is
    set of the locks that he may name."""

    def run(self, service: Service) -> All[CapacityInfo]:
        found, rights = service.store.locks.capacities(), service.rights
        if service.rights.everywhere:
            return All(items=found)
        own = rights.locks is not None
        return All(items=[c for c in found if c.declared is not None or (own and rights.names_lock(c.name))])


class SetCapacity(
    Command, route="PUT /capacities/{name}", role=Role.OPERATOR, to="set the capacity of locks"
):
    """Set how much there is of a lock.

    Of one, or of each of a family (`download:*`). Who waits goes on where there is more; where there is less, nobody
    loses what he has."""

    name: LockName
    capacity: Amount | None = Field(description="null: take back what was set.", examples=[3])
    reason: Reason = None

    def run(self, service: Service) -> Capacity:
        _require_named(service, self.name, "set the capacity of")
        if _named_by_sight(service):
            service.require_everywhere(self.role, self.to)
        actor, now_us = service.actor(self.reason), service.clock()
        done = service.store.locks.set_capacity(self.name, self.capacity, actor, now_us=now_us)
        service.wake_nodes()
        return Capacity(name=self.name, capacity=done)


COMMANDS = (ListLocks, ShowLock, FreeLock, ListCapacities, SetCapacity)


def _require_named(service: Service, name: str, what: str) -> None:
    if not service.rights.names_lock(name):
        may = " or ".join(service.rights.locks or ()) or "none"
        raise Forbidden(f"{service.by} may {what} {may}, not {name!r}; {ASK}")


def _named_by_sight(service: Service) -> bool:
    """Whether nothing says which locks are the caller's but what the caller sees."""
    return service.rights.locks is None and not service.rights.everywhere


def _require_owners_seen(service: Service, name: str) -> None:
    owners = {info.owner_id for info in service.store.locks.get(name) if info.owner_id is not None}
    seen = Visibility(service.store, service.rights.within).visible(owners)
    if not seen:
        raise _not_had(name)
    if seen != owners:
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)} and may not free the lock {name!r}, which others "
            f"have, too; name the job to take it from, or {ASK}"
        )


def _not_had(name: str) -> Refused:
    return Refused(
        f"nobody within your limits has the lock {name!r}, or not that job; 'spinney locks' lists those there are"
    )
