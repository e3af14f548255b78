"""What the store answers when it is asked why a job is not running: a cause and facts, not words.

``cause_words`` turns it into a sentence and a command, once callers with limits have lost the facts about jobs that
they may not see (``service``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COUNTED = 10_000
"""Jobs ahead of one, and children, are counted no further."""
NAMED = 3
"""How many of several nodes or jobs a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a job is not running, as of one snapshot."""

    job_id: int
    cause: str
    """A word for programs; ``features.explain.explanation.Explanation`` lists them."""
    start_us: int | None = None
    """When the job is expected to start, if that is known (microseconds since 1970 UTC)."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values that the wording of the cause needs, in JSON. Keys that name jobs: ``owner`` (of a lock), ``before``
    (the job that goes first), ``first`` (open child), ``probe``, ``tree``, ``retry`` and ``explain`` (the job to retry
    or to ask about), ``needs``, ``ring``."""
