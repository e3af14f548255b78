"""Requeues objects: failed ones after the last stage that passed, completed ones from the first, or from another."""

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.staff.batches import BID, JID, batch, batch_of, object_
from spinney.apps.ingest.staff.service import BATCH, OBJECT, Service
from spinney.errors import Refused, UsageError, did_you_mean
from spinney.jobs import JOB_ID_MAX, Filter, Job, State
from spinney.operations import Bulk, Order, Plan, Report, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """The plans of a requeue, for a batch or a list of objects."""

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
    """Plan a requeue: of all failed objects of a batch (or of the batch itself, when it failed before it had any), or
    of these objects. ``message``: only of those whose message contains this text. ``completed``: also of completed
    ones, by default from their first stage, since the files for later ones were cleared. ``exact``: see ``Bulk.plan``.

    Raises UsageError, Refused, NoSuchJob for an invalid name.
    """
    if stage is not None and stage not in STAGES:
        hint = did_you_mean(stage, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(stage[:40])}'{hint}")
    requeuer = _Requeuer(service=service, stage=stage, message=message, completed=completed, exact=exact)
    requeues, objects = [], list[Job]()
    for job in dict.fromkeys(_job_of(service, name).id for name in names):
        named_job = service.look.job(job)
        if named_job.type == OBJECT:
            objects.append(named_job)
        else:
            requeues.append(requeuer.of_batch(named_job))
    if objects:
        requeues.append(requeuer.of_objects(objects))
    return requeues


def requeue(service: Service, planned: Requeue) -> Report:
    """Carry out a plan in bounded steps; after an interruption, a repetition continues with the rest."""
    total = Report()
    for plan_ in planned.plans:
        report = service.control.part(Bulk).run(plan_)
        total.touched += report.touched
        total.refused |= report.refused
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requeuer:
    """The options of a requeue."""

    service: Service
    stage: str | None
    message: str | None
    completed: bool
    exact: bool

    def of_batch(self, job: Job) -> Requeue:
        bid = batch_of(self.service, job).bid
        has_objects = self.service.store.bulk.count(Filter(parent_id=job.id), most=1)
        if job.state is State.FAILED and not has_objects:
            return Requeue(what=bid, plans=[self._plan(Order(verb=Verb.RETRY), ids=[job.id])])
        filter_ = Filter(parent_id=job.id, message=self.message)
        orders = [self._failed, self._completed] if self.completed else [self._failed]
        return Requeue(what=bid, plans=[self._plan(order, filter_) for order in orders])

    def of_objects(self, jobs: Sequence[Job]) -> Requeue:
        if not self.completed and (done := next((job for job in jobs if job.state is State.COMPLETED), None)):
            raise Refused(f"job {done.id} completed; add --completed to send it back nevertheless")
        completed_ids = [job.id for job in jobs if self.completed and job.state is State.COMPLETED]
        other_ids = [job.id for job in jobs if job.id not in completed_ids]
        plans = []
        for order, ids in ((self._failed, other_ids), (self._completed, completed_ids)):
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

    def _plan(self, order: Order, filter_: Filter | None = None, ids: Sequence[int] = ()) -> Plan:
        return self.service.control.part(Bulk).plan(order, filter_, ids, exact=self.exact)


def _job_of(service: Service, name: str) -> Job:
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
