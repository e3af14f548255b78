"""Sending objects back: failed ones behind the last stage that passed, completed ones to the first; or to another."""

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.staff.batches import BID, JID, batch, object_, seen
from spinney.apps.ingest.staff.service import BATCH, OBJECT, Service
from spinney.errors import Refused, UsageError, did_you_mean
from spinney.jobs import JOB_ID_MAX, Filter, Job, State
from spinney.operations import Order, Plan, Report, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """What would be sent back, for one thing that was named."""

    what: str
    """``bid-…``, or ``objects``."""
    plans: Sequence[Plan]

    @property
    def objects(self) -> int:
        return sum(plan.jobs for plan in self.plans)


def plan(
    service: Service,
    names: Sequence[str],
    *,
    stage: str | None = None,
    message: str | None = None,
    completed: bool = False,
    exact: bool = False,
) -> list[Requeue]:
    """Look what it would do: for a batch to all its failed objects (or, when it failed before it had any, to itself);
    for objects to these. ``message``: only to those whose message holds this text. ``completed``: also to those that
    completed, from their first stage on unless another is named: that needs what was cleared. ``exact``: see
    ``Bulk.plan``.

    Raises UsageError, Refused, NoSuchJob for a name that is none.
    """
    if stage is not None and stage not in STAGES:
        hint = did_you_mean(stage, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(stage[:40])}'{hint}")
    asked = _Asked(service=service, stage=stage, message=message, completed=completed, exact=exact)
    found, objects = [], list[Job]()
    for job in dict.fromkeys(_named(service, name).id for name in names):
        each = service.look.job(job)
        if each.type == OBJECT:
            objects.append(each)
        else:
            found.append(asked.of_batch(each))
    if objects:
        found.append(asked.of_objects(objects))
    return found


def requeue(service: Service, planned: Requeue) -> Report:
    """Do it, a bounded step at a time; cut off, it goes on with the rest when it is asked for again."""
    whole = Report()
    for each in planned.plans:
        done = service.control.bulk.run(each)
        whole.touched += done.touched
        whole.refused |= done.refused
    return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of each that is named."""

    service: Service
    stage: str | None
    message: str | None
    completed: bool
    exact: bool

    def of_batch(self, job: Job) -> Requeue:
        bid = seen(self.service, job).bid
        has_objects = self.service.store.bulk.count(Filter(parent_id=job.id), most=1)
        if job.state is State.FAILED and not has_objects:
            return Requeue(what=bid, plans=[self._plan(Order(verb=Verb.RETRY), ids=[job.id])])
        which = Filter(parent_id=job.id, message=self.message)
        orders = [self._failed, self._completed] if self.completed else [self._failed]
        return Requeue(what=bid, plans=[self._plan(order, which) for order in orders])

    def of_objects(self, jobs: Sequence[Job]) -> Requeue:
        if not self.completed and (done := next((job for job in jobs if job.state is State.COMPLETED), None)):
            raise Refused(f"job {done.id} completed; add --completed to send it back nevertheless")
        again = [job.id for job in jobs if self.completed and job.state is State.COMPLETED]
        others = [job.id for job in jobs if job.id not in again]
        plans = []
        for order, ids in ((self._failed, others), (self._completed, again)):
            if ids and self.message is not None:
                plans.append(self._plan(order, Filter(ids=tuple(ids), message=self.message)))
            elif ids:
                plans.append(self._plan(order, ids=ids))
        return Requeue(what="objects", plans=plans)

    @property
    def _failed(self) -> Order:
        return Order(verb=Verb.RETRY, stage=self.stage)

    @property
    def _completed(self) -> Order:
        return Order(verb=Verb.RERUN, stage=self.stage or STAGES[0])

    def _plan(self, order: Order, which: Filter | None = None, ids: Sequence[int] = ()) -> Plan:
        return self.service.control.bulk.plan(order, which, ids, exact=self.exact)


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
