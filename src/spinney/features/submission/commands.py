"""Submission of jobs, and the queries for batches: how far they are, and what is below them.

The routes of submission are by hand (``api``), since a job may come as a form with files, and many jobs come
in lines. The commands are the same nevertheless: command line, client and routes all end in
``SubmitJob.submit``.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SkipValidation

from spinney.commands import Command
from spinney.commands.fields import (
    PAGE_MAX,
    After,
    BoundedNumber,
    IdempotencyKey,
    JobNumber,
    JsonObject,
    Moment,
    Name,
    Priority,
    Text,
    Word,
    as_json,
)
from spinney.commands.job_details import JobDetails, job_details
from spinney.define.job.options import Options
from spinney.features.submission.batches import PAGE, Batch, Batches
from spinney.model.access import Role
from spinney.model.attempts.failure_groups import FailureGroups
from spinney.model.errors import UsageError
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.model.values.lists import Page
from spinney.model.values.times import from_us
from spinney.schemas import CreatedJob, CreatedJobs
from spinney.service.queries import Queries
from spinney.service.service import Service
from spinney.service.submitter import Submitter
from spinney.store.contract import SubmissionKey, SubmitResult

OBJECTS_MAX = 5_000
"""The most jobs of one page of a grid: each is short."""
_FACTS = tuple(field.name for field in fields(Batch) if field.name != "job")
"""The fields of a batch that its details share with it; the job is replaced by one with more details."""

States = Annotated[list[Annotated[State, Field(strict=False)]], Field(max_length=len(State))]


NEEDS_MAX = 10_000
"""How many jobs one job may need."""
LONG_LINES = 2_000
"""More jobs than this are not written within a moment: the request runs among the long ones, beside the
short."""


class SubmissionOptions(BaseModel):
    """How a job is submitted, beside its parameters. What is left out comes from the job type, or the defaults."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    queue: Name | None = Field(
        default=None, description="The queue, for all stages of the job.", examples=["nightly"]
    )
    priority: Priority | None = Field(
        default=None,
        description="The priority, 0 (first) to 99 (last); by default that of the type.",
        examples=[40],
    )
    share: Name | None = Field(
        default=None,
        description="The share that the job counts against when slots are distributed.",
        examples=["bird-lab"],
    )
    collection: Name | None = Field(
        default=None, description="The collection that the job belongs to.", examples=["birds"]
    )
    submitter: Name | None = Field(default=None, description="The submitter, if not you.", examples=["ann"])
    key: Name | None = Field(
        default=None, description="A key that at most one unsettled job has.", examples=["scan-17"]
    )
    forever: bool = Field(default=False, description="Whether the key stays taken until the job is deleted.")
    at: Moment | None = Field(
        default=None,
        description="The job does not start before this time.",
        examples=["2030-01-31T08:00:00Z"],
    )
    needs: Annotated[list[BoundedNumber], Field(max_length=NEEDS_MAX)] = Field(
        default=[], description="Jobs that must complete first."
    )

    def options(self) -> Options:
        """Return the options as the submission service takes them. Raises UsageError for a time that no calendar
        has."""
        values = {name: getattr(self, name) for name in _OPTIONS if hasattr(self, name)}
        if self.at is not None:
            try:
                values["at"] = from_us(self.at)
            except OverflowError:
                raise UsageError(
                    f"at must lie in the years 1970 to 8999, not {self.at} µs after the beginning of 1970"
                ) from None
        return Options(**values)


_OPTIONS = tuple(field.name for field in fields(Options))
"""The names of the options that the service knows; other fields of a command are not among them."""


