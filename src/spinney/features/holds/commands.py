"""The commands for holds: place them, release them, and preview both.

A hold is in force from the moment it is placed. The sweep that follows gives the covered jobs the state ``held``, and
lets jobs go on after a release. It may be interrupted between any two steps: a node or the next command continues it.
"""

import time
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from spinney.commands import Command, LocalPerformer, Performs
from spinney.commands.fields import JobNumber, Moment, Reason, RequiredReason
from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuch, NoSuchJob, UsageError
from spinney.model.jobs import Filter, job_number
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.settings.holds import (
    SWEEP_REST_FACTOR,
    Hold,
    HoldPreview,
    Scope,
    no_such_hold,
    require_valid_hold,
    scope_text,
)
from spinney.model.states import State
from spinney.model.values.lists import All
from spinney.schemas import HeldJobs
from spinney.service.order_scope import OrderScope, lies_beyond
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service, limits
from spinney.service.visibility import Visibility

SWEPT_S = 2.0
"""How many seconds ``CountHeld`` waits until the covered jobs have the state ``held``."""
NUDGE_EVERY = 5
"""After how many steps of a sweep nodes are woken, since jobs may have become ready."""

HoldId = Annotated[int, Field(ge=1, le=2**62, description="The hold's number.")]
HoldScope = Annotated[Scope, Field(strict=False, description="What the hold covers.", examples=["queue"])]
HoldName = Annotated[
    str,
    Field(
        max_length=500,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="The name of the queue, type, collection or submitter; for `tree` and `job` the job's number; "
        "otherwise empty.",
        examples=["slow"],
    ),
]
End = Annotated[Moment | None, Field(description="When the hold ends by itself.")]


def sweep_holds(service: Service, rest: Callable[[float], None] = time.sleep) -> None:
    """Sweep until the state of every job agrees with the holds, with pauses in which others can write.

    The command line calls it after a command; a server does so in the background. Holds that others lay
    meanwhile are swept, too. ``rest`` pauses for some seconds.
    """
    steps = 0
    while service.store.holds.sweep(now_us=service.clock()):
        rest(SWEEP_REST_FACTOR * service.store.holds.took_s)
        steps += 1
        if steps % NUDGE_EVERY == 0:
            service.wake_nodes()
    service.wake_nodes()


class ListHolds(Command, route="GET /holds"):
    """List holds.

    Those in force that cover jobs that you may see, or would; oldest first."""

    released: bool = Field(
        default=False,
        description="List released holds instead, as long as some of their jobs do not continue yet.",
    )

    def run(self, service: Service) -> All[Hold]:
        return All(items=service.part(Queries).holds(released=self.released))


class ListHoldsOn(Command, route="GET /jobs/{job}/holds"):
    """List the holds that cover a job.

    The oldest first."""

    job: JobNumber

    def run(self, service: Service) -> All[Hold]:
        return All(items=service.part(Queries).holds_on(self.job))


class CountHeld(Command, route="GET /holds/{hold}/held", long=True):
    """Count the held jobs that a hold covers.

    It waits a moment for those that do not have the state `held` yet."""

    hold: HoldId

    def run(self, service: Service) -> HeldJobs:
        """Sweep for a moment, then count. Raises NoSuch for a hold that is not in force, or that the
        caller may not see."""
        hold = next((hold for hold in service.part(Queries).holds() if hold.id == self.hold), None)
        if hold is None:
            raise no_such_hold(self.hold)
        give_up = time.monotonic() + SWEPT_S
        while service.store.holds.sweep(now_us=service.clock()) and time.monotonic() < give_up:
            service.go_on()
        if service.rights.everywhere:
            return HeldJobs(jobs=service.store.holds.held(hold.id))
        job_filter = held_filter(service, hold)
        return HeldJobs(
            jobs=0 if job_filter is None else sum(service.part(Queries).counts(job_filter).values())
        )


class _NewHold(Command, route="POST /holds"):
    """The fields of a hold that is to be placed, or of its preview."""

    scope: HoldScope
    name: HoldName = ""
    reason: RequiredReason
    until: End = None


