"""What a store takes and returns: submissions, jobs, attempts, leases, records.

Times are integers: microseconds since 1970 UTC (``…_us``). JSON is passed as text that was checked at its entry, so
that lists of small jobs need not be parsed on their way. Numbers must fit into 64 bits: commands, pages and options
check those that people send, and the store does not check them again.

On the way of a job: a ``Submission`` is what a caller wants, a ``Lease`` is what a claim gives to a node, a
``Record`` is what the node reports of the attempt, and a ``Job`` with its ``Attempt`` values is what readers
get. Leases and records are named tuples and check nothing, because nodes exchange thousands of them a
second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spinney.model.access import AccessScope
from spinney.model.fleet import DIED, LEASE_MAX_S, SILENT_US, Load, lasts, presumed_dead
from spinney.model.homes import FolderRoot
from spinney.model.lineage import WIDTH
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.states import State
from spinney.model.submission import DATA_MAX_BYTES as DATA_MAX_BYTES
from spinney.model.submission import JOB_ID_MAX as JOB_ID_MAX
from spinney.model.submission import PARAMS_MAX_BYTES as PARAMS_MAX_BYTES
from spinney.model.submission import Submission as Submission
from spinney.model.values.texts import whole_number


def job_number(text: str) -> int | None:
    """Return the number of a job that a text is; None for any other text, and for a number that no job can have."""
    return whole_number(text, digits=WIDTH)


class Lease(NamedTuple):
    """The right to run one attempt, as a claim returns it. It is a plain tuple because there are thousands a second."""

    job_id: int
    fence: int
    slot: int
    """The number of the slot of its node, from 0."""
    type: str
    stage: str
    attempt: int
    """1 for the first attempt of this stage."""
    params: str
    """The parameters: a JSON object as text."""
    parent_id: int | None
    root_id: int
    trace: str | None = None
    """The ``traceparent`` of the submission of its job."""


class Record(NamedTuple):
    """The outcome of one attempt, to be written into the store. It is a plain tuple because there are thousands a
    second."""

    job_id: int
    fence: int
    outcome: Outcome
    started_us: int
    """When user code started, in microseconds since 1970 UTC; 0 when it never did."""
    ended_us: int
    result: str | None = None
    """The stage's value as JSON text; None: it has none."""
    message: str | None = None
    """A message of one line for people."""
    error: str | None = None
    """The error as JSON text: type, message, traceback."""
    retryable: bool = True
    code: int | None = None
    """The handler's own positive status code."""
    delay_s: float | None = None
    """For defer: seconds until the stage is tried again."""
    lane: bool = False
    """For defer: whether all jobs of this stage sleep, after which one of them probes."""
    lock: str | None = None
    """For locked: the lock that another job has."""
    keep: bool = False
    """The node would run the next stage at once in the same slot, if the rules allow it."""
    remark: str | None = None
    """A remark on its output (``remarks``), when not all of it is in its files."""
    lock_request: tuple[int, int | None] | None = None
    """For locked: the amount of the lock, and the capacity that the attempt gave; None: an amount of 1, and no
    capacity."""


# --- claims ----------------------------------------------------------------------------------- A node sends
# a ClaimRequest with its free slots and those that may get jobs ahead, together with the records of what has
# ended; the FlushResult has its new leases. Both are one transaction of the store
# (``Kernel.flush_and_claim``).


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRequest:
    """How a node serves one lane (a type's stage)."""

    run_us: float | None = None
    """The measured run time of one attempt; None: unknown, or look-ahead is forbidden, so that no job of this
    lane is put behind another one."""
    locks: tuple[tuple[str, str], ...] = ()
    """(template, until) of each lock the stage must have."""
    warm: bool = True
    """It needs a slot with a warm worker."""