class SubmitJob(
    SubmissionOptions, Command, route="POST /jobs", role=Role.SUBMITTER, to="submit jobs", status=201
):
    """Submit a job.

    It is durable when this returns. Files that it needs from the start are sent along by
    ``Client.submit_with_files``."""

    type: Name | None = Field(
        default=None, description="The job type; without it, the default type of the queue."
    )
    params: JsonObject = Field(
        default={}, description="The parameters, as the schema of the type describes them."
    )
    data: Annotated[dict[Text, Any], AfterValidator(as_json)] = Field(
        default={}, description="The initial `job.data`."
    )
    idempotency_key: IdempotencyKey | None = None

    def run(self, service: Service) -> CreatedJob:
        """Submit the job; whether it is held says whether a hold, or its upload, keeps it from starting."""
        result = self.submit(service)
        return CreatedJob(id=result.ids[0], held=result.held > 0)

    def submit(self, service: Service, *, internal: bool = False) -> SubmitResult:
        """Submit the job, as ``Submitter.submit`` does, and raise what that raises.

        ``internal``: allow a type that only its own application submits; for callers who have the
        store itself.
        """
        return service.part(Submitter).submit(
            self.type, [self.params], self.options(), once=self.once(service.by), internal=internal
        )

    def once(self, owner: str, *, files: str = "") -> SubmissionKey | None:
        """Return the value by which the store recognizes the request when it is sent again; None without an idempotency
        key.

        ``owner``: whose key it is, so that two users may choose the same one. ``files``: a digest of
        those beside the job.
        """
        return _once(self, owner, files.encode())


def _encoded(line: object) -> bytes:
    """Return a line of JSON as bytes. Raises UsageError for what is no text."""
    if isinstance(line, str):
        return line.encode("utf-8", "surrogatepass")  # which is refused as JSON, with the number of the line
    if not isinstance(line, bytes):
        raise UsageError(
            f"each of lines is one JSON object as text or bytes, not of type {type(line).__name__}; use json.dumps"
        )
    return line


