"""The numbers by which two older systems tell states: shown beside the names, for programs that know those.

A job that failed because it was killed (its time was over, an operator or its node ended it, it was poison) has a
number of its own in the one, and none in the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spinney.model.attempts.failures import POISON
from spinney.model.outcomes import Outcome
from spinney.model.states import State

KILLED = frozenset({Outcome.TIMEOUT, Outcome.DIED, Outcome.LOST, POISON})
"""In place of an exception, of failures that were ended from outside (``spinney.model.attempts.failures``)."""
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
_DONE_BADLY = frozenset({State.FAILED, State.CANCELLED, State.ORPHANED, State.DELETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One state in two numbers."""

    disbatch: int
    """-6 to 2, or the handler's own positive code."""
    motus: int
    """``done``: 0 open, 1 well, -1 badly."""


def status(state: State, *, code: int | None = None, killed: bool = False) -> Status:
    """The numbers of a state. ``code``: the handler's own, which counts where it is positive; ``killed``: it failed
    because it was ended from outside."""
    motus = 1 if state is State.COMPLETED else -1 if state in _DONE_BADLY else 0
    if state is State.FAILED and killed:
        return Status(disbatch=_KILLED, motus=motus)
    if state in (State.COMPLETED, State.FAILED) and code is not None and code > 0:
        return Status(disbatch=code, motus=motus)
    return Status(disbatch=_DISBATCH[state], motus=motus)
