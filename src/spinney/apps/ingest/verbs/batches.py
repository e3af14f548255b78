"""Verbs that show batches, their objects and their reports.

The jobs are read from the store by ``service.look``, which leaves out what the person may not see; what
stages have recorded of a job that was found is then read from the store itself.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest import report as report_forms
from spinney.apps.ingest.application import passed
from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.batches.batch_reports import BatchReports, report_folder, reported_key
from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.deposits.states import READING, BatchState
from spinney.apps.ingest.report.files import PAGE_OBJECTS
from spinney.apps.ingest.verbs import lookup
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
from spinney.apps.ingest.verbs.elements import elements, mode
from spinney.apps.ingest.verbs.lookup import Batch, find_batch, find_object
from spinney.apps.ingest.verbs.service import OBJECT, Service
from spinney.command_line import completion, display
from spinney.errors import Refused, UsageError, counted
from spinney.jobs import Filter, Job, State, job_folder
from spinney.operations import all_jobs

LIMIT_MAX = 10_000
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX, description="The maximum number of rows.")]


class Form(StrEnum):
    """The form in which a report is asked for, by the ending of its file's name."""

    TEXT = "txt"
    HTML = "html"
    JSON = "json"


class Status(Verb):
    """Show the state of a batch, and how many of its objects are in each state."""

    batch: BatchName

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the batch, the number of its objects in each state, and the holds that apply to it: as
        values (``holds``) and as sentences (``under``).

        For a batch that has settled no holds are looked up. Raises UsageError, Refused and NoSuchJob for a
        name of no batch.
        """
        batch = find_batch(service, self.batch)
        counts = service.look.counts(Filter(parent_id=batch.job.id, superseded=False))
        holds = service.look.holds_on(batch.job.id) if batch.job.settled_us is None else ()
        objects = {str(state): number for state, number in counts.items() if number}
        details = {"notification": list(batch.order.notify), "objects": objects}
        return _facts(batch) | details | {"holds": list(holds), "under": [str(hold) for hold in holds]}


class Batches(Verb, long=True):
    """List batches, the newest first."""

    profile: ProfileName = None
    state: BatchState | None = Field(
        default=None, description="Only batches in this state.", examples=["failed"]
    )
    submitter: Annotated[Text | None, typer.Option(autocompletion=completion.submitters)] = Field(
        default=None, description="Only batches of this submitter.", examples=["ann"]
    )
    collection: CollectionName = None
    after: After = 0
    limit: Limit = 50

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return a page of batches (``items``), and after which job the next page begins (``next``; None: this is the
        last)."""
        batches = lookup.batches(
            service,
            profile=self.profile,
            state=self.state,
            submitter=self.submitter,
            collection=self.collection,
            after=self.after,
            page=self.limit,
        )
        items = [_facts(batch) for batch in islice(batches, self.limit)]
        return {"items": items, "next": items[-1]["job"] if len(items) == self.limit else None}


class Objects(Verb, long=True):
    """List the objects of a batch, in their order."""

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
        """Return a page of objects (``items``), each with its state or, if ``whole``, with all its elements,
        and after which job the next page begins (``next``; None: this is the last).

        Deleted objects are listed only where that state is named, and those of an earlier run of the whole batch
        never. Raises UsageError, Refused and NoSuchJob for a name of no batch.
        """
        filter_ = Filter(
            type=OBJECT,
            parent_id=find_batch(service, self.batch).job.id,
            superseded=False,
            states=tuple(self.state) or lookup.KEPT,
            stage=self.stage,
            message=self.message,
        )
        jobs = service.look.jobs(filter_, after=self.after, limit=self.limit)
        items = [_elements(service, job) if self.whole else _object(job) for job in jobs]
        return {"items": items, "next": jobs[-1].id if len(jobs) == self.limit else None}


