"""What the store answers to the question why a job is not running: a cause and facts, not words.

``cause_words`` makes a sentence and a command of it, after ``service`` has removed the facts about jobs that
a caller with limits may not see.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COUNTED = 10_000
"""How far jobs ahead of one, and children, are counted; a count of this much is shown as "10,000 or more"."""
NAMED = 3
"""How many of several nodes or jobs a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a job is not running, as of one snapshot."""

    job_id: int
    cause: str
    """The cause as a word for programs; ``features.explain.explanation.Explanation`` lists them."""
    start_us: int | None = None
    """When the job is expected to start, if that is known (microseconds since 1970 UTC)."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values that the wording of the cause needs, in JSON; each cause has its own (see ``cause_words``).
    Keys that name jobs: ``owner`` (of a lock), ``before`` (the job that goes first), ``first`` (open child),
    ``probe``, ``tree``, ``retry`` and ``explain`` (the job to retry or to ask about), ``needs``, ``ring``. A
    new key that names a job must be added to ``service``, or callers with limits see it."""
