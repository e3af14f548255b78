"""Holds and releases: of a collection, of a batch that its profile holds, of ingest or an access queue as a whole.

A batch and its objects belong to the first collection of their profile, so a hold on that covers both. ``pause`` sets a
hold on each queue and type that has none yet, so that it can be interrupted anywhere and repeated.
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
    ReleaseJob,
    Role,
    Scope,
    Verb,
    lift_holds,
    sweep_holds,
)

PAUSABLE: Mapping[str, Sequence[tuple[Scope, str]]] = MappingProxyType(
    {
        # Objects are in a queue for each stage; one hold on their type stops them in all of these.
        "ingest": ((Scope.QUEUE, "ingest"), (Scope.TYPE, OBJECT)),
        "access-small": ((Scope.QUEUE, "access-small"),),
        "access-large": ((Scope.QUEUE, "access-large"),),
    }
)
"""The parts of the service that can be paused, and the holds that pause them."""


def hold(service: Service, collection: str, reason: str) -> Hold:
    """Hold all jobs of a collection, also those submitted later; running ones finish their stage. Raises UsageError for
    a collection that no profile names, or without a reason."""
    _require_known(service, collection)
    hold_ = service.control.do(LayHold(scope=Scope.COLLECTION, name=collection, reason=reason))
    sweep_holds(service.control)
    return hold_


def release(service: Service, collection: str, reason: str | None) -> Sequence[Hold]:
    """End every hold on a collection. Raises Refused when there is none, UsageError when no profile names it,
    either."""
    if not any(
        (hold.scope, hold.name) == (Scope.COLLECTION, collection) for hold in service.store.holds.all()
    ):
        _require_known(service, collection)
    ended = lift_holds(service.control, Scope.COLLECTION, collection, reason=reason)
    sweep_holds(service.control)
    return ended


def release_batch(service: Service, batch: Batch) -> Sequence[Hold]:
    """Release a batch that is held on submission or by its job, and return the holds that still apply to it.

    Raises Refused when it is not held itself; Forbidden for the submitter of a batch that its profile holds, which
    operators have to check first.
    """
    OrderScope(service=service.control, order=Order(verb=Verb.RELEASE)).require_job(batch.job.id)
    if held_batches.reason(service.settings, batch.bid) is not None:
        service.control.require(Role.OPERATOR, "release a batch that its profile holds")
    was_held = held_batches.unhold(service.settings, batch.bid)
    job = service.store.job(batch.job.id)
    by_a_hold = job.waits_for == "hold"
    if job.state is State.HELD and not (by_a_hold and was_held):
        service.control.do(ReleaseJob(job=job.id))
    elif not was_held:
        if held := batch.objects.get(State.HELD):
            raise Refused(
                f"{batch.bid} is not held itself, but {held} of its objects are, and 'spinney ingest objects "
                f"{batch.bid} --state held' tells why; 'spinney release --parent {job.id} --each' lets them go on"
            )
        raise Refused(f"{batch.bid} is not held; 'spinney ingest status {batch.bid}' tells where it stands")
    return service.look.holds_on(job.id)


def pause(service: Service, part: str, reason: str) -> Sequence[Hold]:
    """Pause a part of the service, and return the holds that were set now, none where it was paused already."""
    introduce(service.store)
    existing = {(hold.scope, hold.name) for hold in service.store.holds.all() if hold.until_us is None}
    new_holds = [
        service.control.do(LayHold(scope=scope, name=name, reason=reason))
        for scope, name in PAUSABLE[part]
        if (scope, name) not in existing
    ]
    sweep_holds(service.control)
    return new_holds


def unpause(service: Service, part: str, reason: str | None) -> Sequence[Hold]:
    """Unpause a part of the service, and return the holds that ended, none where it was not paused."""
    holds = [hold for hold in service.store.holds.all() if (hold.scope, hold.name) in PAUSABLE[part]]
    ended = [service.control.do(LiftHold(hold=hold.id, reason=reason)) for hold in holds]
    sweep_holds(service.control)
    return ended


def _require_known(service: Service, collection: str) -> None:
    known = {name for name in collections(service.settings) if service.sees(name)}
    if collection not in known:
        raise UsageError(
            f"no profile belongs to a collection {collection!r}{did_you_mean(collection, known)}; there are: "
            f"{listed(known)}"
        )
