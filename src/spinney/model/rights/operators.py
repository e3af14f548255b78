"""Orders of operators, and the values that operators read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from spinney.model.states import SETTLED, State
from spinney.model.types import QueueSpec
from spinney.model.values.limits import Limit


class Verb(StrEnum):
    """An operation on many jobs at once."""

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
"""The states that a verb by filter selects when the filter names none. An orphaned job may have half done something
that must not be done twice, and a held job was held for a reason: such jobs are only opened again, or deleted, when
their state is named."""
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
    """cancel: with all jobs below."""
    queue: str | None = None
    """move, retry, rerun: the queue into which the job goes."""
    priority: int | None = None
    """priority: the new priority."""
    until_us: int | None = None
    """hold: when the hold ends by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkStep:
    """What one bounded transaction of a bulk verb did."""

    touched: Sequence[int]
    reopened: Sequence[int] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    """Jobs for which the verb was refused, and why; the others are done."""
    skipped: Sequence[int] = ()
    """Jobs that do not match any more: the verb was already applied to them, or their state has changed."""
    instead: Sequence[int] = ()
    """retry: jobs that failed because of their children; the children are to be retried instead
    (``failed_children``)."""
    unfinished: Sequence[int] = ()
    """Jobs that were not reached or not finished within one transaction: to be passed to the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPreview:
    """What a new hold, or the release of some, would do."""

    jobs: int
    """How many jobs would become held; for a release: would continue."""
    later: int
    """How many other jobs the hold covers: those that run, or wait for something else. They would become held before
    their next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something, why, and in which call, for the audit."""

    by: str
    call: str
    """An id that all steps of one call share (``control`` makes one for each call)."""
    reason: str | None = None
    account: str | None = None
    """The account whose rights apply; None: the caller has opened the store directly. Webhooks and schedules act later
    with the rights of the account that created them."""


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
    """When it is expected to start, if that is known."""
    command: str | None = None
    """The command that would change this."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A group of jobs that have failed with the same cause."""

    fingerprint: str
    type: str
    stage: str
    exception: str
    """The qualified name of the exception, with the handler's status code; else the outcome, or ``poison``."""
    message: str
    """The message of the first failure, without its numbers and paths."""
    first_us: int
    last_us: int
    jobs: int
    """How many are failed with it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroups:
    """All jobs that are failed or orphaned, as of one snapshot."""

    jobs: int
    """How many failed by an attempt of their own."""
    causes: int
    consequences: int
    """How many others failed because of their subjobs or of jobs that they need (or before causes were stored)."""
    groups: Sequence[Failure]
    """The groups, largest first, up to the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockInfo:
    """A lock that a job has or waits for."""

    name: str
    owner_id: int | None
    """The job that has it (one row for each job where the capacity is more than 1); None: no job."""
    until: str
    """``attempt``, ``job`` or ``reserved`` (for a job that was woken for it); empty: no job has it."""
    node: str | None
    since_us: int | None
    waiting: int
    """How many jobs wait for it."""
    amount: int = 1
    """The amount that this owner has; 0 also where no job has it."""
    used: int = 1
    """The amount that all owners have together."""
    capacity: int = 1
    """The capacity in force for stages that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInfo:
    """The capacity of a lock, or of each lock of a family."""

    name: str
    """The name of the lock, or the prefix of a family followed by ``*``."""
    capacity: int
    """The capacity in force: an operator's, else the declared one."""
    declared: int | None
    """The capacity that an application declares; None: none does."""
    by: str | None
    """The operator who set it; None: it is the declared one."""
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
    """False: an operator's rule overrides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """Changes of a queue's settings by an operator. Other settings stay. They are applied in this order."""

    declared: tuple[str, ...] = ()
    """Fields (``limit``, ``type``, ``pinned``, ``barred``) that go back to the declared values."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Fields and their new values; a limit of None is no limit, which is not the same as the declared one."""
    unpin: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    """Nodes to be added to those that are pinned already."""
    unbar: tuple[str, ...] = ()
    bar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue's settings and the nodes that serve it, as of one snapshot."""

    queue: str
    in_force: QueueSpec
    declared: QueueSpec | None
    """None: no application declares it."""
    settings: Mapping[str, Any]
    """The fields that operators have set; they take precedence over the declared ones."""
    by: str | None
    """Who changed the settings last, if any are set."""
    at_us: int | None
    pending: int
    running: int
    """Occupied slots."""
    active: int
    """How many nodes take new jobs, whether they may serve the queue or not."""
    nodes: tuple[str, ...]
    """The names of those of them that may serve it."""
    types: tuple[str, ...]
    """Its default type, and the types of its jobs that are pending or occupy a slot."""
    unknown: tuple[str, ...]
    """Those of these types that no such node knows; their jobs are not claimed."""
    unserved: tuple[str, ...]
    """Those of these types that such nodes know, but none that may serve the queue."""
    limit: int | None = None
    """How many slots it may occupy now; where the limit is a part, the number that it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of one of the store's invariants that the doctor has found, with the repair if there is a safe
    one."""

    rule: str
    """A word for programs: ``lease-without-job``, …"""
    subject: str
    """``job 17``, ``folder 00/00/00/000000000017``, ``lock x``."""
    sentence: str
    repair: str | None = None
    """What ``--repair`` would do; None: no repair is safe, and the sentence says what a person should do."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values by which it was detected, which are checked again before a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant that the doctor checks."""

    rule: str
    about: str
    """The invariant as a sentence."""
    repairs: bool
    deep: bool = False
    """It takes long, and is only checked on request."""


