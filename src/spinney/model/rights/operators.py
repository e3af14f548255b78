"""What an operator's verbs take and give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from spinney.model.states import SETTLED, State
from spinney.model.types import QueueSpec
from spinney.model.values.limits import Limit


class Verb(StrEnum):
    """What can be done to many jobs at once."""

    RETRY = "retry"
    RERUN = "rerun"
    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    DELETE = "delete"
    MOVE = "move"
    PRIORITY = "priority"


_S = State
_OPEN = (_S.SCHEDULED, _S.PENDING, _S.HELD, _S.CLAIMED, _S.RUNNING, _S.WAITING)
DEFAULT_STATES: Mapping[Verb, tuple[State, ...]] = MappingProxyType(
    {
        Verb.RETRY: (_S.FAILED,),
        Verb.RERUN: (_S.COMPLETED,),
        Verb.CANCEL: _OPEN,
        Verb.HOLD: tuple(s for s in _OPEN if s is not _S.HELD),
        Verb.RELEASE: (_S.HELD,),
        Verb.DELETE: (_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.ORPHANED),
        Verb.MOVE: _OPEN,
        Verb.PRIORITY: _OPEN,
    }
)
"""The states that a verb by filter means when the filter names none. What was orphaned may have done half of
something that must not be done twice, and what is held was held by somebody: such jobs are only opened again,
or deleted, where they are named."""
ALLOWED_STATES: Mapping[Verb, frozenset[State]] = MappingProxyType(
    {
        **{
            verb: frozenset(_OPEN)
            for verb in (Verb.CANCEL, Verb.HOLD, Verb.RELEASE, Verb.MOVE, Verb.PRIORITY)
        },
        Verb.RETRY: frozenset({_S.FAILED, _S.ORPHANED, _S.CANCELLED}),
        Verb.RERUN: SETTLED - {_S.DELETED},
        Verb.DELETE: SETTLED - {_S.DELETED} | {_S.HELD},
    }
)
"""The states that a filter may name for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A verb with its particulars; what a verb does not know must be left alone."""

    verb: Verb
    reason: str | None = None
    stage: str | None = None
    """retry, rerun: from this stage on."""
    and_after: bool = False
    """rerun, retry: also everything of the tree that finished after its first failure."""
    tree: bool = False
    """cancel: with all below."""
    queue: str | None = None
    """move: where to; retry and rerun: into this queue."""
    priority: int | None = None
    """priority: which."""
    until_us: int | None = None
    """hold: ends by itself at this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkStep:
    """What one bounded transaction of a bulk verb did."""

    touched: Sequence[int]
    reopened: Sequence[int] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    """Jobs that it could not be done to, and why; the others are done."""
    skipped: Sequence[int] = ()
    """Jobs that fit no more: the verb was done to them already, or something else has happened to them."""
    instead: Sequence[int] = ()
    """retry: jobs that failed because of their children, which are to be retried in their place
    (``failed_children``)."""
    unfinished: Sequence[int] = ()
    """Not reached or not done with within the bounds of one transaction: ask again for these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPreview:
    """What laying a wide hold, or releasing some, would come to."""

    jobs: int
    """Jobs that would stand held; of a release: that would go on."""
    later: int
    """Others that a hold covers: those that run, or wait for something else first. They would be held when they would
    start next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something, why, and in which call: for the audit."""

    by: str
    call: str
    """The same for all steps of one call (``control`` makes one for each)."""
    reason: str | None = None
    account: str | None = None
    """Whose rights it was done with; None: those of whoever opens the store directly. What is made to go on by itself
    (webhooks, schedules) asks for the rights of this account ever after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is not running now, as of one snapshot."""

    job_id: int
    cause: str
    """A word for programs: ``hold``, ``own hold``, ``vanished stage``, ``released``, ``queue limit``, ``share``,
    ``lock``, ``needs``, ``children``, ``serial``, ``scheduled``, ``retry``, ``lane asleep``, ``unknown type``,
    ``pinned``, ``barred``, ``not served``, ``no node``, ``silent``, ``draining``, ``drained``, ``recovering``,
    ``slots``, ``priority``, ``turn``, ``next``, ``claimed``, ``running``, ``cancelling``, ``settled``,
    ``accepted``."""
    sentence: str
    start_us: int | None = None
    """When it is expected to start, if that can be known."""
    command: str | None = None
    """The command that would change it."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A group of jobs that stand failed with the same cause."""

    fingerprint: str
    type: str
    stage: str
    exception: str
    """Qualified name of the exception, with the code that the handler gave; else the outcome's word, or ``poison``."""
    message: str
    """Of the first, without its numbers and paths."""
    first_us: int
    last_us: int
    jobs: int
    """How many stand failed with it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroups:
    """All jobs that stand failed or orphaned, as of one snapshot."""

    jobs: int
    """How many failed by an attempt of their own."""
    causes: int
    consequences: int
    """How many others: they failed because of their subjobs or of jobs they need (or before causes were kept)."""
    groups: Sequence[Failure]
    """The largest first; perhaps not all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockInfo:
    """A lock that is held or waited for."""

    name: str
    owner_id: int | None
    """The job that has it (one line for each where the capacity is more than 1); None: nobody."""
    until: str
    """``attempt``, ``job`` or ``reserved`` (kept for a job that was woken for it); empty: nobody has it."""
    node: str | None
    since_us: int | None
    waiting: int
    """How many jobs wait for it."""
    amount: int = 1
    """How much of it this owner has; 0 also where nobody has it."""
    used: int = 1
    """How much all have of it."""
    capacity: int = 1
    """In force for who says nothing of it himself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInfo:
    """How much there is of a lock, or of each of a family."""

    name: str
    """The lock, or the beginning of several with a ``*`` behind it."""
    capacity: int
    """In force: what an operator set, else what is declared."""
    declared: int | None
    """By an application; None: nothing."""
    by: str | None
    """The operator who set it; None: it is as declared."""
    at_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """How long settled jobs of a type and state are kept."""

    type: str
    """``*``: all types."""
    state: str
    keep_s: float | None
    """Seconds after settling; None: for ever."""
    by: str
    """The operator who set it; empty: the type declares it."""
    in_force: bool = True
    """False: an operator has set something else for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """What an operator wants otherwise with a queue. What is not named stays; in this order:"""

    declared: tuple[str, ...] = ()
    """These fields (``limit``, ``type``, ``pinned``, ``barred``) go back to what is declared."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """These fields become so: a limit of None is no limit, which is not the same as the declared one."""
    unpin: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    """Nodes that alone may serve it, beside those that are pinned already."""
    unbar: tuple[str, ...] = ()
    bar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """How a queue is set and who serves it, as of one snapshot."""

    queue: str
    in_force: QueueSpec
    declared: QueueSpec | None
    """None: no application declares it."""
    settings: Mapping[str, Any]
    """What operators set, by field: it is in force instead of what is declared."""
    by: str | None
    """Who set something last, if anything is set."""
    at_us: int | None
    pending: int
    running: int
    """Occupied slots."""
    active: int
    """How many nodes take something new, whether they may serve it or not."""
    nodes: tuple[str, ...]
    """Those of them that may serve it."""
    types: tuple[str, ...]
    """Its default type, and those of its jobs that are pending or have a slot."""
    unknown: tuple[str, ...]
    """Those of these types that no such node knows: they are left alone."""
    unserved: tuple[str, ...]
    """Those that such nodes know, but none that may serve the queue."""
    limit: int | None = None
    """Slots that it may occupy now: what the limit in force comes to where that is a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that must not be."""

    rule: str
    """A word for programs: ``lease-without-job``, …"""
    subject: str
    """``job 17``, ``folder 00/00/00/000000000017``, ``lock x``."""
    sentence: str
    repair: str | None = None
    """What ``--repair`` would do; None: nothing can be done safely, and the sentence says what a person should do."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What it was found by, and looked at again before it is repaired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant that the doctor knows."""

    rule: str
    about: str
    """What must hold, in a sentence."""
    repairs: bool
    deep: bool = False
    """It takes long, and is only looked at when asked for."""