class SlotRequest(NamedTuple):
    """A slot that can take jobs: a free one, or one that may get jobs ahead."""

    slot: int
    jobs: int
    """How many leases it may get now."""
    budget_us: float
    """How much run time its leases may add up to; a free slot always gets one job if there is any."""
    free: bool
    warm: bool = True
    """It has a warm worker or may get one; otherwise only lanes that need none may use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A node's request for work: jobs for these slots, from the lanes that it can run."""

    node_id: int
    slots: Sequence[SlotRequest]
    lanes: Mapping[tuple[str, str], LaneRequest]
    """(type, stage) pairs that the node can run. Jobs of other lanes are not claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushResult:
    """The store's answer to records and a claim request: all of it is durable."""

    leases: list[Lease]
    refused: list[Record]
    """Records of attempts that had lost their lease. Nothing of them was written; the node logs each."""
    starved: bool = False
    """More jobs are claimable than the node had room for: claim again when a slot becomes free."""
    claim_again: bool = False
    """So many jobs had to leave the queues, most of them to wait for taken locks, that the claim may have ended before
    jobs that are claimable: claim again at once. Each such claim moves jobs, so this ends."""
    wake_us: int | None = None
    """The earliest time at which a sleeping lane or a scheduled job becomes due, if any; it is not set by an exchange
    without records that returns leases."""
    last_hold: int = 0
    """The id of the newest hold: when it changes, earlier leases may be covered by a hold now."""
    work_for_others: bool = False
    """Jobs that this caller made claimable, now or since its last exchange, remain for other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The leases and records that the store has of a node that does not know whether its last exchange was
    committed."""

    leased: Sequence[tuple[int, int]]
    """(job, fence) of every lease that the node owns."""
    recorded: frozenset[int]
    """The fences of those records in question whose attempts are in the history."""