def _encoded_lines(lines: object) -> Iterable[bytes]:
    """Return the lines as bytes; those of an iterator are read one by one. Raises UsageError for what has no lines."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise UsageError(
            f"lines is a list of JSON objects as text or bytes, not of type {type(lines).__name__}; "
            "split a text with splitlines()"
        )
    return [*map(_encoded, lines)] if isinstance(lines, Sequence) else map(_encoded, lines)


class SubmitJobs(
    SubmissionOptions,
    Command,
    route="POST /jobs/batch",
    role=Role.SUBMITTER,
    to="submit jobs",
    status=201,
    lines="lines",
):
    """Submit many jobs: all, or none.

    A line is a JSON object: `type`, `params` and options of a job, which win over those given for all. In `needs` of a
    line, -k means the job of the k-th line. With `type`, each line is the parameters of a job. Some thousand lines at a
    time are fastest."""

    lines: Annotated[SkipValidation[Iterable[str | bytes]], AfterValidator(_encoded_lines)]
    type: Name | None = Field(
        default=None,
        description="The job type, where each line has only the parameters of a job.",
        examples=["resize"],
    )
    idempotency_key: IdempotencyKey | None = None

    def is_long(self) -> bool:
        """Return whether the lines take long. Lines that are still being read are not counted, and
        nobody waits for those here."""
        return isinstance(self.lines, Sequence) and len(self.lines) > LONG_LINES

    def run(self, service: Service) -> CreatedJobs:
        result = self.submit(service)
        return CreatedJobs(ids=result.ids, held=result.held)

    def submit(self, service: Service, *, internal: bool = False) -> SubmitResult:
        """Submit the jobs of the lines in one transaction, as ``Submitter.submit_lines`` does, and
        raise what that raises."""
        lines, once = self.lines, None
        if self.idempotency_key is not None:
            lines = list(lines)  # the digest reads them, too, and an iterator can be read only once
            once = _once(self, service.by, b"\n".join(_encoded(line).rstrip(b"\r\n") for line in lines))
        return service.part(Submitter).submit_lines(
            lines, type_=self.type, options=self.options(), once=once, internal=internal
        )


def _once(command: SubmitJob | SubmitJobs, owner: str, body: bytes) -> SubmissionKey | None:
    """Return the key of a request, with a digest of everything in it that was set, and of its body.

    Fields that were left out do not count, so that a request stays the same when a later version has more
    of them.
    """
    if command.idempotency_key is None:
        return None
    digest = hashlib.sha256(
        command.model_dump_json(exclude={"lines", "idempotency_key"}, exclude_unset=True).encode()
    )
    digest.update(b"\0" + body)
    return SubmissionKey(owner=owner, key=command.idempotency_key, digest=digest.hexdigest())


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
    """A job below a batch, with the few fields that a cell of a grid shows."""

    id: int
    state: State
    type: str
    stage: str | None
    parent_id: int | None
    cancelling: bool
    progress: float | None
    message: str | None


_OF_SUMMARY = tuple(field.name for field in fields(JobSummary))
"""The fields of a job that its summary takes over."""


class ListBatches(Command, route="GET /batches"):
    """List batches.

    Jobs at the top that have others below them, the newest first, with how far they are. A page may be short, or
    empty, where few fit the filters: `next` says whether there is more."""

    state: States | None = Field(
        default=None, description="Only batches whose root job is in one of these states."
    )
    type: Word | None = Field(default=None, description="Only batches of this job type.")
    queue: Word | None = Field(default=None, description="Only batches in this queue.")
    collection: Word | None = Field(default=None, description="Only batches of this collection.")
    submitter: Word | None = Field(default=None, description="Only batches of this submitter.")
    message: Text | None = Field(default=None, description="Only batches whose message contains this text.")
    after: After = 0
    limit: Annotated[int, Field(ge=1, le=100, description="The maximum number of items in the answer.")] = (
        PAGE
    )

    def run(self, service: Service) -> Page[BatchProgress]:
        job_filter = Filter(
            states=_states(self.state),
            type=self.type,
            queue=self.queue,
            collection=self.collection,
            submitter=self.submitter,
            message=self.message,
        )
        page = service.part(Batches).page(job_filter, before=self.after, limit=self.limit)
        tops = job_details(service, [batch.job for batch in page.items])
        items = [
            BatchProgress(job=top, **{name: getattr(batch, name) for name in _FACTS})
            for batch, top in zip(page.items, tops, strict=True)
        ]
        return Page(items=items, next=page.next)


class ShowBatch(Command, route="GET /batches/{job}"):
    """Show a batch.

    How far it is, and its failures by cause."""

    job: JobNumber

    def run(self, service: Service) -> BatchDetails:
        batches = service.part(Batches)
        batch = batches.find(self.job)
        (top,) = job_details(service, [batch.job])
        facts = {name: getattr(batch, name) for name in _FACTS}
        return BatchDetails(job=top, failures=batches.failures(self.job), **facts)


class ListObjects(Command, route="GET /batches/{job}/objects"):
    """List what is below a batch.

    In short, oldest first: for a grid of states."""

    job: JobNumber
    state: States | None = Field(default=None, description="Only jobs in these states.")
    direct: bool = Field(default=True, description="Only direct subjobs; false: all jobs below.")
    after: After = 0
    limit: Annotated[
        int, Field(ge=1, le=OBJECTS_MAX, description="The maximum number of items in the answer.")
    ] = PAGE_MAX

    def run(self, service: Service) -> Page[JobSummary]:
        # Only for its check: raises NoSuchJob for a job that the caller may not see, and NoSuch for one that has a
        # parent.
        service.part(Batches).find(self.job)
        job_filter = Filter(
            states=_states(self.state),
            parent_id=self.job if self.direct else None,
            root_id=None if self.direct else self.job,
        )
        jobs = service.part(Queries).jobs(job_filter, after=self.after, limit=self.limit)
        items: Sequence[JobSummary] = [
            JobSummary(**{name: getattr(job, name) for name in _OF_SUMMARY})
            for job in jobs
            # The filter by ``root_id`` also returns the batch's own job. It counts for the length of the page,
            # from which ``next`` follows.
            if job.id != self.job
        ]
        return Page(items=items, next=jobs[-1].id if len(jobs) == self.limit else None)


def _states(states: list[State] | None) -> tuple[State, ...] | None:
    """Return the states of a filter, each once; None: all."""
    return None if states is None else tuple(dict.fromkeys(states))
