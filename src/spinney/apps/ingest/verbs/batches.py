"""Verbs that show batches, their objects and their reports."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest import report as reports
from spinney.apps.ingest import staff
from spinney.apps.ingest.deposits.elements import elements, mode, passed
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.report.files import PAGE_OBJECTS
from spinney.apps.ingest.staff import Batch, BatchFilter, Service
from spinney.apps.ingest.verbs.base import (
    After,
    BatchName,
    CollectionName,
    MessagePart,
    ObjectName,
    ProfileName,
    Text,
    Verb,
    stage_names,
)
from spinney.command_line import completion, display
from spinney.errors import UsageError
from spinney.jobs import Filter, Job, State

LIMIT_MAX = 10_000
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX, description="At most so many rows.")]


class Form(StrEnum):
    """The form of a report."""

    TEXT = "txt"
    HTML = "html"
    JSON = "json"


def _batch_states(incomplete: str) -> list[str]:
    return [state for state in BatchState if state.startswith(incomplete)]


class Status(Verb):
    """Show the state of a batch, and how many of its objects are in each state."""

    name = "status"
    batch: BatchName

    def run(self, service: Service) -> Mapping[str, Any]:
        batch = staff.batch(service, self.batch)
        counts = service.look.counts(Filter(parent_id=batch.job.id))
        holds = service.look.holds_on(batch.job.id) if batch.job.settled_us is None else ()
        objects = {str(state): number for state, number in counts.items() if number}
        details = {"notification": list(batch.order.notify), "objects": objects}
        return _facts(batch) | details | {"holds": list(holds), "under": [str(hold) for hold in holds]}


class Batches(Verb):
    """List batches, the newest first."""

    name = "batches"
    is_long = True
    profile: ProfileName = None
    state: Annotated[BatchState | None, typer.Option(autocompletion=_batch_states)] = Field(
        default=None, description="Only batches in this state.", examples=["failed"]
    )
    submitter: Annotated[Text | None, typer.Option(autocompletion=completion.submitters)] = Field(
        default=None, description="Only batches of this submitter.", examples=["ann"]
    )
    collection: CollectionName = None
    after: After = 0
    limit: Limit = 50

    def run(self, service: Service) -> Mapping[str, Any]:
        filter_ = BatchFilter(
            profile=self.profile, state=self.state, submitter=self.submitter, collection=self.collection
        )
        batches = staff.batches(service, filter_, after=self.after, page=self.limit)
        items = [_facts(batch) for batch in islice(batches, self.limit)]
        return {"items": items, "next": items[-1]["job"] if len(items) == self.limit else None}


class Objects(Verb):
    """List the objects of a batch, in their order."""

    name = "objects"
    is_long = True
    batch: BatchName
    state: Annotated[list[State], typer.Option(autocompletion=completion.states)] = Field(
        default=[], description="Only objects in this state; may be repeated."
    )
    stage: Annotated[Text | None, typer.Option(autocompletion=stage_names)] = Field(
        default=None, description="Only at this stage.", examples=["downloading"]
    )
    message: MessagePart = None
    whole: bool = Field(default=False, description="All data of each object.")
    after: After = 0
    limit: Limit = 50

    def run(self, service: Service) -> Mapping[str, Any]:
        matching = staff.objects(
            service,
            staff.batch(service, self.batch),
            states=self.state,
            stage=self.stage,
            message=self.message,
            after=self.after,
        )
        jobs = list(islice(matching, self.limit))
        items = [_elements(service, job) if self.whole else _object(job) for job in jobs]
        return {"items": items, "next": jobs[-1].id if len(jobs) == self.limit else None}


class Object(Verb):
    """Show all data of an object."""

    name = "object"
    is_long = True
    object: ObjectName

    def run(self, service: Service) -> Mapping[str, Any]:
        return {"object": _elements(service, staff.object_(service, self.object))}


class Report(Verb):
    """Make a report of a batch as it would be now, or find one that was sent: `path` in the files of `job`."""

    name = "report"
    is_long = True
    batch: BatchName
    number: Annotated[int | None, typer.Option(metavar="N")] = Field(
        default=None,
        ge=1,
        le=10**9,
        description="The number of the report (default: the last).",
        examples=[1],
    )
    now: bool = Field(default=False, description="Make a report of the current state, without sending it.")
    form: Form = Field(default=Form.TEXT, description="The form of the report: `txt`, `html` or `json`.")

    def run(self, service: Service) -> Mapping[str, Any]:
        if self.now and self.number is not None:
            raise UsageError("--now and --number exclude each other; give only one of them")
        batch = staff.batch(service, self.batch)
        if not self.now:
            job, path = batch.job.id, staff.path_of(batch, f"report.{self.form}", self.number)
            return {"job": job, "path": path, "link": f"/api/v1/jobs/{job}/files/{path}"}
        report = staff.as_of_now(service, batch)
        if self.form is Form.JSON:
            return {
                "report": report.head()
                | {name: getattr(report, name) for name in ("completed", "failed", "others")}
            }
        if self.form is Form.HTML:
            return {"report": reports.html(report, limit=PAGE_OBJECTS, completed=PAGE_OBJECTS)}
        return {"report": reports.text(report, all_objects=True)}


def _facts(batch: Batch) -> dict[str, Any]:
    job, order = batch.job, batch.order
    return {
        "batch": batch.bid,
        "job": job.id,
        "state": batch.state,
        "stage": job.stage,
        "message": display.state_message(job),
        "profile": order.profile,
        "collection": job.collection,
        "submitter": order.submitter,
        "payload": order.name,
        "kind": order.kind,
        "mode": mode(update=order.update),
        "reports": batch.reports,
        "failed_objects": batch.failed,
        "objects": {str(state): n for state, n in batch.objects.items()},
        "warnings": batch.warnings,
        "accepted_us": job.created_us,
        "settled_us": job.settled_us,
    }


def _object(job: Job) -> dict[str, Any]:
    order = ObjectOrder.model_validate(job.params["order"])
    name = next(iter(order.about.local_ids), None) or order.about.title or order.payload.name
    return {
        "job": job.id,
        "jid": order.jid,
        "state": display.state_text(job),
        "stage": job.stage,
        "passed": passed(job),
        "name": name,
        "message": display.state_message(job),
    }


def _elements(service: Service, job: Job) -> Any:
    return elements(service.store, service.settings, service.folders, job)
