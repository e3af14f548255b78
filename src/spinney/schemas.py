"""Answers of the API that are not classes of the model: the server writes them and the client reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spinney.model.access import Rights
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.bulk_runs import StageCount

# --- submitting ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedJob:
    """The id of a job that was accepted, and whether a hold covers it."""

    id: int
    held: bool
    """Whether a hold keeps the job from its first stage; ``/explain`` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedJobs:
    """The ids of jobs that were accepted from one request, all or none of them."""

    ids: Sequence[int]
    """The ids, in the order of the lines."""
    held: int
    """How many of them a hold keeps from their first stage."""


# --- verbs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbResult:
    """What a verb on one job did."""

    touched: Sequence[int]
    """Jobs that the verb changed, or whose running attempt it asked to end."""
    reopened: Sequence[int] = ()
    """Settled ancestors, and dependants, which wait again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What a bulk operation would do."""

    verb: Verb
    jobs: int
    """To how many jobs the verb would be applied."""
    more: bool
    """Whether there are more than ``jobs``; counting ended there."""
    stages: Sequence[StageCount]
    """For retry and rerun: the stages that would run again."""
    sample: Sequence[int]
    """The numbers of some of the jobs."""
    matching: int
    """How many jobs match; of named jobs, how many are in a state that allows the verb."""
    refused: Mapping[int, str]
    """Jobs for which the verb would be refused, and why; if there are very many, the first of them."""
    refused_jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkProgress:
    """How far a verb on many jobs is after a step."""

    touched: int
    """How many jobs the verb has changed so far."""
    reopened: int
    """How many settled ancestors and dependants wait again so far."""
    skipped: int
    """How many jobs were left as they are so far, because they did not match any more."""
    refused: int
    """For how many jobs the verb was refused so far."""
    jobs: Sequence[int]
    """The jobs that this step changed."""
    waiting: Sequence[int]
    """The jobs that this step reopened."""
    more: bool = False
    """Whether the next step goes on with jobs of this one, such as a large tree."""
    settled_before: int | None = None
    """For a rerun by a filter: it only runs jobs again that settled before this time. The same request with this time
    in its filter goes on with the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryProgress:
    """How far the canary of a verb on many jobs is."""

    begun: int
    """How many jobs have been opened."""
    rested: int
    """How many of them have settled or are held."""
    bad: int
    """How many of those failed or are held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """What a bulk operation did: numbers of jobs by what became of each, and why some were refused."""

    verb: Verb
    touched: int
    """How many jobs the verb has changed."""
    reopened: int
    """How many settled ancestors and dependants wait again."""
    skipped: int
    """How many were left as they are because they did not match any more."""
    refused: Mapping[int, str]
    """Jobs for which it was refused, and why; if there are very many, the first of them."""
    refused_jobs: int
    stopped: str | None
    """Why a canary stopped the operation; null: none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJobs:
    """How many jobs a hold keeps."""

    jobs: int


# --- jobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file in a job's folder."""

    path: str
    kind: str
    """``file``; ``other`` for a link or a special file, which the API does not serve; ``folder`` for one that lies more
    than 200 levels deep or cannot be read, in place of what is in it."""
    size: int
    """The size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a job's folder by path, at most as many as can be listed."""

    items: Sequence[File]
    more: bool
    """Whether there are more files than are listed here."""
    next: None = None
    """Always null: the list has one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file that was put into a folder."""

    path: str
    size: int


# --- accounts -----------------------------------------------------------------------------------


class AuthMethod(StrEnum):
    """How a caller was authenticated: by a token, a session's cookie, the peer of a Unix socket, or a trusted proxy."""

    TOKEN = "token"  # noqa: S105 - no secret
    SESSION = "session"
    PEER = "peer"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The name, the sign-in method and the rights of the caller."""

    name: str
    how: AuthMethod
    rights: Rights


# --- external stages ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWorkerDetails:
    """An external worker that has joined."""

    external_worker: str
    """The worker's id in the addresses of all later requests."""
    name: str
    owner: str
    """The user who let it join, and who alone may act for it."""
    slots: int
    lease_s: float
    heartbeat_every_s: float
    """How often the worker should send a heartbeat, in seconds."""
    lanes: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedJobs:
    """The jobs that an external worker handed back."""

    jobs: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLength:
    """The length of a list in the data of a job, after an append."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnedJobs:
    """The ids of the created jobs, in the order of the request."""

    ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """How much output of an attempt is kept, once what was sent has been appended."""

    kept_bytes: int
    """The bytes kept. It is less than was sent when the limit for one attempt is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockResult:
    """Whether an attempt of an external worker has the lock that it asked for; nobody waits for it."""

    taken: bool
