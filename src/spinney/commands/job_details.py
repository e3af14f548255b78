"""Jobs as answers of commands show them: with their numbers, the verbs that are allowed, and where to look next."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields

from spinney.commands.status_numbers import KILLED, Status, status
from spinney.model.attempts.failures import Cause
from spinney.model.jobs import Filter, Job
from spinney.model.lineage import ancestors, superseded_by
from spinney.model.states import FAILED_OR_ORPHANED
from spinney.service.queries import Queries
from spinney.service.service import Service

JOBS = "/api/v1/jobs"
_OF_JOB = tuple(field.name for field in fields(Job))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails(Job):
    """A job, with the verbs that you may use on it."""

    status: Status
    """The job's state as a number of two older systems."""
    fingerprint: str | None
    """The fingerprint of the job's current failure: ``/failures`` has the group."""
    allowed: Sequence[str]
    """The verbs that the job's state and your rights allow now."""
    superseded_by: int | None
    """The job above it that was set to run a stage again without it, or without one above it, so that it no longer
    counts; null: it counts."""
    links: Mapping[str, str]
    """Addresses of more about the job."""


def job_details(service: Service, jobs: Sequence[Job]) -> list[JobDetails]:
    """Return the details of these jobs, in their order. ``Queries`` must have read them for the same caller:
    secrets are redacted there and not here. Causes of failures, and which jobs are superseded, are read for all
    together."""
    failed = [job.id for job in jobs if job.state in FAILED_OR_ORPHANED]
    causes = service.store.failures.of(failed) if failed else {}
    superseded = _superseded(service, jobs)
    queries = service.part(Queries)
    return [
        _details(queries, job, causes.get(job.id), superseded_by(job.lineage, superseded)) for job in jobs
    ]


def _superseded(service: Service, jobs: Sequence[Job]) -> Collection[int]:
    """Return which of these jobs and of their ancestors are superseded. Roots never are."""
    lines = {
        job_id for job in jobs if job.parent_id is not None for job_id in (*ancestors(job.lineage), job.id)
    }
    if not lines:
        return ()
    return set(service.store.job_lists.find(Filter(ids=tuple(lines), superseded=True), limit=len(lines)))


def plain_job(details: JobDetails) -> Job:
    """Return the plain job, without the fields that ``JobDetails`` adds: numbers, fingerprint, verbs, links and
    whether it is superseded."""
    return Job(**{name: getattr(details, name) for name in _OF_JOB})


def _details(queries: Queries, job: Job, cause: Cause | None, superseded_by: int | None) -> JobDetails:
    return JobDetails(
        **{name: getattr(job, name) for name in _OF_JOB},
        status=status(job.state, code=job.code, killed=cause is not None and cause.exception in KILLED),
        fingerprint=None if cause is None else cause.fingerprint,
        allowed=queries.allowed(job),
        superseded_by=superseded_by,
        links=_links(job),
    )


def _links(job: Job) -> dict[str, str]:
    """Return the addresses of more about a job, below the server's own."""
    address = f"{JOBS}/{job.id}"
    links = {"self": address} | {part: f"{address}/{part}" for part in ("tree", "attempts", "files")}
    if job.parent_id is not None:
        links |= {"parent": f"{JOBS}/{job.parent_id}", "root": f"{JOBS}/{job.root_id}"}
    return links
