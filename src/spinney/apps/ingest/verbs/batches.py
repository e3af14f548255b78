"""Verbs that show batches, their objects and their reports."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Any

from pydantic import Field

from spinney.apps.ingest import report as reports
from spinney.apps.ingest import staff
from spinney.apps.ingest.deposits.elements import elements, mode, passed
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.report.files import PAGE_OBJECTS
from spinney.apps.ingest.staff import Batch, BatchFilter, Service
from spinney.apps.ingest.verbs.base import Text, Verb
from spinney.command_line import display
from spinney.errors import UsageError
from spinney.jobs import JOB_ID_MAX, Filter, Job, State

LIMIT_MAX = 10_000
BATCH = Field(description="`bid-…`, or the number of its job.", examples=["4711"])
AFTER = Field(default=0, ge=0, le=JOB_ID_MAX, description="`next` of the page before: a job's number.")
LIMIT = Field(default=50, ge=1, le=LIMIT_MAX, description="How many at most.")


class Form(StrEnum):
    """The form of a report."""

    TEXT = "txt"
    HTML = "html"
    JSON = "json"


class Status(Verb):
    """Show the state of a batch, and how many of its objects are in each state."""

    name = "status"
    batch: Text = BATCH

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
    profile: Text | None = Field(default=None, description="Only of this profile.", examples=["maps"])
    state: BatchState | None = Field(default=None, description="Only of this state.", examples=["failed"])
    submitter: Text | None = Field(default=None, description="Only of this submitter.", examples=["ann"])
    collection: Text | None = Field(default=None, description="Only of this collection.", examples=["maps"])
    after: int = AFTER
    limit: int = LIMIT

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
    batch: Text = BATCH
    state: list[State] = Field(default=[], description="Only of these states; may be repeated.")
    stage: Text | None = Field(default=None, description="Only at this stage.", examples=["downloading"])
    message: Text | None = Field(
        default=None, description="Only those whose message holds this.", examples=["answers 503"]
    )
    whole: bool = Field(default=False, description="All that is kept of each.")
    after: int = AFTER
    limit: int = LIMIT

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
    object: Text = Field(description="`jid-…`, or the number of its job.", examples=["4712"])

    def run(self, service: Service) -> Mapping[str, Any]:
        return {"object": _elements(service, staff.object_(service, self.object))}


class Report(Verb):
    """Make a report of a batch as it would be now, or find one that was sent: `path` in the files of `job`."""

    name = "report"
    is_long = True
    batch: Text = BATCH
    number: int | None = Field(
        default=None, ge=1, le=10**9, description="This one; else the last.", examples=[1]
    )
    now: bool = Field(default=False, description="As of now, whatever has been told; told to nobody.")
    form: Form = Field(default=Form.TEXT, description="`txt`, `html` or `json`.")

    def run(self, service: Service) -> Mapping[str, Any]:
        if self.now and self.number is not None:
            raise UsageError("--now and --number mean different reports; give one of them")
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
