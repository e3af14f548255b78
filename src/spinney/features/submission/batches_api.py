"""Batches: what is below a job at the top, as one thing that comes on."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from spinney.commands.fields import PAGE_MAX, Word
from spinney.commands.job_details import job_details
from spinney.control import Control
from spinney.features.submission.batches import PAGE, Batch, Batches
from spinney.model.jobs import Filter, Job
from spinney.model.states import State
from spinney.model.values.lists import Page
from spinney.schemas import BatchDetails, BatchProgress, JobSummary
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import After, JobId, Text
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("batches")
OBJECTS_MAX = 5_000


class BatchListRequest(BaseModel):
    """Which batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Annotated[list[State] | None, Field(max_length=len(State))] = Field(
        default=None, description="Of the job at the top."
    )
    type: Word | None = None
    queue: Word | None = None
    collection: Word | None = None
    submitter: Word | None = None
    message: Text | None = Field(default=None, description="Whose message holds this text.")
    after: int = Field(default=0, ge=0, le=2**62, description="`next` of the page before.")
    limit: int = Field(default=PAGE, ge=1, le=100, description="How many at most.")

    def filter(self) -> Filter:
        states = None if self.state is None else tuple(dict.fromkeys(self.state))
        return Filter(
            states=states,
            type=self.type,
            queue=self.queue,
            collection=self.collection,
            submitter=self.submitter,
            message=self.message,
        )


@router.get("/batches", summary="List batches")
async def list_batches(
    asked: Annotated[BatchListRequest, Query()], context: Authenticated
) -> Page[BatchProgress]:
    """Jobs at the top that have others below them, the newest first, with how far they are. A page may be short, or
    empty, where few fit the filters: `next` says whether there is more."""

    def call(control: Control) -> Page[BatchProgress]:
        found, next_ = control.part(Batches).page(asked.filter(), before=asked.after, limit=asked.limit)
        return Page(items=_shown(control, found), next=next_)

    return await context.run(call)


@router.get("/batches/{job}", summary="Show a batch", responses=documented(404))
async def show_batch(job: JobId, context: Authenticated) -> BatchDetails:
    """How far it is, and its failures by cause."""

    def call(control: Control) -> BatchDetails:
        part = control.part(Batches)
        found = part.one(job)
        (top,) = job_details(control, [found.job])
        return BatchDetails(**_facts(found), job=top, failures=part.failures(job))

    return await context.run(call)


@router.get("/batches/{job}/objects", summary="List what is below a batch", responses=documented(404))
async def list_objects(
    job: JobId,
    context: Authenticated,
    state: Annotated[
        list[State] | None, Query(max_length=len(State), description="Only of these states.")
    ] = None,
    direct: Annotated[bool, Query(description="Only direct subjobs; false: all below.")] = True,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=OBJECTS_MAX, description="How many at most.")] = PAGE_MAX,
) -> Page[JobSummary]:
    """In short, oldest first: for a grid of states."""

    def call(control: Control) -> Page[JobSummary]:
        control.part(Batches).one(job)
        states = None if state is None else tuple(dict.fromkeys(state))
        where = {"parent_id": job} if direct else {"root_id": job}
        found = control.queries.jobs(Filter(states=states, **where), after=after, limit=limit)  # type: ignore[arg-type]
        next_ = found[-1].id if len(found) >= limit else None
        return Page(items=[_object(below) for below in found if below.id != job], next=next_)

    return await context.run(call)


def _shown(control: Control, found: Sequence[Batch]) -> list[BatchProgress]:
    tops = job_details(control, [batch.job for batch in found])
    return [BatchProgress(**_facts(batch), job=top) for batch, top in zip(found, tops, strict=True)]


def _facts(batch: Batch) -> dict[str, Any]:
    names = ("counts", "total", "settled", "progress", "age_s", "per_s", "eta_us")
    return {name: getattr(batch, name) for name in names}


def _object(job: Job) -> JobSummary:
    return JobSummary(
        id=job.id,
        state=job.state,
        type=job.type,
        stage=job.stage,
        parent_id=job.parent_id,
        cancelling=job.cancelling,
        progress=job.progress,
        message=job.message,
    )
