"""Jobs as the API shows them: with their numbers, the verbs that are allowed, and where to look next."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from spinney.control import Control
from spinney.model.attempts.failures import Cause
from spinney.model.jobs import Job
from spinney.model.states import State
from spinney.model.status_numbers import KILLED, status
from spinney.schemas import JobDetails
from spinney.service.queries import Queries

JOBS = "/api/v1/jobs"
_OF_JOB = tuple(field.name for field in fields(Job))
_BADLY = (State.FAILED, State.ORPHANED)


def shown(control: Control, jobs: Sequence[Job]) -> list[JobDetails]:
    """These jobs, which ``control.queries`` has shown."""
    failed = [job.id for job in jobs if job.state in _BADLY]
    causes = control.store.failures.of(failed) if failed else {}
    look = control.queries
    return [_shown(look, job, causes) for job in jobs]


def one(control: Control, job_id: int) -> JobDetails:
    """The job of this number. Raises NoSuchJob."""
    return shown(control, [control.queries.job(job_id)])[0]


def _shown(look: Queries, job: Job, causes: Mapping[int, Cause]) -> JobDetails:
    cause = causes.get(job.id)
    return JobDetails(
        **{name: getattr(job, name) for name in _OF_JOB},
        status=status(job.state, code=job.code, killed=cause is not None and cause.exception in KILLED),
        fingerprint=None if cause is None else cause.fingerprint,
        allowed=look.allowed(job),
        links=_links(job),
    )


def _links(job: Job) -> dict[str, str]:
    here = f"{JOBS}/{job.id}"
    found = {"self": here, "tree": f"{here}/tree", "attempts": f"{here}/attempts", "files": f"{here}/files"}
    if job.parent_id is not None:
        found |= {"parent": f"{JOBS}/{job.parent_id}", "root": f"{JOBS}/{job.root_id}"}
    return found
