"""What a store takes and gives: submissions, jobs, attempts, leases, records.

Times are integers: microseconds since 1970 UTC (``…_us``). JSON travels as text, checked where it
entered, so that a list of small jobs passes through without being parsed on its way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spinney.model import lineage
from spinney.model.access import AccessScope
from spinney.model.fleet import LEASE_MAX_S, Load
from spinney.model.homes import FolderRoot
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.states import State

JOB_ID_MAX = 10**lineage.WIDTH - 1
"""The largest number of a job: what a lineage has room for."""
PARAMS_MAX_BYTES = 2**20
"""The longest parameters of one job, as JSON text."""
DATA_MAX_BYTES = 2**16
"""The longest entry of ``job.data``, as JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One or many jobs that differ in nothing but their parameters (and keys).

    Submissions handed over in one call become visible together, or none does. What is None is
    taken from the parent, the type or the defaults.
    """

    type: str
    params: Sequence[str] = ("{}",)
    """A JSON object as text for every job."""
    queue: str | None = None
    priority: int | None = None
    share: str | None = None
    collection: str | None = None
    submitter: str | None = None
    keys: Sequence[str] | None = None
    """A unique key for every job, as many as ``params``."""
    forever: bool = False
    """Keys stay taken until their job is deleted, not only until it settles."""
    at_us: int | None = None
    """Not before this time."""
    needs: tuple[int, ...] = ()
    """Ids of jobs that must complete first; ``-k`` means the k-th job (from 1) of this call."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Rows of ``job.data`` to start with: name to JSON text."""


class Lease(NamedTuple):
    """The right to run one attempt, as a claim gives it. A plain tuple: thousands a second."""

    job_id: int
    fence: int
    slot: int
    type: str
    stage: str
    attempt: int
    """1 for the first attempt of this stage."""
    params: str
    parent_id: int | None
    root_id: int


