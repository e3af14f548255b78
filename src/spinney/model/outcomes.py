"""How an attempt may end.

The first seven outcomes are set by the stage (its function returned, or raised a signal of ``model.attempts.signals``;
or a program's exit code). The others are set by the engine for an attempt that did not end by itself.

What a job does after each of them is decided by ``spinney.scheduling.retry_decision``; docs/concepts.md has
the table. The values are stored in the history, and must not be renamed."""

from enum import StrEnum


class Outcome(StrEnum):
    """How an attempt ended, by itself or by the engine."""

    OK = "ok"
    WARNING = "warning"
    """Passed, with a warning that is counted on the job."""
    NOT_APPLICABLE = "not_applicable"
    """Passed without a result."""
    ERROR = "error"
    DEFER = "defer"
    """To be run again later; no attempt is used up."""
    HOLD = "hold"
    """Held for an operator; no attempt is used up."""
    FINISH = "finish"
    """The job is done; later stages are not needed."""

    TIMEOUT = "timeout"
    """Killed at its time limit. It is treated as a retryable error."""
    DIED = "died"
    """Its worker process died (signal, out of memory). A retryable error, counted towards poison."""
    LOST = "lost"
    """Its node died: an interruption. It uses no attempt, and is counted towards poison."""
    RETURNED = "returned"
    """Handed back by a draining node, by a recall or before it started. It uses and counts nothing."""
    LOCKED = "locked"
    """``job.lock()`` found the lock taken: the stage starts again when it is free. It uses no attempt."""
    CANCELLED = "cancelled"
    """Ended because of a cancel request."""


PASSED = frozenset({Outcome.OK, Outcome.WARNING, Outcome.NOT_APPLICABLE, Outcome.FINISH})
"""Outcomes after which the stage is not run again unless an operator asks or it is marked ``again``."""

FAULTS = frozenset({Outcome.ERROR, Outcome.TIMEOUT, Outcome.DIED, Outcome.LOST})
"""Outcomes of attempts that failed, whether or not the stage is run again."""

WITHOUT_RUN = frozenset({Outcome.RETURNED, Outcome.DIED, Outcome.LOST})
"""Outcomes that an attempt may have whose code never began."""

# What a stage may set by itself; a program's exit codes are mapped to these, too.
STAGE_WORDS = frozenset({*PASSED, Outcome.ERROR, Outcome.DEFER, Outcome.HOLD})