class LayHold(_NewHold, route="POST /holds", status=201, then=sweep_holds):
    """Place a hold.

    When this answers, no job that it covers is claimed any more, and nodes give back jobs that they have not started;
    the state `held` follows."""

    def run(self, service: Service) -> Hold:
        """Place the hold, and return it; ``then`` of the command sweeps after it. Raises what
        ``SqlHolds.lay`` raises, and Forbidden."""
        _require_layable(service, self)
        actor, now_us = service.actor(self.reason), service.clock()
        hold = service.store.holds.lay(
            self.scope, self.name, self.reason, actor, until_us=self.until, now_us=now_us
        )
        service.wake_nodes()
        return hold


class PlanHold(_NewHold, route="POST /holds", dry_run=True):
    """Only count the jobs that would be held; not for `job`."""

    def run(self, service: Service) -> HoldPreview:
        if self.scope is Scope.JOB:
            raise UsageError(
                "a hold on a single job cannot be previewed here; preview the verb `hold` on jobs instead"
            )
        _require_layable(service, self)
        return service.store.holds.would_hold(self.scope, self.name)


class LiftHold(
    Command, route="DELETE /holds/{hold}", role=Role.SUBMITTER, to="release holds", then=sweep_holds
):
    """Release a hold.

    Jobs that no other hold covers go on; a single job goes on at once. A release that was interrupted may be
    repeated."""

    hold: HoldId
    reason: Reason = None

    def run(self, service: Service) -> Hold:
        """Release the hold, and return it.

        A hold that does not exist any more goes to the store in any case, which knows those whose
        sweep was interrupted.
        """
        if not _unlimited(service) and (laid := _laid(service, self.hold)) is not None:
            _require_releasable(service, laid)
        hold = service.store.holds.lift(self.hold, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return hold


class PlanRelease(
    Command, route="DELETE /holds/{hold}", role=Role.SUBMITTER, to="release holds", dry_run=True
):
    """Only count the jobs that would go on."""

    hold: HoldId
    together: list[int] = Field(
        default=[],
        max_length=1_000,
        description="With dry_run: further holds that would be released together with this one.",
    )

    def run(self, service: Service) -> HoldPreview:
        hold_ids = (self.hold, *self.together)
        for hold_id in hold_ids:
            laid = _laid(service, hold_id)
            if laid is None:
                raise no_such_hold(hold_id)
            _require_releasable(service, laid)
        return service.store.holds.would_go_on(hold_ids)


def lying_on(performer: Performs, scope: Scope, name: str) -> list[Hold]:
    """Return the holds of exactly this scope and name, the oldest first.

    When none is in force, those that were released and some of whose jobs are still held: a release that
    was interrupted may so be repeated by the same command. Raises NoSuch when there is none of these
    either.
    """
    for released in (False, True):
        holds = performer.do(ListHolds(released=released)).items
        if same := [hold for hold in holds if (hold.scope, hold.name) == (scope, name)]:
            return same
    raise NoSuch(
        f"there is no hold on {scope_text(scope, name)}; 'spinney holds' lists them all, and 'spinney release "
        "--state held' with a filter releases jobs that are held one by one"
    )


def lift_holds(
    service: LocalPerformer, scope: Scope, name: str = "", *, reason: str | None = None
) -> list[Hold]:
    """Release all holds of exactly this scope and name, or none of them, and return them. Raises NoSuch,
    Forbidden."""
    _require_covered(service, scope, name, Verb.RELEASE)
    holds = lying_on(service, scope, name)
    for hold in holds:
        _require_releasable(service, hold)
    return [service.do(LiftHold(hold=hold.id, reason=reason)) for hold in holds]


def held_filter(service: Service, hold: Hold) -> Filter | None:
    """Return the filter of the held jobs that a hold covers; None when it names no job, or a tree whose
    top is gone or not visible.

    Held jobs include those that another hold or their own stage holds.
    """
    states = (State.HELD,)
    if hold.scope in (Scope.JOB, Scope.TREE):
        job_id = job_number(hold.name)
        if job_id is None:
            return None
        if hold.scope is Scope.JOB:
            return Filter(states=states, ids=(job_id,))
        try:
            top = service.part(Queries).job(job_id)
        except NoSuchJob:
            return None
        if top.root_id == top.id:
            return Filter(states=states, root_id=top.id)
        return Filter(states=states, root_id=top.root_id, below=top.lineage)
    if hold.scope is Scope.EVERYTHING:
        return Filter(states=states)
    return Filter(states=states, **{str(hold.scope): hold.name})  # type: ignore[arg-type]


# --- rights -------------------------------------------------------------------------------------


def _unlimited(service: Service) -> bool:
    """Return whether the caller is an operator without limits."""
    return service.rights.everywhere and service.rights.permits(Role.OPERATOR)


def _require_layable(service: Service, hold: _NewHold) -> None:
    """Raise UsageError, Forbidden or NoSuchJob unless the caller may place this hold."""
    if hold.scope in (Scope.JOB, Scope.TREE):
        _require_number(hold.name, Verb.HOLD)
    _require_covered(service, hold.scope, hold.name, Verb.HOLD)
    require_valid_hold(hold.reason, hold.until, service.clock())


def _require_covered(service: Service, scope: Scope, name: str, verb: Verb) -> None:
    """Raise Forbidden, NoSuchJob unless everything that such a hold covers is within the caller's limits.

    So a caller with limits may hold a queue only without a limit to collections, and a collection only
    without one to queues; never a type or a submitter, whose jobs are everywhere. A submitter may hold
    jobs and trees alone.
    """
    if _unlimited(service):
        return
    act = f"{verb} {'everything' if scope is Scope.EVERYTHING else f'the {scope} {name!r}'}"
    if scope in (Scope.JOB, Scope.TREE):
        _require_reached(service, scope, name, verb)
        return
    service.require(Role.OPERATOR, act)
    within = service.rights.within
    wholly = (scope is Scope.QUEUE and within.collections is None and name in (within.queues or ())) or (
        scope is Scope.COLLECTION and within.queues is None and name in (within.collections or ())
    )
    if not wholly:
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)} and may not {act}, which goes beyond that; {ASK}"
        )