Percentiles = tuple[float, float, float]
"""Median, 90 % and 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStats:
    """How a stage does, over all queues. Times are in seconds."""

    type: str
    stage: str
    pending: int
    running: int
    """Occupied slots."""
    ended: int | None
    """Attempts that ended within the window; None (as below): somebody is limited to collections, and it cannot be
    told apart by these."""
    failures: int | None
    """Those of them that ended with an error, a time limit, or the death of their worker or node."""
    rate: float | None
    """Attempts a second that ended within the window."""
    sampled: int
    """Attempts of which the times below were taken: those of jobs next to what is at work, not of all jobs."""
    wait_s: Percentiles | None
    """From a job's submission (or its time, or the end of the stage before) to its start; None: not known."""
    run_s: Percentiles | None
    """From the start of an attempt to its end, whatever it ended with; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """How a queue stands."""

    queue: str
    limit: int | None
    """Slots that it may occupy now."""
    pending: int
    running: int
    """Occupied slots."""
    scheduled: int
    waiting: int
    held: int
    failed: int
    rate: float | None
    """Attempts a second that ended within the window; None: cannot be told apart by collection."""
    said: Limit | None = None
    """The limit as it is set: a number, or a part such as ``50%``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStats:
    """Slots in use by one share of a queue."""

    queue: str
    share: str | None
    """Its name, or the number of the job that it is called after; None: the queue does not share."""
    running: int
    """Occupied slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStats:
    """How a node is used."""

    node: str
    state: str
    slots: int
    running: int
    """Occupied slots."""
    leases: int
    """Jobs that it has been given, those ahead of their time among them."""
    seen_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """One snapshot for ``stats`` and ``top``."""

    at_us: int
    window_s: float
    """What was looked back at for rates: at least what was asked for, by whole slices of ten seconds."""
    rate: float | None
    """Attempts a second that ended within the window, over all queues; None: cannot be told apart by collection."""
    states: Mapping[str, int]
    """How many jobs stand in each state, exactly."""
    queues: Sequence[QueueStats]
    stages: Sequence[StageStats]
    shares: Sequence[ShareStats]
    """Most slots first."""
    nodes: Sequence[NodeStats]
