"""Requests for packages, and the tickets that show their state to those who made them.

A token is the number of the request's job and a secret that only the job's parameters and the caller have. So a token
leads to its job without another register beside the store, and cannot be guessed from another token.
"""

import hmac
import re
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AwareDatetime, Field

from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import FrozenModel
from spinney.containers.pack import Format
from spinney.errors import NoSuchJob
from spinney.jobs import LEASED, Job, State

if TYPE_CHECKING:
    from spinney.operations import Queries, Store

TYPE = "ingest.access"
TOKEN = re.compile(r"([1-9][0-9]{0,11})-([0-9a-f]{32})", re.ASCII)


class AccessOrder(FrozenModel):
    """A request, as it was accepted: the parameter of its job."""

    ark: str
    version: int
    created: AwareDatetime
    """When the version was created."""
    storage: str
    files: int
    size_bytes: int
    """The size of the files, from the inventory."""
    format: Format
    secret: Annotated[
        str, Field(pattern=r"^[0-9a-f]{32}$", repr=False, json_schema_extra={"writeOnly": True})
    ]
    """Redacted wherever parameters are shown: seeing the job does not reveal the token."""


class Status(StrEnum):
    """The status of a request for access, as its requester sees it."""

    QUEUED = "queued"
    HELD = "held"
    PACKING = "packing"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"


class Ticket(FrozenModel):
    """The state of a request, as shown to the person who made it."""

    token: str
    job: int
    status: Status
    ark: str
    version: int
    format: Format
    size_bytes: int
    """The size of the files; the package is slightly larger, or smaller when it is compressed."""
    anticipated: AwareDatetime | None = None
    """When it will be ready, by estimate; None: it is ready, or this is unknown (as when no node serves its queue)."""
    path: Path | None = None
    url: str | None = None
    expires: AwareDatetime | None = None
    message: str | None = None
    """Why it is held or failed."""


def token(job_id: int, order: AccessOrder) -> str:
    """Return the token of a request: the number of its job, and its secret."""
    return f"{job_id}-{order.secret}"


def job_of(text: str) -> int | None:
    """Return the number of the job in a token; None for text that has not the form of a token."""
    match = TOKEN.fullmatch(text)
    return None if match is None else int(match[1])


def find_job(store: "Store | Queries", job_id: int | None) -> Job | None:
    """Return a job; None where it does not exist (any more), or ``job_id`` is None."""
    try:
        return None if job_id is None else store.job(job_id)
    except NoSuchJob:
        return None


def fits(text: str, job: Job) -> bool:
    """Return whether the token belongs to this job. The comparison takes the same time for any secret."""
    if job.type != TYPE or job.state is State.DELETED:
        return False
    return hmac.compare_digest(text, token(job.id, order_of(job)))


def order_of(job: Job) -> AccessOrder:
    """Return the order of a request's job."""
    return AccessOrder.model_validate(job.params["order"])


def ticket(job: Job, settings: Settings, package: Package | None, anticipated: datetime | None) -> Ticket:
    """Return the ticket of a request. ``package``: the valid package; ``anticipated``: the estimate for a request that
    is queued or being packed."""
    order = order_of(job)
    token_ = token(job.id, order)
    status = status_of(job.state, is_valid=package is not None)
    ready = package if status is Status.READY else None
    return Ticket(
        token=token_,
        job=job.id,
        status=status,
        **order.model_dump(include={"ark", "version", "format", "size_bytes"}),
        anticipated=anticipated if status in (Status.QUEUED, Status.PACKING) else None,
        path=settings.packages / token_ / ready.file if ready else None,
        url=settings.public_address(f"access/{token_}/{ready.file}") if ready else None,
        expires=ready.expires if ready else None,
        message=job.message if status in (Status.HELD, Status.FAILED) else None,
    )


def status_of(state: State, *, is_valid: bool) -> Status:
    """Return the status of a request. ``is_valid``: its package is complete and has not expired."""
    if state is State.COMPLETED:
        return Status.READY if is_valid else Status.EXPIRED
    if state in (State.FAILED, State.CANCELLED, State.ORPHANED):
        return Status.FAILED
    if state is State.HELD:
        return Status.HELD
    return Status.PACKING if state in LEASED else Status.QUEUED
