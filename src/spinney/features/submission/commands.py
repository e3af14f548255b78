"""What people ask of batches: how far they are, and what is below them. Jobs are submitted by routes (``api``), since
they come as forms with files, or in lines."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import PAGE_MAX, After, JobNumber, Text, Word
from spinney.commands.job_details import JobDetails, job_details
from spinney.features.submission.batches import PAGE, Batch, Batches
from spinney.model.jobs import Filter
from spinney.model.rights.operators import FailureGroups
from spinney.model.states import State
from spinney.model.values.lists import Page
from spinney.service.queries import Queries
from spinney.service.service import Service

OBJECTS_MAX = 5_000
_FACTS = tuple(field.name for field in fields(Batch) if field.name != "job")

States = Annotated[list[Annotated[State, Field(strict=False)]], Field(max_length=len(State))]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress(Batch):
    """A batch, and how far it is."""

    job: JobDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDetails(BatchProgress):
    """One batch, with what failed in it."""

    failures: FailureGroups


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job below a batch, in short."""

    id: int
    state: State
    type: str
    stage: str | None
    parent_id: int | None
    cancelling: bool
    progress: float | None
    message: str | None


_OF_SUMMARY = tuple(field.name for field in fields(JobSummary))


class ListBatches(Command, route="GET /batches"):
    """List batches.

    Jobs at the top that have others below them, the newest first, with how far they are. A page may be short, or
    empty, where few fit the filters: `next` says whether there is more."""

    state: States | None = Field(default=None, description="Only those whose job at the top stands so.")
    type: Word | None = Field(default=None, description="Only of this job type.")
    queue: Word | None = Field(default=None, description="Only in this queue.")
    collection: Word | None = Field(default=None, description="Only of this collection.")
    submitter: Word | None = Field(default=None, description="Only of this submitter.")
    message: Text | None = Field(default=None, description="Only those whose message holds this text.")
    after: After = 0
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = PAGE

    def run(self, service: Service) -> Page[BatchProgress]:
        which = Filter(
            states=_states(self.state),
            type=self.type,
            queue=self.queue,
            collection=self.collection,
            submitter=self.submitter,
            message=self.message,
        )
        batches, next_ = service.part(Batches).page(which, before=self.after, limit=self.limit)
        tops = job_details(service, [batch.job for batch in batches])
        items = [
            BatchProgress(job=top, **{name: getattr(batch, name) for name in _FACTS})
            for batch, top in zip(batches, tops, strict=True)
        ]
        return Page(items=items, next=next_)


class ShowBatch(Command, route="GET /batches/{job}"):
    """Show a batch.

    How far it is, and its failures by cause."""

    job: JobNumber

    def run(self, service: Service) -> BatchDetails:
        batches = service.part(Batches)
        batch = batches.one(self.job)
        (top,) = job_details(service, [batch.job])
        facts = {name: getattr(batch, name) for name in _FACTS}
        return BatchDetails(job=top, failures=batches.failures(self.job), **facts)


class ListObjects(Command, route="GET /batches/{job}/objects"):
    """List what is below a batch.

    In short, oldest first: for a grid of states."""

    job: JobNumber
    state: States | None = Field(default=None, description="Only of these states.")
    direct: bool = Field(default=True, description="Only direct subjobs; false: all below.")
    after: After = 0
    limit: Annotated[int, Field(ge=1, le=OBJECTS_MAX, description="How many at most.")] = PAGE_MAX

    def run(self, service: Service) -> Page[JobSummary]:
        service.part(Batches).one(self.job)
        which = Filter(
            states=_states(self.state),
            parent_id=self.job if self.direct else None,
            root_id=None if self.direct else self.job,
        )
        jobs = service.part(Queries).jobs(which, after=self.after, limit=self.limit)
        items: Sequence[JobSummary] = [
            JobSummary(**{name: getattr(job, name) for name in _OF_SUMMARY})
            for job in jobs
            if job.id != self.job
        ]
        return Page(items=items, next=jobs[-1].id if len(jobs) == self.limit else None)


COMMANDS = (ListBatches, ShowBatch, ListObjects)


def _states(states: list[State] | None) -> tuple[State, ...] | None:
    return None if states is None else tuple(dict.fromkeys(states))