Percentiles = tuple[float, float, float]
"""Median, 90 % and 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStats:
    """Figures of a stage over all queues. Times are in seconds."""

    type: str
    stage: str
    pending: int
    running: int
    """Occupied slots."""
    ended: int | None
    """How many attempts ended within the window; None (as below): the caller is limited to some collections, and the
    figure is not kept by collection."""
    failures: int | None
    """How many of them ended with an error, at a time limit, or by the death of their worker or node."""
    rate: float | None
    """Attempts a second that ended within the window."""
    sampled: int
    """How many attempts the times below are measured on: those of recent jobs, not of all."""
    wait_s: Percentiles | None
    """From a job's submission (or its time, or the end of the stage before) to its start; None: not known."""
    run_s: Percentiles | None
    """From the start of an attempt to its end, whatever it ended with; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """Figures of a queue: how many of its jobs are in each open state or failed, as of one snapshot."""

    queue: str
    limit: int | None
    """How many slots it may occupy now."""
    pending: int
    running: int
    """Occupied slots."""
    scheduled: int
    waiting: int
    held: int
    failed: int
    rate: float | None
    """Attempts a second that ended within the window; None: the figure is not kept by collection."""
    limit_setting: Limit | None = None
    """The limit as it is set: a number, or a part such as ``50%``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStats:
    """Slots that one share of a queue occupies."""

    queue: str
    share: str | None
    """Its name, or the id of the job that it is named after; None: the queue does not use shares."""
    running: int
    """Occupied slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStats:
    """Figures of a node or of an external worker: its slots, how many are occupied, and when it was seen last."""

    node: str
    state: str
    slots: int
    running: int
    """Occupied slots."""
    leases: int
    """How many jobs it has claimed, including those ahead."""
    seen_us: int
    presumed_dead: bool
    """Whether it has been silent for longer than its lease, so that other nodes would have taken its jobs back."""
    is_external_worker: bool
    """Whether it only runs external stages, and is no node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """One snapshot for ``stats`` and ``top``."""

    at_us: int
    window_s: float
    """The window of the rates: at least the requested one, in whole slices of ten seconds."""
    rate: float | None
    """Attempts a second that ended within the window, over all queues; None: the figure is not kept by collection."""
    states: Mapping[str, int]
    """How many jobs are in each state, exactly."""
    queues: Sequence[QueueStats]
    stages: Sequence[StageStats]
    shares: Sequence[ShareStats]
    """The shares, those with the most slots first."""
    nodes: Sequence[NodeStats]
