"""The verb that requeues objects: failed ones after the last stage that passed, completed ones from the first, or from
another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.deposits.orders import BID, JID
from spinney.apps.ingest.verbs.base import DryRun, MessagePart, Text, Verb, require_stage, stage_names
from spinney.apps.ingest.verbs.lookup import batch_of, find_batch, find_object, numbered
from spinney.apps.ingest.verbs.service import BATCH, OBJECT, Service
from spinney.errors import Refused, UsageError
from spinney.jobs import Filter, Job, State
from spinney.operations import Bulk, Order, Plan
from spinney.operations import Verb as EngineVerb


class Requeue(Verb, changes=True, long=True):
    """Requeue objects: those of a batch that failed and, optionally, those that completed. When they have settled, the
    batch reports again."""

    names: Annotated[list[Text], typer.Argument(metavar="BATCH|OBJECT")] = Field(
        description="Batches or objects: `bid-…`, `jid-…`, or the numbers of their jobs."
    )
    stage: Annotated[Text | None, typer.Option("--from", metavar="STAGE", autocompletion=stage_names)] = (
        Field(
            default=None,
            description="Restart from this stage (default: after the last that was successful).",
            examples=["downloading"],
        )
    )
    message: MessagePart = None
    completed: bool = Field(default=False, description="Also completed objects, from their first stage on.")
    dry_run: DryRun = False

    def run(self, service: Service) -> Mapping[str, Any]:
        """Plan the requeue of each batch, and of all named objects together, then carry the plans out in bounded steps;
        after an interruption, a repetition continues with the rest. Raises UsageError, Refused, NoSuchJob for an
        invalid name."""
        if self.stage is not None:
            require_stage(self.stage)
        jobs = {job.id: job for job in (_named_job(service, name) for name in self.names)}.values()
        batches = {batch_of(service, job).bid: job for job in jobs if job.type == BATCH}
        plans = {bid: self._batch_plans(service, job) for bid, job in batches.items()}
        if objects := [job for job in jobs if job.type == OBJECT]:
            plans["objects"] = self._object_plans(service, objects)
        items = [{"what": what, **self._carry_out(service, plans[what])} for what in plans]
        for item in items:
            job = batches.get(item["what"])
            if job is not None and job.state is State.CANCELLED and item.get("requeued") == 0:
                item["refused"][job.id] = (
                    f"{item['what']} was cancelled and has not failed; 'spinney retry --batch {job.id} --state "
                    f"cancelled' lets it go on, with its cancelled objects"
                )
        return {"items": items}

    def _carry_out(self, service: Service, plans: Sequence[Plan]) -> dict[str, Any]:
        """Carry out these plans, or only count their objects; ``refused``: a sentence for each job that refused."""
        if self.dry_run:
            return {"would_requeue": sum(plan.jobs for plan in plans)}
        reports = [service.control.part(Bulk).run(plan) for plan in plans]
        refused: dict[int, str] = {}
        for report in reports:
            refused |= report.refused
        return {"requeued": sum(report.touched for report in reports), "refused": refused}

    def _batch_plans(self, service: Service, job: Job) -> list[Plan]:
        """Plan for all failed objects of a batch, or for the batch itself when it failed before it had any."""
        objects = Filter(parent_id=job.id, superseded=False)
        if job.state is State.FAILED and not service.store.job_lists.count(objects, most=1):
            return [self._plan(service, Order(verb=EngineVerb.RETRY), ids=[job.id])]
        filter_ = replace(objects, message=self.message)
        orders = [self._failed, self._completed] if self.completed else [self._failed]
        return [self._plan(service, order, filter_) for order in orders]

    def _object_plans(self, service: Service, jobs: Sequence[Job]) -> list[Plan]:
        """Plan for objects that were named one by one. Raises Refused for completed ones unless these are included."""
        completed_ids = [job.id for job in jobs if job.state is State.COMPLETED]
        if completed_ids and not self.completed:
            raise Refused(f"job {completed_ids[0]} completed; add --completed to requeue it nevertheless")
        other_ids = [job.id for job in jobs if job.state is not State.COMPLETED]
        plans = []
        for order, ids in ((self._failed, other_ids), (self._completed, completed_ids)):
            if ids and self.message is not None:
                plans.append(self._plan(service, order, Filter(ids=tuple(ids), message=self.message)))
            elif ids:
                plans.append(self._plan(service, order, ids=ids))
        return plans

    @property
    def _failed(self) -> Order:
        return Order(verb=EngineVerb.RETRY, stage=self.stage)

    @property
    def _completed(self) -> Order:
        """Return the order for completed objects. They begin at their first stage by default, since the files that
        later stages need were cleared."""
        return Order(verb=EngineVerb.RERUN, stage=self.stage or STAGES[0])

    def _plan(
        self, service: Service, order: Order, filter_: Filter | None = None, ids: Sequence[int] = ()
    ) -> Plan:
        """Return a plan of the engine for these jobs. Only a dry run needs their exact number, which takes a
        count."""
        return service.control.part(Bulk).plan(order, filter_, ids, exact=self.dry_run)


def _named_job(service: Service, name: str) -> Job:
    """Return the job of a batch or object by its name or number."""
    if BID.fullmatch(name):
        return find_batch(service, name).job
    if JID.fullmatch(name):
        return find_object(service, name)
    job = numbered(service, name, "bid-…, jid-… or the number of its job")
    if job.type not in (BATCH, OBJECT):
        raise UsageError(
            f"job {job.id} is a {job.type!r} job, and neither a batch nor an object; name another"
        )
    return job
