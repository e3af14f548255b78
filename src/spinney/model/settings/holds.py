"""Holds: an operator's stop, with a reason, on everything that it covers."""

from dataclasses import dataclass
from enum import StrEnum

from spinney.model.errors import UsageError
from spinney.model.values import names

SWEEP_REST_FACTOR = 8
"""After each step of a sweep, whoever sweeps rests so many times as long as the step took: most of the writers'
time is left to others."""


LATEST_US = 253_402_300_800_000_000
"""The end of the year 9999: no hold ends later, unless it is released."""


class Scope(StrEnum):
    """What a hold lies on."""

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
    """One hold. Under it nothing new starts; what runs finishes its stage; what is submitted is held."""

    id: int
    scope: Scope
    name: str
    """Of the queue, type, collection or submitter; a job's number for ``tree`` and ``job``; else empty."""
    reason: str
    by: str
    since_us: int
    until_us: int | None = None
    """It ends by itself at this time; None: when it is released."""
    automatic: bool = False
    """Laid by a circuit breaker, not by a person."""

    def __str__(self) -> str:
        what = "everything" if self.scope is Scope.EVERYTHING else f"{self.scope} {self.name}"
        return f"hold {self.id} on {what} by {self.by}: {self.reason}"


def require_meant(reason: str | None, until_us: int | None, now_us: int) -> None:
    """Raise UsageError for a hold that cannot be meant: without a reason, or over before it begins."""
    names.label("reason", reason or "")
    if until_us is not None and until_us <= now_us:
        raise UsageError("the hold would end before it begins; give a time still to come")
    if until_us is not None and until_us > LATEST_US:
        raise UsageError(
            "the hold would end after the year 9999; without an end it lasts until it is released"
        )
