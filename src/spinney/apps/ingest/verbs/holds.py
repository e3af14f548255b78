"""Verbs that hold and release: a collection, a batch that its profile holds, ingest or an access queue as a whole.

A batch and its objects belong to the first collection of their profile, so a hold on that covers both. ``pause`` sets a
hold on each queue and type that has none yet, so that it can be interrupted anywhere and repeated.
"""

from collections.abc import Mapping, Sequence
from time import sleep
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.verbs.base import Text, Verb
from spinney.apps.ingest.verbs.lookup import Batch, find_batch, visible_profiles
from spinney.apps.ingest.verbs.service import OBJECT, Service, introduce
from spinney.command_line import completion
from spinney.errors import Refused, UsageError, did_you_mean, listed
from spinney.jobs import LEASED, Job, State
from spinney.operations import Hold as EngineHold
from spinney.operations import (
    LayHold,
    LiftHold,
    Order,
    OrderScope,
    ReleaseJob,
    Role,
    Scope,
    lift_holds,
    sweep_holds,
)
from spinney.operations import Verb as EngineVerb

PAUSABLE: Mapping[str, Sequence[tuple[Scope, str]]] = {
    # Objects are in a queue for each stage; one hold on their type stops them in all of these.
    "ingest": ((Scope.QUEUE, "ingest"), (Scope.TYPE, OBJECT)),
    "access-small": ((Scope.QUEUE, "access-small"),),
    "access-large": ((Scope.QUEUE, "access-large"),),
}
"""The parts of the service that can be paused, and the holds that pause them."""
_LOOKS, _LOOK_S = 300, 0.1
"""How often a release looks whether an attempt has begun with the batch or holds it, and how many seconds apart."""

Reason = Annotated[Text, Field(description="The reason, shown with every held batch and object.")]
AuditReason = Annotated[
    Text | None, Field(description="The reason, recorded in the audit log.", examples=["counted"])
]


def _pausable(incomplete: str) -> list[str]:
    return [name for name in PAUSABLE if name.startswith(incomplete)]


Pausable = Annotated[
    Text,
    Field(description="The queue: `ingest`, `access-small` or `access-large`."),
    typer.Argument(metavar="QUEUE", autocompletion=_pausable),
]


class Hold(Verb, changes=True, long=True):
    """Hold a collection: running jobs finish their stage, all others are held, also those submitted later."""

    collection: Annotated[
        Text, typer.Argument(metavar="COLLECTION", autocompletion=completion.collections)
    ] = Field(description="The collection, with all its batches and objects.")
    reason: Reason

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the id of the ``hold``, and how many ``jobs`` it holds. No job of the collection starts
        after this has returned.

        Raises UsageError for a collection that no profile names, or without a reason; Forbidden.
        """
        _require_known(service, self.collection)
        hold = service.control.do(LayHold(scope=Scope.COLLECTION, name=self.collection, reason=self.reason))
        sweep_holds(service.control)
        return {"hold": hold.id, "jobs": service.store.holds.held(hold.id)}


class Release(Verb, changes=True, long=True):
    """Release a held collection, or a batch that its profile holds."""

    collection: Annotated[
        Text | None, typer.Argument(metavar="COLLECTION", autocompletion=completion.collections)
    ] = Field(default=None, description="The held collection.", examples=["maps"])
    batch: Annotated[Text | None, typer.Option(metavar="BATCH")] = Field(
        default=None, description="A batch that its profile holds.", examples=["4711"]
    )
    reason: AuditReason = None

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the ids of the holds that have ``ended``; for a batch also its name (``batch``) and the holds that
        still cover it (``under``). Raises Refused where nothing is held, UsageError for a collection that no profile
        names.
        """
        if (self.collection is None) == (self.batch is None):
            raise UsageError("name either a collection, or a batch with --batch")
        if self.batch is not None:
            batch = find_batch(service, self.batch)
            return {"batch": batch.bid, "under": [str(hold) for hold in _release_batch(service, batch)]}
        assert self.collection is not None
        holds = service.store.holds.all()
        if (Scope.COLLECTION, self.collection) not in {(hold.scope, hold.name) for hold in holds}:
            _require_known(service, self.collection)
        ended = lift_holds(service.control, Scope.COLLECTION, self.collection, reason=self.reason)
        sweep_holds(service.control)
        return {"ended": [hold.id for hold in ended]}


