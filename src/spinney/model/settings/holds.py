"""Holds: an operator stops everything that a hold covers, with a reason.

From the commit of a hold on no node claims what it covers; what runs finishes its stage, and is held before
the next. Pending jobs are moved to the state held by a sweep, and back when the hold ends, so that lists and
counts show them. Several holds may cover one job, which continues when the last of them has ended."""

from dataclasses import dataclass
from enum import StrEnum

from spinney.model.errors import NoSuch, Refused, UsageError
from spinney.model.values import names


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPreview:
    """What a new hold, or the release of some, would do."""

    jobs: int
    """How many jobs would become held; for a release: would continue."""
    later: int
    """How many other jobs the hold covers: those that run, or wait for something else. They would become held before
    their next start."""


SWEEP_REST_FACTOR = 8
"""After each step of a sweep, the sweeper pauses for so many times the duration of the step, so that most of the write
time is left to others."""


LATEST_US = 253_402_300_800_000_000
"""The end of the year 9999: no hold ends later, unless it is released."""


class Scope(StrEnum):
    """What a hold covers: all jobs, those that share a name (of a queue, a type …), a tree, or one job."""

    EVERYTHING = "everything"
    QUEUE = "queue"
    TYPE = "type"
    COLLECTION = "collection"
    SUBMITTER = "submitter"
    TREE = "tree"
    """A job and all below it."""
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold. No covered job starts; running ones finish their stage; submitted ones are held."""

    id: int
    scope: Scope
    name: str
    """The name of the queue, type, collection or submitter; a job's id for ``tree`` and ``job``; else empty."""
    reason: str
    by: str
    since_us: int
    until_us: int | None = None
    """When it ends by itself; None: when it is released."""
    automatic: bool = False
    """A circuit breaker placed it, not a person."""

    def __str__(self) -> str:
        return f"hold {self.id} on {scope_text(self.scope, self.name)} by {self.by}: {self.reason}"


class UnderHold(Refused):
    """A single job cannot be released, because a wider hold covers it; the message names that hold."""

    def __init__(self, job_id: int, hold: Hold) -> None:
        self.job_id, self.hold = job_id, hold
        if hold.name or hold.scope is Scope.EVERYTHING:
            what = f"release that for all that it covers (spinney release --hold {hold.id}), or move the job out of it"
        else:
            what = "ask an operator who may see what it covers to release it"
        super().__init__(f"job {job_id} is under {hold}; {what}")


def scope_text(scope: Scope, name: str) -> str:
    """Return what a hold of this scope and name covers: ``queue nightly``, or ``everything``; for a hold whose name the
    caller may not see, only the kind: ``a tree``."""
    if scope is Scope.EVERYTHING:
        return "everything"
    return f"{scope} {name}" if name else f"a {scope}"


def no_such_hold(hold_id: int) -> NoSuch:
    """Return the error about a hold that is not in force, which is also that about one that the caller may not see."""
    return NoSuch(f"there is no hold {hold_id} (any more); 'spinney holds' lists them all")


def require_valid_hold(reason: str | None, until_us: int | None, now_us: int) -> None:
    """Raise UsageError for an invalid hold: without a reason, or that ends before it begins."""
    names.label("reason", reason or "")
    if until_us is not None and until_us <= now_us:
        raise UsageError("the hold would end before it begins; give a time in the future")
    if until_us is not None and until_us > LATEST_US:
        raise UsageError(
            "the hold would end after the year 9999; without an end it lasts until it is released"
        )
