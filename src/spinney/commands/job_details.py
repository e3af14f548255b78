"""Jobs as answers of commands show them: with their numbers, the verbs that are allowed, and where to look next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from spinney.commands.status_numbers import KILLED, Status, status
from spinney.model.jobs import Job
from spinney.model.states import State
from spinney.service.queries import Queries
from spinney.service.service import Service

if TYPE_CHECKING:
    from spinney.model.attempts.failures import Cause

JOBS = "/api/v1/jobs"
_OF_JOB = tuple(field.name for field in fields(Job))
_BADLY = (State.FAILED, State.ORPHANED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails(Job):
    """A job, with the verbs that you may use on it."""

    status: Status
    """The job's state as a number of two older systems."""
    fingerprint: str | None
    """The fingerprint of the job's current failure: ``/failures`` has the group."""
    allowed: Sequence[str]
    """The verbs that the job's state and your rights allow now."""
    links: Mapping[str, str]
    """Addresses of more about the job."""


def job_details(service: Service, jobs: Sequence[Job]) -> list[JobDetails]:
    """Return the details of these jobs, in their order. ``Queries`` must have read them for the same caller:
    secrets are redacted there and not here. Causes of failures are read for all together."""
    failed = [job.id for job in jobs if job.state in _BADLY]
    causes = service.store.failures.of(failed) if failed else {}
    queries = service.part(Queries)
    return [_details(queries, job, causes.get(job.id)) for job in jobs]


def plain_job(details: JobDetails) -> Job:
    """Return the plain job, without the fields that ``JobDetails`` adds: numbers, fingerprint, verbs and links."""
    return Job(**{name: getattr(details, name) for name in _OF_JOB})


def _details(queries: Queries, job: Job, cause: "Cause | None") -> JobDetails:
    return JobDetails(
        **{name: getattr(job, name) for name in _OF_JOB},
        status=status(job.state, code=job.code, killed=cause is not None and cause.exception in KILLED),
        fingerprint=None if cause is None else cause.fingerprint,
        allowed=queries.allowed(job),
        links=_links(job),
    )


def _links(job: Job) -> dict[str, str]:
    """Return the addresses of more about a job, below the server's own."""
    address = f"{JOBS}/{job.id}"
    links = {"self": address} | {part: f"{address}/{part}" for part in ("tree", "attempts", "files")}
    if job.parent_id is not None:
        links |= {"parent": f"{JOBS}/{job.parent_id}", "root": f"{JOBS}/{job.root_id}"}
    return links