class Record(NamedTuple):
    """What became of one attempt, on its way into the store. A plain tuple: thousands a second."""

    job_id: int
    fence: int
    outcome: Outcome
    started_us: int
    """0 when user code never started."""
    ended_us: int
    result: str | None = None
    """The stage's value as JSON text; None: it has none."""
    message: str | None = None
    """One line for people."""
    error: str | None = None
    """JSON text: type, message, traceback."""
    retryable: bool = True
    code: int | None = None
    """The handler's own positive status code."""
    delay_s: float | None = None
    """For defer: seconds until the stage is tried again."""
    lane: bool = False
    """For defer: puts all jobs of this stage to sleep, and lets one probe."""
    lock: str | None = None
    """For locked: the lock that was taken by somebody else."""
    keep: bool = False
    """The node would run the next stage at once in the same slot, if the rules allow it."""
    remark: str | None = None
    """What is to be said of its output (``remarks``), where not all of it is in its files."""
    wanted: tuple[int, int | None] | None = None
    """For locked: how much of the lock, and which capacity the attempt gave; None: 1, and none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRequest:
    """How a node would serve one lane (a type's stage)."""

    run_us: float | None = None
    """Measured run time of one attempt; None: unknown, or look-ahead is forbidden."""
    locks: tuple[tuple[str, str], ...] = ()
    """(template, until) of each lock the stage must have."""
    warm: bool = True
    """It needs a slot with a warm worker."""


class SlotRequest(NamedTuple):
    """A slot that can take work: a free one, or one that may be given work ahead."""

    slot: int
    jobs: int
    """How many leases it may be given now."""
    budget_us: float
    """Run time it may be given now; a free slot is always given one job if there is any."""
    free: bool
    warm: bool = True
    """It has a warm worker or may get one; else only lanes that need none may use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A node's request for work."""

    node_id: int
    slots: Sequence[SlotRequest]
    lanes: Mapping[tuple[str, str], LaneRequest]
    """(type, stage) pairs that the node can run. Other lanes are left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushResult:
    """The store's answer to records and a want: all of it is durable."""

    leases: list[Lease]
    refused: list[Record]
    """Records of attempts that had lost their lease. Nothing of them was written but a note."""
    starved: bool = False
    """Something claimable was left that found no room here: ask again when a slot comes free."""
    wake_us: int | None = None
    """The earliest time at which a sleeping lane or a scheduled job becomes due, if any; not said by an exchange
    without records that gives leases."""
    last_hold: int = 0
    """The number of the last hold that was laid: when it moves, leases given before may be covered by now."""
    left: bool = False
    """Something that this caller made claimable, now or since its last exchange, is left for other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What the store has of a node that does not know whether its last exchange was committed."""

    leased: Sequence[tuple[int, int]]
    """(job, fence) of every lease that the node owns."""
    recorded: frozenset[int]
    """The fences, of the records asked about, whose attempts are in the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a stage, as history keeps it."""

    job_id: int
    fence: int
    stage: str
    attempt: int
    outcome: Outcome | None
    """None while it is running."""
    node: str
    started_us: int
    ended_us: int | None
    code: int | None = None
    message: str | None = None
    error: Mapping[str, Any] | None = None
    result: Any = None
    superseded: bool = False
    """An operator asked for it again, or the tree below regrew: it no longer counts as passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as people see it, as of one snapshot."""

    id: int
    type: str
    stage: str | None
    """The stage it runs or will run next; None when it is done."""
    state: State
    queue: str
    priority: int
    share: str
    collection: str | None
    submitter: str | None
    key: str | None
    parent_id: int | None
    root_id: int
    lineage: str
    params: Any
    created_us: int
    started_us: int | None
    settled_us: int | None
    wake_us: int | None
    """When a scheduled job becomes due."""
    attempts: int
    """Attempts used up in the current stage."""
    interruptions: int
    warnings: int
    code: int | None
    message: str | None
    """Why it stands where it stands, when there is something to say."""
    waits_for: str | None
    """``children``, ``needs``, ``lock:NAME`` or ``serial`` while waiting; ``hold`` while a hold keeps it held."""
    cancelling: bool
    node: str | None
    """Who runs it now, or ran it last."""
    fence: int | None
    """Of its current lease."""
    progress: float | None
    progress_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs; every field that is not None must fit."""

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
    """Lineage of a job: only what lies strictly below it."""
    ids: tuple[int, ...] | None = None
    node: str | None = None
    """Name of the node that runs it or ran it last."""
    created_before_us: int | None = None
    created_after_us: int | None = None
    message: str | None = None
    """Text that its message holds, whatever the case."""
    fingerprint: str | None = None
    """Of the failure it stands failed with (``spinney.model.attempts.failures``)."""
    settled_after_us: int | None = None
    superseded: bool | None = None
    """False: only what still counts for its parent."""
    tree_at_rest: bool = False
    """Only what no open parent or root may still look back upon."""
    kept: bool = False
    """Only what is held, or will be because a hold lies on this very job."""
    key: str | None = None
    """Only the job that has this key now: at the top of a tree, or below ``parent_id`` where that is named."""
    within: AccessScope | None = None
    """Only what somebody's limits let him see; None: all."""
    beyond: AccessScope | None = None
    """Only what they do not let him see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSummary:
    """What a job's direct children come to."""

    states: Mapping[str, int]
    """How many stand in each state."""
    warnings: int
    """Of all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node as the store knows it."""

    id: int
    name: str
    boot_id: str
    """The kernel's boot, by which a predecessor on the same machine is told."""
    host: str
    pid: int
    slots: int
    """In force for its name: those it was started with, unless an operator has set others."""
    state: str
    """``active``, ``draining`` or ``left``."""
    beat: int
    """The heartbeat counter; only that it moves means something."""
    started_us: int
    seen_us: int
    version: str
    types: tuple[str, ...]
    serves: QueueSelection = ALL
    """The queues that it was started for, or without."""
    leases: int = 0
    drained: bool = False
    """An operator lets its name take nothing new."""
    load: Load | None = None
    """What it measured of its host at its last beat."""
    trouble: str | None = None
    """Why it works worse than it should, while it does."""
    home: int = 0
    """Where its jobs have their folders, in a store whose folders are local (``spinney.model.homes``)."""
    root: FolderRoot | None = None
    """Its folder root, told when it joins."""
    lease_s: float | None = None
    """Its lease period, by which every observer judges it; None: a node of an older version, which has not said it."""
    is_external_worker: bool = False
    """It runs external stages alone, and is no node (``spinney.model.external``)."""

    @property
    def dead_after_s(self) -> float:
        """How long its beat counter must have stood still, by the clock of an observer, before it is dead."""
        return LEASE_MAX_S if self.lease_s is None else self.lease_s

    @property
    def claims(self) -> bool:
        """Whether it may be given anything new."""
        return self.state == "active" and not self.drained

    @property
    def status(self) -> str:
        """Its state, with what operators want of it: ``active``, ``drained``, ``draining`` or ``left``."""
        return "drained" if self.drained and self.state == "active" else self.state
