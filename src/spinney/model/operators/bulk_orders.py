"""Orders: an operation on many jobs at once, with its arguments, and the states of jobs that it takes.

Two tables say which states a verb takes: those that it selects when nobody names any (``DEFAULT_STATES``),
and those that may be named (``ALLOWED_STATES``). The second is wider where a state needs a second thought.
Whether a single job can be changed is decided again in the transaction that changes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from spinney.model.states import ENDED, OPEN, UNSUCCESSFUL, State


class Verb(StrEnum):
    """An operation on many jobs at once."""

    RETRY = "retry"
    RERUN = "rerun"
    RUN_NOW = "run-now"
    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    DELETE = "delete"
    MOVE = "move"
    PRIORITY = "priority"


DEFAULT_STATES: Mapping[Verb, tuple[State, ...]] = MappingProxyType(
    {
        Verb.RETRY: (State.FAILED,),
        Verb.RERUN: (State.COMPLETED,),
        Verb.RUN_NOW: (State.SCHEDULED,),
        Verb.CANCEL: OPEN,
        Verb.HOLD: tuple(s for s in OPEN if s is not State.HELD),
        Verb.RELEASE: (State.HELD,),
        Verb.DELETE: ENDED,
        Verb.MOVE: OPEN,
        Verb.PRIORITY: OPEN,
    }
)
"""The states that a verb by filter selects when the filter names none. An orphaned job may have half done something
that must not be done twice, and a held job was held for a reason: such jobs are only opened again, or deleted, when
their state is named."""


ALLOWED_STATES: Mapping[Verb, frozenset[State]] = MappingProxyType(
    {
        **{
            verb: frozenset(OPEN) for verb in (Verb.CANCEL, Verb.HOLD, Verb.RELEASE, Verb.MOVE, Verb.PRIORITY)
        },
        Verb.RETRY: UNSUCCESSFUL,
        Verb.RERUN: frozenset(ENDED),
        Verb.RUN_NOW: frozenset({State.SCHEDULED}),
        Verb.DELETE: frozenset({*ENDED, State.HELD}),
    }
)
"""The states that a filter may name for a verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A verb with its arguments; arguments of other verbs must not be set."""

    verb: Verb
    reason: str | None = None
    stage: str | None = None
    """retry, rerun: the first stage to run again."""
    and_after: bool = False
    """rerun, retry: also all jobs of the tree that finished after its first failure."""
    tree: bool = False
    """For cancel: whether all jobs below are cancelled, too."""
    queue: str | None = None
    """move, retry, rerun: the queue into which the job goes."""
    priority: int | None = None
    """For priority: the new priority."""
    until_us: int | None = None
    """hold: when the hold ends by itself."""
