"""What an attempt may end with.

The first seven are the words of a stage (its function returned, or raised one of the classes in
``spinney.signals``; a program's exit code said so). The others are the engine's words about an
attempt that did not end by itself.
"""

from enum import StrEnum


class Outcome(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Passed, and counted on the job."""
    NOT_APPLICABLE = "not_applicable"
    """Passed without a result."""
    ERROR = "error"
    DEFER = "defer"
    """Again in a while; no attempt is used up."""
    HOLD = "hold"
    """Park for an operator; no attempt is used up."""
    FINISH = "finish"
    """The job is done; later stages are not needed."""

    TIMEOUT = "timeout"
    """Killed at its time limit. Policy treats it as a retryable error."""
    DIED = "died"
    """Its worker died under it (signal, out of memory). A retryable error, counted towards poison."""
    LOST = "lost"
    """Its node died under it: an interruption. Uses no attempt, counted towards poison."""
    RETURNED = "returned"
    """Handed back by a draining node, by a recall or before it started. Uses and counts nothing."""
    LOCKED = "locked"
    """``job.lock()`` met a taken lock: starts again once it is free. Uses no attempt."""
    CANCELLED = "cancelled"
    """Ended because of a cancel request."""


PASSED = frozenset({Outcome.OK, Outcome.WARNING, Outcome.NOT_APPLICABLE, Outcome.FINISH})
"""Outcomes after which the stage is not run again unless an operator asks or it is marked ``again``."""

STAGE_WORDS = frozenset({*PASSED, Outcome.ERROR, Outcome.DEFER, Outcome.HOLD})
