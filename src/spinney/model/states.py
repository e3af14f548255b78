"""The states of a job and the only table of lawful transitions.

Every store checks each change of a state against the table, and pages and commands offer only verbs that it
allows; the test suite compares it with docs/concepts.md. ``claimed`` and ``running`` are no values of a
column: a job whose row says pending is claimed when it has a lease, and running when that lease is marked as
started."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from spinney.model.errors import UnlawfulTransition


class State(StrEnum):
    """The state of a job; docs/concepts.md says what each means."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    HELD = "held"
    CLAIMED = "claimed"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"
    DELETED = "deleted"


SETTLED = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.ORPHANED, State.DELETED})
"""States in which nothing more happens to a job unless an operator opens it again."""

OPEN = tuple(state for state in State if state not in SETTLED)
"""All other states, as a filter takes them."""

NOT_DELETED = tuple(state for state in State if state is not State.DELETED)
"""The states of jobs that are still there, as a filter takes them."""

ENDED = tuple(state for state in NOT_DELETED if state in SETTLED)
"""The settled states of jobs that are still there, as a filter takes them."""

UNSUCCESSFUL = frozenset({State.FAILED, State.CANCELLED, State.ORPHANED})
"""States in which a job has ended without being completed. ``retry`` opens such a job again."""

FAILED_OR_ORPHANED = (State.FAILED, State.ORPHANED)
"""States in which a job has ended without success and against everybody's will, as a filter takes them."""

LEASED = frozenset({State.CLAIMED, State.RUNNING})
"""States that are read from a lease, never written into the job's row."""

NEEDS_NODE = LEASED | {State.PENDING}
"""States in which a job needs a node that lives: one that takes it, or the one that has it."""

_S = State
# From a state (None: the job is new) to the states in which a job may be after one step.
TRANSITIONS: Mapping[State | None, frozenset[State]] = MappingProxyType(
    {
        None: frozenset({_S.SCHEDULED, _S.PENDING, _S.HELD, _S.WAITING, _S.FAILED}),
        _S.SCHEDULED: frozenset({_S.PENDING, _S.WAITING, _S.HELD, _S.CANCELLED}),
        _S.PENDING: frozenset({_S.CLAIMED, _S.WAITING, _S.HELD, _S.SCHEDULED, _S.CANCELLED}),
        _S.HELD: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING, _S.CANCELLED, _S.DELETED}),
        _S.CLAIMED: frozenset({_S.RUNNING, _S.PENDING, _S.FAILED, _S.CANCELLED, _S.ORPHANED}),
        _S.RUNNING: frozenset(set(_S) - {_S.CLAIMED, _S.DELETED}),
        _S.WAITING: frozenset({_S.PENDING, _S.SCHEDULED, _S.HELD, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
        _S.FAILED: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING, _S.HELD, _S.DELETED}),
        _S.ORPHANED: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING, _S.HELD, _S.DELETED}),
        _S.CANCELLED: frozenset({_S.PENDING, _S.SCHEDULED, _S.WAITING, _S.HELD, _S.DELETED}),
        _S.COMPLETED: frozenset({_S.PENDING, _S.WAITING, _S.HELD, _S.DELETED}),
        _S.DELETED: frozenset(),
    }
)


def lawful(before: State | None, after: State) -> bool:
    """Return whether a job may go from ``before`` (None: it is new) to ``after`` in one step. Whether another
    rule forbids it (open children, a hold) is not considered."""
    return after in TRANSITIONS[before]


def require(job_id: int, before: State | None, after: State) -> None:
    """Raise UnlawfulTransition, whose sentence names the job, unless the transition is in the table."""
    if after not in TRANSITIONS[before]:
        raise UnlawfulTransition(job_id, before, after)
