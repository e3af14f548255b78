"""Stops and their end: of a collection, of a batch that its profile holds, of ingest or an access queue as a whole.

A batch and its objects belong to the first collection of their profile, so a hold on that covers both. ``pause`` lays a
hold on each part of what is paused that has none yet, so that it may be cut off anywhere and asked for again.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.staff.batches import Batch
from spinney.apps.ingest.staff.profile_list import collections
from spinney.apps.ingest.staff.service import OBJECT, Service, introduce
from spinney.errors import Refused, UsageError, did_you_mean, listed
from spinney.jobs import State
from spinney.operations import (
    Hold,
    LayHold,
    LiftHold,
    Order,
    OrderScope,
    Role,
    Scope,
    Verb,
    lift_holds,
    sweep_holds,
)

PAUSABLE: Mapping[str, Sequence[tuple[Scope, str]]] = MappingProxyType(
    {
        # Objects stand in a queue a stage; one hold on their type stops them in all of these.
        "ingest": ((Scope.QUEUE, "ingest"), (Scope.TYPE, OBJECT)),
        "access-small": ((Scope.QUEUE, "access-small"),),
        "access-large": ((Scope.QUEUE, "access-large"),),
    }
)
"""What can be paused as a whole, and the holds that do it."""


def hold(service: Service, collection: str, reason: str) -> Hold:
    """Let nothing of a collection start. What runs finishes its stage; what comes is held. Raises UsageError for a
    collection that no profile names, or without a reason."""
    _require_known(service, collection)
    laid = service.control.do(LayHold(scope=Scope.COLLECTION, name=collection, reason=reason))
    sweep_holds(service.control)
    return laid


def release(service: Service, collection: str, reason: str | None) -> Sequence[Hold]:
    """Let a collection go on: every hold on it ends. Raises Refused when there is none, UsageError when no profile
    names it, either."""
    if not any(
        (hold.scope, hold.name) == (Scope.COLLECTION, collection) for hold in service.store.holds.all()
    ):
        _require_known(service, collection)
    lifted = lift_holds(service.control, Scope.COLLECTION, collection, reason=reason)
    sweep_holds(service.control)
    return lifted


def release_batch(service: Service, batch: Batch) -> Sequence[Hold]:
    """Let a batch go on that is held as it came, or by its job; returns the holds that still keep it.

    Raises Refused when nothing of its own holds it, Forbidden: what a profile holds is for operators to look at first,
    and not for who handed it in.
    """
    OrderScope(service=service.control, order=Order(verb=Verb.RELEASE)).require_job(batch.job.id)
    if held_batches.reason(service.settings, batch.bid) is not None:
        service.control.require(Role.OPERATOR, "release a batch that its profile holds")
    was_parked = held_batches.unhold(service.settings, batch.bid)
    job = service.store.job(batch.job.id)
    by_a_hold = job.waits_for == "hold"
    if job.state is State.HELD and not (by_a_hold and was_parked):
        service.control.release(job.id)
    elif not was_parked:
        if held := batch.objects.get(State.HELD):
            raise Refused(
                f"{batch.bid} is not held itself, but {held} of its objects are, and 'spinney ingest objects "
                f"{batch.bid} --state held' tells why; 'spinney release --parent {job.id} --each' lets them go on"
            )
        raise Refused(f"{batch.bid} is not held; 'spinney ingest status {batch.bid}' tells where it stands")
    return service.look.holds_on(job.id)


def pause(service: Service, what: str, reason: str) -> Sequence[Hold]:
    """Let nothing of it start; returns the holds that were laid for it now, none where it was paused already."""
    introduce(service.store)
    there = {(hold.scope, hold.name) for hold in service.store.holds.all() if hold.until_us is None}
    laid = [
        service.control.do(LayHold(scope=scope, name=name, reason=reason))
        for scope, name in PAUSABLE[what]
        if (scope, name) not in there
    ]
    sweep_holds(service.control)
    return laid


def unpause(service: Service, what: str, reason: str | None) -> Sequence[Hold]:
    """Let it go on; returns the holds that ended, none where it was not paused."""
    found = [hold for hold in service.store.holds.all() if (hold.scope, hold.name) in PAUSABLE[what]]
    lifted = [service.control.do(LiftHold(hold=hold.id, reason=reason)) for hold in found]
    sweep_holds(service.control)
    return lifted


def _require_known(service: Service, collection: str) -> None:
    known = {name for name in collections(service.settings) if service.sees(name)}
    if collection not in known:
        raise UsageError(
            f"no profile belongs to a collection {collection!r}{did_you_mean(collection, known)}; there are: "
            f"{listed(known)}"
        )
