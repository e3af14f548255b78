"""What a request is, and what who asked may know of it.

The token is the number of the request's job and a secret that only the job's parameters and who asked have. So a token
leads to its job without a register beside the store, and cannot be guessed from another.
"""

import hmac
import re
import secrets
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, Field

from spinney.apps.ingest.access.archives import Format
from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import Noun
from spinney.jobs import LEASED, Job, State

TYPE = "ingest.access"
SECRET_BYTES = 16
TOKEN = re.compile(r"([1-9][0-9]{0,11})-([0-9a-f]{32})", re.ASCII)


class AccessOrder(Noun):
    """A request, as it was accepted."""

    ark: str
    version: int
    created: AwareDatetime
    """Of the version."""
    storage: str
    files: int
    size_bytes: int
    """As the inventory knows them."""
    format: Format
    secret: Annotated[
        str, Field(pattern=r"^[0-9a-f]{32}$", repr=False, json_schema_extra={"writeOnly": True})
    ]
    """Masked wherever parameters are shown: who sees the job has not the token for that."""


class Status(StrEnum):
    """How a request stands."""

    QUEUED = "queued"
    HELD = "held"
    PACKING = "packing"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"


class Ticket(Noun):
    """What who asked is told."""

    token: str
    job: int
    status: Status
    ark: str
    version: int
    format: Format
    size_bytes: int
    """Of the files; a package has some more, or when it is compressed less."""
    anticipated: AwareDatetime | None = None
    """When it will be there, by what is known now; None: it is, or nobody can tell (no node serves its queue)."""
    path: Path | None = None
    url: str | None = None
    expires: AwareDatetime | None = None
    message: str | None = None
    """Why it is held or failed."""


def new_secret() -> str:
    return secrets.token_hex(SECRET_BYTES)


def token(job_id: int, order: AccessOrder) -> str:
    return f"{job_id}-{order.secret}"


def job_of(text: str) -> int | None:
    """The number of the job that a token, or what looks like one, leads to."""
    read = TOKEN.fullmatch(text)
    return None if read is None else int(read[1])


def fits(text: str, job: Job) -> bool:
    """Whether a token is that of this job."""
    if job.type != TYPE or job.state is State.DELETED:
        return False
    return hmac.compare_digest(text, token(job.id, order_of(job)))


def order_of(job: Job) -> AccessOrder:
    return AccessOrder.model_validate(job.params["order"])


def ticket(job: Job, settings: Settings, package: Package | None, anticipated: datetime | None) -> Ticket:
    """``package``: the one that stands; ``anticipated``: as foretold for one that is queued or being packed."""
    order = order_of(job)
    mine = token(job.id, order)
    status = status_of(job.state, stands=package is not None)
    is_ready = status is Status.READY and package is not None
    return Ticket(
        token=mine,
        job=job.id,
        status=status,
        ark=order.ark,
        version=order.version,
        format=order.format,
        size_bytes=order.size_bytes,
        anticipated=anticipated if status in (Status.QUEUED, Status.PACKING) else None,
        path=settings.packages / mine / package.file if is_ready and package else None,
        url=_url(settings, mine, package.file) if is_ready and package else None,
        expires=package.expires if is_ready and package else None,
        message=job.message if status in (Status.HELD, Status.FAILED) else None,
    )


def status_of(state: State, *, stands: bool) -> Status:
    """``stands``: there is a whole package that has not expired."""
    if state is State.COMPLETED:
        return Status.READY if stands else Status.EXPIRED
    if state in (State.FAILED, State.CANCELLED, State.ORPHANED):
        return Status.FAILED
    if state is State.HELD:
        return Status.HELD
    return Status.PACKING if state in LEASED else Status.QUEUED


def _url(settings: Settings, mine: str, file: str) -> str | None:
    return None if settings.public_url is None else f"{settings.public_url.rstrip('/')}/access/{mine}/{file}"
