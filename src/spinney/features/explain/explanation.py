"""The answer to the question why a job does not run yet, or when it will."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is not running now, as of one snapshot."""

    job_id: int
    cause: str
    """The cause as a word for programs: ``hold``, ``own hold``, ``vanished stage``, ``released``, ``queue
    limit``, ``share``, ``lock``, ``deadlock``, ``needs``, ``children``, ``serial``, ``scheduled``, ``retry``,
    ``lane asleep``, ``unknown type``, ``pinned``, ``barred``, ``not served``, ``no node``, ``no external
    worker``, ``home``, ``silent``, ``draining``, ``drained``, ``recovering``, ``slots``, ``priority``,
    ``turn``, ``next``, ``claimed``, ``running``, ``cancelling``, ``settled``, ``accepted``."""
    sentence: str
    """The cause in words, for people; it names only jobs that the caller may see."""
    start_us: int | None = None
    """When the job is expected to start, in microseconds since 1970 UTC; None: that cannot be known."""
    command: str | None = None
    """The command that would change this, as one line for a shell; None: there is none."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values from which the sentence was made, without those about jobs that the caller may not see."""