# --- types returned by reads --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a stage, as the history has it."""

    job_id: int
    fence: int
    stage: str
    attempt: int
    """1 for the first attempt of this stage."""
    outcome: Outcome | None
    """The outcome; None while the attempt is running."""
    node: str
    started_us: int
    ended_us: int | None
    code: int | None = None
    """The handler's own positive status code."""
    message: str | None = None
    error: Mapping[str, Any] | None = None
    """``type``, ``message`` and ``traceback`` of the exception, if it ended with one."""
    result: Any = None
    """The stage's value; None: it has none."""
    superseded: bool = False
    """The stage is to run again, by an operator's order or because the tree below regrew: it no longer counts as
    passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job with its current state, as of one snapshot."""

    id: int
    type: str
    stage: str | None
    """The stage that it runs or will run next; None when it has completed."""
    state: State
    queue: str
    priority: int
    share: str
    """The party that the job counts against in a queue that is shared out."""
    collection: str | None
    submitter: str | None
    key: str | None
    """Its unique key: among root jobs, or among the children of its parent."""
    parent_id: int | None
    """The id of the parent; None: the job is a root."""
    root_id: int
    """The id of the root of the tree; for a root its own id."""
    lineage: str
    """The ids from the root down to it (``spinney.model.lineage``)."""
    params: Any
    """The decoded JSON object; ``Unreadable`` where the row is damaged."""
    created_us: int
    started_us: int | None
    """When its first attempt began, since it was last retried or rerun; None: none has. For a job that waits again
    because one below it was opened: when that was."""
    settled_us: int | None
    """When it ended, in whatever state; a job that was deleted while it was held ended then."""
    wake_us: int | None
    """When a scheduled job becomes due."""
    attempts: int
    """Attempts used up in the current stage."""
    interruptions: int
    """How many attempts of the current stage ended with their worker or their node; too many of them fail the job as
    poison."""
    warnings: int
    """How many of its stages passed with a warning."""
    code: int | None
    """The status code that the handler gave with its last outcome."""
    message: str | None
    """Why it is in its state, where there is a reason."""
    waits_for: str | None
    """``children``, ``needs``, ``lock:NAME`` or ``serial`` while waiting; ``hold`` while a hold covers it."""
    cancelling: bool
    """An open job for which a cancel request exists, also one for its whole tree."""
    node: str | None
    """The node that runs it now, or ran it last."""
    fence: int | None
    """The fence of its current lease."""
    progress: float | None
    """The fraction that its running attempt last reported, from 0.0 to 1.0."""
    progress_message: str | None
    failed_because: str | None = None
    """``children`` or ``needs`` when it failed because of those, and not by a stage of its own."""
    trace: str | None = None
    """The ``traceparent`` of the span in which it was submitted; its attempts are spans below that."""
    subject: str = ""
    """By what people tell it from other jobs of its type (``spinney.model.subjects``); the store leaves it empty, and
    ``spinney.service.queries`` adds it from the redacted parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter of jobs; every field that is not None must match."""

    states: tuple[State, ...] | None = None
    type: str | None = None
    queue: str | None = None
    stage: str | None = None
    collection: str | None = None
    submitter: str | None = None
    root_id: int | None = None
    parent_id: int | None = None
    roots_only: bool = False
    below: str | None = None
    """The lineage of a job: only jobs strictly below it."""
    ids: tuple[int, ...] | None = None
    node: str | None = None
    """The name of the node that runs it or ran it last."""
    created_before_us: int | None = None
    created_after_us: int | None = None
    message: str | None = None
    """Text that its message contains, ignoring case. Completed jobs are not searched, although one that completed with
    a warning has a message: it is that of its last attempt, which no index leads to among all completed jobs."""
    fingerprint: str | None = None
    """The fingerprint of its current failure (``spinney.model.attempts.failures``)."""
    settled_after_us: int | None = None
    settled_before_us: int | None = None
    superseded: bool | None = None
    """False: only jobs that still count for their parent."""
    tree_at_rest: bool = False
    """Only jobs that no open parent or root may still read."""
    has_own_hold: bool = False
    """Only jobs that are held, or will be because of a hold on the very job."""
    key: str | None = None
    """Only the job that has this key now: a root, or a child of ``parent_id`` where that is set."""
    within: AccessScope | None = None
    """Only jobs within these limits of a user; None: all."""
    beyond: AccessScope | None = None
    """Only jobs beyond these limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSummary:
    """A summary of a job's direct children."""

    states: Mapping[str, int]
    """How many are in each state."""
    warnings: int
    """The number of warnings of all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node as the store knows it."""

    id: int
    name: str
    boot_id: str
    """The kernel's boot id, which tells whether a predecessor on the same machine can still be alive."""
    host: str
    pid: int
    slots: int
    """The number in force for its name: the one that it was started with, unless an operator has set another."""
    state: str
    """``active``, ``draining`` or ``left``."""
    beat: int
    """The heartbeat counter; it only matters that it changes."""
    started_us: int
    seen_us: int
    """When it last joined, beat or changed its state, by its own clock."""
    version: str
    types: tuple[str, ...]
    stages: tuple[str, ...] | None = None
    """The stages of these types in its code, each as ``type/stage``; None: any. The code of another node may have
    others."""
    serves: QueueSelection = ALL
    """The queues that it serves, as it was started."""
    leases: int = 0
    """How many leases the node owns now."""
    drained: bool = False
    """Whether, by an operator's order, nodes of this name take no new jobs."""
    load: Load | None = None
    """The load of its host at its last heartbeat."""
    trouble: str | None = None
    """Why it is degraded, while it is."""
    home: int = 0
    """The home of its jobs' folders, in a store whose folders are local (``spinney.model.homes``)."""
    root: FolderRoot | None = None
    """Its folder root, which it reports when it joins."""
    lease_s: float | None = None
    """Its lease period, by which every observer judges it; None: a node of an older version, which does not store
    it."""
    is_external_worker: bool = False
    """It only runs external stages, and is no node (``spinney.model.external``)."""

    @property
    def dead_after_s(self) -> float:
        """Return how long its heartbeat counter must not have changed, by the clock of an observer, before it is
        dead."""
        return LEASE_MAX_S if self.lease_s is None else self.lease_s

    def knows(self, type_: str, stage: str | None) -> bool:
        """Return whether its code has this stage of this type."""
        return type_ in self.types and (self.stages is None or f"{type_}/{stage}" in self.stages)

    @property
    def claims(self) -> bool:
        """Return whether the node may get new jobs."""
        return self.state == "active" and not self.drained

    @property
    def status(self) -> str:
        """Return its state, combined with operators' orders: ``active``, ``drained``, ``draining`` or ``left``."""
        return "drained" if self.drained and self.state == "active" else self.state

    @property
    def is_degraded(self) -> bool:
        """Return whether the node has reported a trouble that is not over, so that it may take no jobs."""
        return lasts(self.trouble)

    def state_shown(self, now_us: int) -> str:
        """Return its state for people: its status, or ``silent``, ``dead`` or ``degraded``.

        A node that others have not declared dead yet, since no other is running, is shown as dead once its
        lease is over. An external worker has a time of its own. A node in trouble is degraded only while it
        would be active.
        """
        if self.state == "left":
            return "dead" if self.trouble == DIED else self.status
        silent_us = now_us - self.seen_us
        if self.is_external_worker:
            return "silent" if silent_us > self.dead_after_s * 1e6 else self.status
        if silent_us > SILENT_US:
            return "dead" if presumed_dead(self.seen_us, self.lease_s, now_us) else "silent"
        return "degraded" if self.is_degraded and self.status == "active" else self.status