class Object(Verb, long=True):
    """Show all data of an object."""

    object: ObjectName

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the elements of the object (``elements``)."""
        return {"object": _elements(service, find_object(service, self.object))}


class Report(Verb, long=True):
    """Make a report of a batch as it would be now, or find one that was sent: `path` in the files of `job`."""

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
        """Return the report itself (``report``: text, HTML or a JSON value) or, for one that was sent, where its file
        is: ``path`` in the folder of the job ``job``, and its URL (``link``)."""
        if self.now and self.number is not None:
            raise UsageError("--now and --number exclude each other; give only one of them")
        batch = find_batch(service, self.batch)
        if batch.state is BatchState.DELETED:
            raise Refused(
                f"{batch.bid} is deleted with its reports; 'spinney ingest find' shows what is stored"
            )
        if not self.now:
            job, path = batch.job.id, _report_path(batch, f"report.{self.form}", self.number)
            return {"job": job, "path": path, "link": f"/api/v1/jobs/{job}/files/{path}"}
        report = _report_as_of_now(service, batch)
        if self.form is Form.JSON:
            return {
                "report": report.head()
                | {name: getattr(report, name) for name in ("completed", "failed", "others")}
            }
        if self.form is Form.HTML:
            return {"report": report_forms.html(report, limit=PAGE_OBJECTS, completed=PAGE_OBJECTS)}
        return {"report": report_forms.text(report, all_objects=True)}


def _facts(batch: Batch) -> dict[str, Any]:
    """Return the fields of a batch that lists and ``status`` show."""
    job, order = batch.job, batch.order
    return {
        "batch": batch.bid,
        "job": job.id,
        "state": batch.state,
        "stage": job.stage,
        "message": _message(batch),
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


def _message(batch: Batch) -> str:
    """Return the message about the state of a batch, in words for its objects where the engine has some for the subjobs
    of any job."""
    job = batch.job
    if job.state is State.WAITING and job.waits_for == "children":
        held = batch.objects.get(State.HELD, 0)
        return "waits for its objects" + (f"; {held:,} {'is' if held == 1 else 'are'} held" if held else "")
    if job.failed_because == "children" and batch.failed:
        return f"{counted(batch.failed, 'object')} failed"
    return display.state_message(job)


def _object(job: Job) -> dict[str, Any]:
    """Return the fields of an object that lists show; its name is the first that its depositor gave."""
    order = ObjectOrder.model_validate(job.params["order"])
    name = next(iter(order.about.local_ids), None) or order.about.title or order.payload.name
    return {
        "job": job.id,
        "jid": order.jid,
        "state": display.state_text(job),
        "stage": job.stage,
        "passed": passed(job.state, job.stage),
        "name": name,
        "message": display.state_message(job),
    }


def _elements(service: Service, job: Job) -> Any:
    """Return all data of an object that staff see (``elements``)."""
    return elements(service.store, service.settings, service.folders, job)


def _report_path(batch: Batch, name: str, number: int | None) -> str:
    """Return the path of a report's file (``report.txt``) in the folder of the batch, by default of the last that was
    sent. Raises Refused when that report has not been sent."""
    if number is None:
        number = batch.reports
    if not 1 <= number <= batch.reports:
        last = f"its last report is number {batch.reports}" if batch.reports else "it has not reported yet"
        raise Refused(f"{batch.bid} is {batch.state}, and {last}; --now makes a report of the current state")
    return f"{report_folder(number)}/{name}"


def _report_as_of_now(service: Service, batch: Batch) -> report_forms.Report:
    """Build the next report as it would be now, without sending or storing it. Raises Refused for a batch whose payload
    has not been read yet."""
    data = dict(service.store.get_data(batch.job.id))
    if held_batches.BEGUN not in data:
        raise Refused(
            f"{batch.bid} is {batch.state}, and there is nothing to report yet; 'ingest status' shows why"
        )
    data.pop(reported_key(batch.reports + 1), None)  # the time of a report that is being made
    was_refused = batch.job.state is State.FAILED and batch.job.stage == READING
    reports = BatchReports(
        job_id=batch.job.id,
        folder=service.folders / job_folder(batch.job.id),
        data=data,
        config=service.settings,
        profile=profiles.load(service.settings, batch.order.profile),
        order=batch.order,
    )
    objects = all_jobs(service.look, Filter(parent_id=batch.job.id, superseded=False, states=lookup.KEPT))
    return reports.build(reports.object_ends(objects), fault=batch.job.message if was_refused else None)
