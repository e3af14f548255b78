"""What answers of the API are that are no plain nouns of the model: what a server says and a client reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.model.access import Rights
from spinney.model.bulk_runs import StageCount
from spinney.model.jobs import Job
from spinney.model.rights.operators import Verb
from spinney.model.status_numbers import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails(Job):
    """A job, with what may be done to it."""

    status: Status
    """Its state in the numbers of two older systems."""
    fingerprint: str | None
    """Of the failure that it stands failed with: ``/failures`` has the group."""
    allowed: Sequence[str]
    """The verbs that its state and your rights allow now."""
    links: Mapping[str, str]
    """Where more is told of it."""


# --- submitting ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedJob:
    """A job that was accepted."""

    id: int
    held: bool
    """A hold stopped it at the door; ``/explain`` tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedJobs:
    """Jobs that were accepted."""

    ids: Sequence[int]
    """In the order of the lines."""
    held: int
    """How many of them a hold stopped at the door."""


# --- verbs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbResult:
    """What a verb on one job did."""

    touched: Sequence[int]
    """Jobs that it changed, or whose running attempt it asked to end."""
    reopened: Sequence[int] = ()
    """Settled ancestors and jobs that need it, which wait again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What it would come to."""

    verb: Verb
    jobs: int
    more: bool
    """There are more than ``jobs``; counting ended there."""
    stages: Sequence[StageCount]
    """retry, rerun: what would run again."""
    sample: Sequence[int]
    """Some of the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """What it came to."""

    verb: Verb
    touched: int
    reopened: int
    """Settled ancestors and jobs that need them, which wait again."""
    skipped: int
    """Left as they are: they fit no more when it came to them."""
    refused: Mapping[int, str]
    """Jobs that it could not be done to, and why; of very many the first."""
    refused_jobs: int
    stopped: str | None
    """Why a canary ended it."""


# --- jobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file in a job's folder."""

    path: str
    kind: str
    """``file``, or ``other`` for a link or a special file, which nobody can read here."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a job."""

    items: Sequence[File]
    more: bool
    """There are more than can be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file that was put into a folder."""

    path: str
    size: int


# --- accounts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who asks."""

    name: str
    how: str
    rights: Rights


# --- external stages ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWorkerDetails:
    """An external worker that has joined."""

    external_worker: str
    """By which it is spoken for in all that follows."""
    name: str
    owner: str
    """Who let it join, and alone may speak for it."""
    slots: int
    lease_s: float
    heartbeat_every_s: float
    """How often it had better say that it lives."""
    lanes: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedJobs:
    """What an external worker handed back."""

    jobs: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLength:
    """How many there are now."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnedJobs:
    """The numbers of what was made, in its order."""

    ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """How much was kept."""

    kept_bytes: int
    """Less than was sent: there is more than is kept of one attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockResult:
    """Whether a lock was to be had."""

    taken: bool
