"""What people ask about jobs. Commands of many features ask it, too, so it stands below them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from spinney.commands.command import Command
from spinney.commands.fields import PAGE, PAGE_MAX, After, BoundedNumber, JobNumber, Limit
from spinney.commands.job_details import JobDetails, job_details
from spinney.commands.job_filter import JobFilter
from spinney.model.errors import UsageError
from spinney.model.jobs import Attempt, Filter
from spinney.model.values.lists import All, Page
from spinney.service.filter_checks import require_known
from spinney.service.queries import Queries
from spinney.service.service import Service

TREE_MAX = 10_000
"""A server shows no more jobs of a tree."""


class _JobFilterCommand(JobFilter, Command, route="GET /jobs"):
    ids: Annotated[list[BoundedNumber] | None, Field(max_length=PAGE_MAX)] = Field(
        default=None, description="Only jobs with these numbers; may be repeated."
    )
    existing: bool = Field(
        default=False,
        description="Where no job matches, refuse a type, stage, queue, node or tree that does not exist.",
    )

    def filter(self, service: Service) -> Filter:
        return replace(super().filter(service), ids=None if self.ids is None else tuple(self.ids))

    def _require_existing(self, service: Service, filter_: Filter, jobs: int) -> None:
        """Raise what ``require_known`` raises if nothing fits and the caller wants to know why: a filter that
        names what does not exist."""
        if self.existing and not jobs:
            require_known(service.store, filter_, labels=False, within=service.rights.within)


class ListJobs(_JobFilterCommand, route="GET /jobs"):
    """List jobs.

    Returns the jobs that fit all of the filters, the newest first. An unknown filter is refused, so that a
    typing error lists nothing rather than everything."""

    newest: bool = Field(default=True, description="Whether the newest job comes first; false: the oldest.")
    after: After = 0
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[JobDetails]:
        filter_ = self.filter(service)
        jobs = service.part(Queries).jobs(filter_, after=self.after, limit=self.limit, newest=self.newest)
        self._require_existing(service, filter_, len(jobs))
        return Page(items=job_details(service, jobs), next=jobs[-1].id if len(jobs) == self.limit else None)


class CountJobs(_JobFilterCommand, route="GET /jobs/count"):
    """Count jobs by state.

    Returns how many of the jobs that fit the filters are in each state, exactly."""

    def run(self, service: Service) -> Mapping[str, int]:
        filter_ = self.filter(service)
        counts = service.part(Queries).counts(filter_)
        self._require_existing(service, filter_, sum(counts.values()))
        return counts


class ShowJob(Command, route="GET /jobs/{job}"):
    """Show a job.

    Returns where it stands, and which verbs you may use on it now. Parameters that the type declares secret
    are redacted."""

    job: JobNumber

    def run(self, service: Service) -> JobDetails:
        return job_details(service, [service.part(Queries).job(self.job)])[0]


class ShowTree(Command, route="GET /jobs/{job}/tree"):
    """Show a job and all below it.

    The jobs are in depth-first order, the job itself first. For larger trees, list `/jobs?root=` in pages."""

    job: JobNumber
    limit: Annotated[
        int,
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": TREE_MAX}),
        Field(ge=1, description="The maximum number of jobs in the answer."),
    ] = PAGE_MAX

    def run(self, service: Service) -> All[JobDetails]:
        if self.limit > TREE_MAX and not service.is_local:
            raise UsageError(f"limit: a server shows {TREE_MAX:,} jobs of a tree at most, not {self.limit:,}")
        return All(items=job_details(service, service.part(Queries).tree(self.job, limit=self.limit)))


class ListChildren(Command, route="GET /jobs/{job}/children"):
    """List the direct subjobs of a job.

    Only those that count: subjobs of a stage that has run again since are left out."""

    job: JobNumber
    after: After = 0
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[JobDetails]:
        jobs = service.part(Queries).children(self.job, after=self.after, limit=self.limit)
        # Those out of sight are left out, so that a page may be short though others follow.
        return Page(items=job_details(service, jobs), next=jobs[-1].id if jobs else None)


class CountChildren(Command, route="GET /jobs/{job}/children/count"):
    """Count the direct subjobs of a job by state.

    Only those that count: subjobs of a stage that has run again since are left out."""

    job: JobNumber

    def run(self, service: Service) -> Mapping[str, int]:
        queries = service.part(Queries)
        queries.job(self.job)
        return queries.counts(Filter(parent_id=self.job, superseded=False))


class ListAttempts(Command, route="GET /jobs/{job}/attempts"):
    """Show the history of a job's stages.

    Every attempt of every stage, oldest first; one that runs is last, without an outcome."""

    job: JobNumber

    def run(self, service: Service) -> All[Attempt]:
        return All(items=service.part(Queries).attempts(self.job))


class ShowData(Command, route="GET /jobs/{job}/data"):
    """Show what a job keeps.

    Returns the entries of `job.data` by name: what its stages, and those of its subjobs, have stored
    there."""

    job: JobNumber

    def run(self, service: Service) -> Mapping[str, Any]:
        return service.part(Queries).data(self.job)


class ShowResults(Command, route="GET /jobs/{job}/results"):
    """Show the results of a job's stages.

    Returns the values of the stages that have passed, by stage."""

    job: JobNumber

    def run(self, service: Service) -> Mapping[str, Any]:
        return service.part(Queries).results(self.job)
