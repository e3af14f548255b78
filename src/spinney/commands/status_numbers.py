"""The status numbers of two older systems: they are shown beside the states, for programs that know them.

A job that failed because it was killed (its time limit, an operator, the death of its node, poison) has a number of its
own in one of them, and none in the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spinney.model.attempts.failures import POISON
from spinney.model.outcomes import Outcome
from spinney.model.states import SETTLED, State

KILLED = frozenset({Outcome.TIMEOUT, Outcome.DIED, Outcome.LOST, POISON})
"""The values of ``exception`` in failures of killed attempts (``spinney.model.attempts.failures``)."""
_DISBATCH: Mapping[State, int] = MappingProxyType(
    {
        State.PENDING: -2,
        State.SCHEDULED: -2,
        State.WAITING: -2,
        State.HELD: -4,
        State.CLAIMED: -1,
        State.RUNNING: 0,
        State.COMPLETED: 1,
        State.FAILED: 2,
        State.CANCELLED: -5,
        State.ORPHANED: -6,
        State.DELETED: -5,
    }
)
_KILLED = -3


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A job's state as the two numbers that Disbatch and Motus use for it."""

    disbatch: int
    """-6 to 2, or the handler's own positive code."""
    motus: int
    """``done``: 0 open, 1 completed, -1 not completed."""


def status(state: State, *, code: int | None = None, killed: bool = False) -> Status:
    """Return the numbers of a state. ``code``: the handler's own, which is used when it is positive; ``killed``: the
    job failed because it was killed."""
    motus = 1 if state is State.COMPLETED else -1 if state in SETTLED else 0
    if state is State.FAILED and killed:
        return Status(disbatch=_KILLED, motus=motus)
    if state in (State.COMPLETED, State.FAILED) and code is not None and code > 0:
        return Status(disbatch=code, motus=motus)
    return Status(disbatch=_DISBATCH[state], motus=motus)
