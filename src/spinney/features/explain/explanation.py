"""The answer to the question why a job does not run yet, or when it will: the cause and facts that the store finds, and
what a caller is told.

``cause_words`` makes a sentence and a command of a cause, after ``service`` has removed the facts about jobs that a
caller with limits may not see.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COUNTED = 10_000
"""How far jobs ahead of one, and children, are counted; a count of this much is shown as "10,000 or more"."""
NAMED = 3
"""How many of several nodes or jobs a sentence names."""
JOBS = ("owner", "before", "first", "probe", "tree", "retry", "explain", "child", "need", "superseded_by")
"""The names of facts that are the id of a job. A new one must be added, or callers with limits see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a job is not running, as of one snapshot."""

    job_id: int
    cause: str
    """The cause as a word for programs; ``Explanation`` lists them."""
    start_us: int | None = None
    """When the job is expected to start, if that is known (microseconds since 1970 UTC)."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values that the wording of the cause needs, in JSON; each cause has its own (see ``cause_words``).
    Keys that name jobs: ``owner`` (of a lock), ``before`` (the job that goes first), ``first`` (open child),
    ``probe``, ``tree``, ``retry`` and ``explain`` (the job to retry or to ask about), ``child`` and ``need`` (the job
    because of which it failed), ``needs``, ``ring``. ``superseded_by``, with any cause: the job that was set to run
    again without this one or one above it, so that this one no longer counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is not running now, as of one snapshot."""

    job_id: int
    cause: str
    """The cause as a word for programs: ``hold``, ``own hold``, ``vanished stage``, ``released``, ``queue
    limit``, ``share``, ``lock``, ``deadlock``, ``needs``, ``children``, ``serial``, ``scheduled``, ``retry``,
    ``lane asleep``, ``unknown type``, ``unknown stage``, ``pinned``, ``barred``, ``not served``, ``no node``,
    ``no external worker``, ``home``, ``silent``, ``draining``, ``drained``, ``degraded``, ``recovering``, ``slots``,
    ``priority``, ``turn``, ``next``, ``claimed``, ``running``, ``cancelling``, ``settled``, ``accepted``."""
    sentence: str
    """The cause in words, for people; it names only jobs that the caller may see."""
    start_us: int | None = None
    """When the job is expected to start, in microseconds since 1970 UTC; None: that cannot be known."""
    command: str | None = None
    """The command that would change this, as one line for a shell; None: there is none."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values from which the sentence was made, without those about jobs that the caller may not see."""
