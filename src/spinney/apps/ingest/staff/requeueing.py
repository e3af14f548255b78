"""Sending failed objects back: behind the last stage that passed, or to an earlier one."""

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.paths import shown
from spinney.apps.ingest.staff.batches import BID, JID, batch, object_, seen
from spinney.apps.ingest.staff.service import BATCH, OBJECT, Service
from spinney.control.bulk import Plan, Report
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.operators import Order, Verb
from spinney.model.states import State
from spinney.params.hints import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """What would be sent back, for one thing that was named."""

    what: str
    """``bid-…``, or ``objects``."""
    plan: Plan

    @property
    def objects(self) -> int:
        return self.plan.jobs


def plan(
    service: Service, names: Sequence[str], *, stage: str | None = None, message: str | None = None,
    exact: bool = False,
) -> list[Requeue]:  # fmt: skip
    """Look what it would do: for a batch to all its failed objects (or, when it failed before it had any, to itself);
    for objects to these. ``message``: only to those whose message holds this text. ``exact``: see ``Bulk.plan``.

    Raises UsageError, Refused, NoSuchJob for a name that is none.
    """
    if stage is not None and stage not in STAGES:
        hint = did_you_mean(stage, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(stage[:40])}'{hint}")
    order = Order(verb=Verb.RETRY, stage=stage)
    found, objects = [], list[int]()
    for job in dict.fromkeys(_named(service, name).id for name in names):
        each = service.look.job(job)
        if each.type == OBJECT:
            objects.append(job)
        else:
            found.append(_of_batch(service, each, order, message, exact=exact))
    if objects:
        which = None if message is None else Filter(ids=tuple(objects), message=message)
        ids = objects if which is None else ()
        found.append(Requeue(what="objects", plan=service.control.bulk.plan(order, which, ids, exact=exact)))
    return found


def requeue(service: Service, planned: Requeue) -> Report:
    """Do it, a bounded step at a time; cut off, it goes on with the rest when it is asked for again."""
    return service.control.bulk.run(planned.plan)


def _of_batch(service: Service, job: Job, order: Order, message: str | None, *, exact: bool) -> Requeue:
    bulk, bid = service.control.bulk, seen(service, job).bid
    has_objects = service.store.bulk.count(Filter(parent_id=job.id), most=1)
    if job.state is State.FAILED and not has_objects:
        return Requeue(what=bid, plan=bulk.plan(Order(verb=Verb.RETRY), ids=(job.id,), exact=exact))
    which = Filter(parent_id=job.id, message=message)
    return Requeue(what=bid, plan=bulk.plan(order, which, exact=exact))


def _named(service: Service, name: str) -> Job:
    if BID.fullmatch(name):
        return batch(service, name).job
    if JID.fullmatch(name):
        return object_(service, name)
    if name.isdecimal() and len(name) <= len(str(JOB_ID_MAX)):
        job = service.look.job(int(name))
        if job.type in (BATCH, OBJECT):
            return job
    raise UsageError(
        f"'{shown(name[:80])}' names neither a batch nor an object; write bid-…, jid-… or the number of its job"
    )