class Pause(Verb, changes=True, long=True):
    """Pause ingest, or an access queue: none of its jobs start until it is unpaused."""

    what: Pausable = "ingest"
    reason: Reason

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the holds that were set now (``laid``), none where the queue was paused already.

        A hold that ends by itself does not count, so that the pause outlasts it. Raises UsageError for a name
        that cannot be paused, Forbidden.
        """
        parts = _parts(self.what)
        introduce(service.store)
        existing = {(hold.scope, hold.name) for hold in service.store.holds.all() if hold.until_us is None}
        new_holds = [
            service.control.do(LayHold(scope=scope, name=name, reason=self.reason))
            for scope, name in parts
            if (scope, name) not in existing
        ]
        sweep_holds(service.control)
        return {"laid": [hold.id for hold in new_holds]}


class Unpause(Verb, changes=True, long=True):
    """Unpause ingest, or an access queue."""

    what: Pausable = "ingest"
    reason: AuditReason = None

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the holds that ended (``lifted``), none where the queue was not paused. Raises UsageError,
        Forbidden."""
        parts = _parts(self.what)
        holds = [hold for hold in service.store.holds.all() if (hold.scope, hold.name) in parts]
        ended = [service.control.do(LiftHold(hold=hold.id, reason=self.reason)) for hold in holds]
        sweep_holds(service.control)
        return {"lifted": [hold.id for hold in ended]}


def _release_batch(service: Service, batch: Batch) -> Sequence[EngineHold]:
    """Release a batch that is held on submission or by its job, and return the holds that still apply to it.

    Raises Refused when it is not held itself; Forbidden for the submitter of a batch that its profile holds, which
    operators have to check first.
    """
    OrderScope(service=service.control, order=Order(verb=EngineVerb.RELEASE)).require_job(batch.job.id)
    if held_batches.reason(service.settings, batch.bid) is not None:
        service.control.require(Role.OPERATOR, "release a batch that its profile holds")
    was_held = held_batches.unhold(service.settings, batch.bid)
    job = _decided(service, batch.job.id)
    by_a_hold = job.waits_for == "hold"
    if job.state is State.HELD and not (by_a_hold and was_held):
        service.control.do(ReleaseJob(job=job.id))
    elif not was_held:
        if held := batch.objects.get(State.HELD):
            raise Refused(
                f"{batch.bid} is not held itself, but {held} of its objects are, and 'spinney ingest objects "
                f"{batch.bid} --state held' shows why; 'spinney release --parent {job.id} --each' lets them continue"
            )
        raise Refused(f"{batch.bid} is not held; 'spinney ingest status {batch.bid}' shows its state")
    return service.look.holds_on(job.id)


def _decided(service: Service, job_id: int) -> Job:
    """Return the job of a batch once no attempt of it may still hold it for a file that is gone now: it may have read
    the file before. An attempt that does not hold the batch notes first that it has ``begun``.

    After ``_LOOKS`` the job is returned as it is. The cleanup releases it if it is held after all.
    """
    job = service.store.job(job_id)
    for _ in range(_LOOKS):
        if job.state not in LEASED or held_batches.BEGUN in service.store.get_data(job_id):
            break
        sleep(_LOOK_S)
        job = service.store.job(job_id)
    return job


def _parts(what: str) -> Sequence[tuple[Scope, str]]:
    """Return the holds that pause a part of the service. Raises UsageError for other names."""
    if what not in PAUSABLE:
        raise UsageError(
            f"{what!r} cannot be paused{did_you_mean(what, PAUSABLE)}; name one of: {listed(PAUSABLE)}"
        )
    return PAUSABLE[what]


def _require_known(service: Service, collection: str) -> None:
    """Raise UsageError unless a profile that the person may see belongs to the collection."""
    names = {profile.collection for _, profile in visible_profiles(service) if isinstance(profile, Profile)}
    if collection not in names:
        raise UsageError(
            f"no profile belongs to a collection {collection!r}{did_you_mean(collection, names)}; there are: "
            f"{listed(names)}"
        )