def _require_reached(service: Service, scope: Scope, name: str, verb: Verb) -> None:
    """Raise Forbidden, NoSuchJob unless the caller may hold a job, or a job and all below it."""
    order = Order(verb=Verb.HOLD)
    order_scope = OrderScope(service=service, order=order)
    order_scope.require()
    _require_number(name, verb)
    order_scope.require_job(int(name))
    job = service.store.job(int(name))
    if scope is Scope.TREE and lies_beyond(service, job):
        raise Forbidden(order_scope.beyond(job))


def _laid(service: Service, hold_id: int) -> Hold | None:
    """Return a hold in force, or one that was released and is not swept yet; None: there is none."""
    holds = (*service.store.holds.all(), *service.store.holds.lifted())
    return next((hold for hold in holds if hold.id == hold_id), None)


def _require_releasable(service: Service, hold: Hold) -> None:
    """Raise NoSuch when the caller may not see the hold, Forbidden unless the caller could have placed it. Submitters
    may only release their own holds."""
    if _unlimited(service):
        return
    within = service.rights.within
    if not within.everywhere and not Visibility(service.store, within).holds([hold]):
        raise no_such_hold(hold.id)
    try:
        _require_covered(service, hold.scope, hold.name, Verb.RELEASE)
    except NoSuchJob:
        raise no_such_hold(hold.id) from None
    if hold.by != service.by and not service.rights.permits(Role.OPERATOR):
        raise Forbidden(
            f"{service.by} is a submitter and may not release hold {hold.id}, which {hold.by} placed; ask {hold.by}, "
            f"or an operator"
        )


def _require_number(name: str, verb: Verb) -> None:
    """Raise UsageError unless the name of a hold on a job or tree is a number that a job can have."""
    if not job_number(name):
        raise UsageError(f"{name!r:.60} is not the number of a job; name the job to {verb} by its number")
