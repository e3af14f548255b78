"""The contract of a store: what it stores, what it guarantees, and which operations it has.

A store is synchronous. **Every method behaves as one transaction**: it happens wholly or not at all, even if a process
dies in the middle, and is durable when it returns. A long submission is written in steps, but its jobs become visible
together; operations on many jobs (cancelling a tree, retrying many children, spawning children with keys) work in steps
that each leave a consistent state, and may be repeated. (A claim without records, a heartbeat and a progress note may
be undone by a power failure, never by the death of a process.) A store object belongs to one thread at a time; reads
use a connection of their own and never delay a write.

Who writes what:

* ``submit`` creates jobs; ``flush_and_claim`` grants leases and records the outcomes of attempts;
* verbs of a running attempt (``put_data``, ``append_data``, ``spawn``, ``submit_from``, ``take_lock``,
  ``prioritise``, ``progress``)
  have its fence, and are refused with StaleFence when the attempt has lost its lease;
* ``recover`` takes the leases of a dead node away; after it every call with their fences is refused;
* operators' verbs (``spinney.features.bulk``) change jobs that are not running, and leave cancel requests for those
  that are;
* ``sweep`` is housekeeping: any process may call it at any time, also several at once, or not for a while; it works in
bounded steps. Among nodes only the leader calls it (``elect_leader``).

A call that raises StoreUnavailable has done nothing; one that raises CommitUncertain may have been committed.
Operations whose docstring says so may simply be repeated then; a node calls ``reconcile``.

The suite in ``tests/contract`` is the specification; an implementation is right when it passes.
``now_us`` is the time of the caller's clock, in microseconds since 1970 UTC.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spinney.model.access import AccessScope
from spinney.model.fleet import Load
from spinney.model.jobs import (
    Attempt,
    ChildSummary,
    ClaimRequest,
    Filter,
    FlushResult,
    Job,
    NodeInfo,
    Reconciliation,
    Record,
    Submission,
)
from spinney.model.rights.actor import Actor
from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import TypeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitResult:
    """The jobs that a submission created, or that the same request created before."""

    ids: Sequence[int]
    """The ids of the jobs, in the order of the submissions and, within each, of its parameters."""
    held: int = 0
    """How many of them a hold keeps from their first stage."""
    repeated: bool = False
    """The same request was made before, with the same key of the caller; no jobs were created now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionKey:
    """The caller's idempotency key of a submission, which makes it safe to repeat."""

    owner: str
    """The user in whose name it is; other users have their own keys."""
    key: str
    digest: str
    """The digest of the whole request, so that a key is not used for two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """The result of one step of housekeeping, and when the next is due."""

    due: int = 0
    """How many scheduled jobs became claimable."""
    more: bool = False
    """The limit of the step was reached: call again soon."""
    wake_us: int | None = None
    """The earliest time at which something becomes due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The leader among the nodes, and when something becomes due next."""

    leader: int | None
    """The leader's id; None: there is none, because the node that asked may not lead."""
    wake_us: int | None = None
    """The earliest time at which something becomes due."""


class Kernel(Protocol):
    """The port that nodes, the simulator and the model machine need: submission, claims, records, recovery. Each
    docstring says what a method adds to the rules of the module's docstring."""

    # --- declarations of nodes and applications ----------------------------------------------

    def register(
        self, types: Iterable[TypeSpec], queues: Iterable[QueueSpec], locks: Iterable[LockCapacity] = ()
    ) -> None:
        """Register job types, queues and capacities of locks; a later registration of a name replaces the earlier one.

        Raises Refused when a queue's order or sharing changes while it has jobs.
        """

    def types(self) -> Mapping[str, TypeSpec]:
        """Return all registered job types, by name."""

    def queues(self) -> Mapping[str, QueueSpec]:
        """Return all declared queues, by name. A queue that is not declared has QueueSpec's defaults."""

    # --- creating jobs ----------------------------------------------------------------------

    def submit(
        self,
        submissions: Sequence[Submission],
        *,
        once: SubmissionKey | None = None,
        under: Actor | None = None,
        soon: Callable[[], object] | None = None,
        now_us: int,
    ) -> SubmitResult:
        """Accept jobs: all become visible together and durable, or none is stored.

        ``soon`` is called within the transaction, and may wake nodes: an exchange that begins from then on waits for
        the commit and finds the jobs. So nodes wake up while the jobs are written and made durable. It must neither
        fail nor wait, and may have been called in vain when the jobs are refused.

        ``under``: each job (of at most some 50) is created under a hold of its own, with this actor's reason, in the
        same transaction: for work that has to be done before a job may start (such as uploading its files).

        ``once``: the key is taken in the transaction that accepts them, so that the request may be repeated after any
        crash: for a day the answer is the same jobs. Raises UsageError where the key was used for another request,
        SubmissionUnfinished while another call with it is in progress.

        Raises UnknownType, BadParameters (a lock's field missing), DuplicateKey, NoSuchJob (a need),
        Cycle. Parameters were validated before; the store only reads them for the names of locks.
        """

    def spawn(
        self, job_id: int, fence: int, submissions: Sequence[Submission], *, now_us: int
    ) -> Sequence[int]:
        """Spawn children of a running attempt. It returns ids at once, in the order of the request; the jobs become
        visible in the transaction that records the stage as passed, and are dropped when the attempt does not pass.

        Children with keys are created at once, a bounded number in each transaction; the same key below one parent
        means the same child, whose id is returned, so that an interrupted call can be repeated. Raises Refused when
        cancellation of the job or an ancestor was requested, StaleFence, and what ``submit`` raises."""

    def submit_from(
        self,
        job_id: int,
        fence: int,
        submissions: Sequence[Submission],
        *,
        beside: int | None = None,
        now_us: int,
    ) -> Sequence[int]:
        """Submit independent jobs from a running attempt: they are roots, and no children. As with ``spawn``, it
        returns ids at once; the jobs become visible in the transaction that records the stage as passed, and are
        dropped when the attempt does not pass. They are not tied to the submitting job: it does not wait for them, nor
        fail or regrow with them, and cancelling or deleting its tree does not affect them. A cancel request does not
        refuse them: a stage that passes in spite of it has submitted them.

        Jobs with keys are created at once, a bounded number in each transaction, whatever becomes of the attempt. Keys
        are those of ``submit``: for a key that an unsettled job has, or has for ever, it returns that job's id if its
        type is the same; else it raises DuplicateKey. If retention has removed a job, only its id is left: its type is
        not compared, and no other job can need it.

        A submission without collection or submitter gets those of the submitting job, and nothing else of it. The jobs
        of a call are in one share; ``beside`` is a job of an earlier part when a call is split. Raises StaleFence, and
        what ``submit`` raises."""

    # --- the hot path ---------------------------------------------------------------------

    def flush_and_claim(
        self, records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        """Record the outcomes of attempts and claim new ones, in one transaction.

        Records: a passed stage takes the job to its next stage (kept in the same slot when the record has ``keep`` and
        the rules allow it; then it is among the answer's leases), to waiting for its children, or to completion; others
        follow ``scheduling.retry_decision``. When a job settles, the same transaction updates its parent, its
        dependants, the jobs that wait for its locks, and the next job of its tree when serial. A record whose lease was
        taken away is refused.

        Claims: docs/promises.md, 4 and 5: no lease beyond a queue's limit, a node's slots
        or a lock; strict priority over all queues; within one, queues in turn; within a queue by
        shares. Free slots get one job each before any slot gets jobs ahead. When a claim finds a lock taken, the job
        waits for it; this happens to a bounded number of jobs in each transaction."""

    def reconcile(self, node_id: int, records: Sequence[Record]) -> Reconciliation:
        """Return what an exchange that raised CommitUncertain has committed, after it can no longer commit. Nothing is
        changed."""

    def started(self, fences: Sequence[int], *, now_us: int) -> None:
        """Mark these leases as running (durable when it returns). Unknown fences are ignored."""

    # --- requests of running attempts ---------------------------------------------------

    def get_data(self, job_id: int, *, name: str | None = None) -> Mapping[str, Any]:
        """Return all data of a job as they are now, decoded, by name; with ``name`` that entry alone, if there is one.
        One that cannot be read is ``Unreadable``."""

    def put_data(self, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
        """Set (None: remove) one entry, JSON text up to 64 kB. ``target`` is the job itself, its
        parent or its root. Raises StaleFence, BadParameters (too large), Refused (another job)."""

    def append_data(self, job_id: int, fence: int, name: str, value: str, target: int) -> int:
        """Append a JSON value to the list of that name (created when missing); return its length. Raises what
        ``put_data`` raises, and Refused when the entry is no list or cannot be read."""

    def results(self, job_id: int) -> Mapping[str, Any]:
        """Return the results of the stages that have passed, by stage; stages without a value are left out."""

    def take_lock(
        self,
        job_id: int,
        fence: int,
        name: str,
        until: str,
        *,
        amount: int = 1,
        capacity: int | None = None,
        now_us: int,
    ) -> bool:
        """Take a lock, or an amount of it, for a running attempt, or return False; it never waits. The job's amount
        becomes ``amount``: a smaller one at any time, a larger one when there is room.

        ``capacity``: the capacity for this call, unless an operator has set one. It also returns False where there is
        room, but another job has waited for the lock before. Raises StaleFence, UsageError (the amount exceeds the
        capacity and no other job has any of the lock, so that waiting would never end)."""

    def prioritise(self, job_id: int, fence: int, priority: int) -> None:
        """Set the priority (0 to 99) of a running attempt's job: it applies from its next claim on, and to children
        that it spawns from now on, whatever becomes of the attempt. An operator may set another at any time; the last
        one applies. Raises StaleFence, UsageError."""

    def progress(self, job_id: int, fence: int, fraction: float, message: str | None) -> None:
        """Set the progress that is shown while the attempt runs. Raises StaleFence."""

    # --- nodes ----------------------------------------------------------------------------

    def join(self, node: NodeInfo, *, now_us: int) -> int:
        """Add a node (``id`` and ``home`` of ``node`` are ignored; where folders are local, the home comes from its
        ``root``); return its id, which its leases have. Raises NodeRefused when its root is a copy of another one that
        is in use, or the store works only with later versions."""

    def beat(
        self,
        node_id: int,
        *,
        load: Load | None = None,
        trouble: str | None = None,
        urgent: bool = True,
        now_us: int,
    ) -> bool:
        """Increment the heartbeat counter; return False when the node has been declared dead meanwhile.

        The node also reports the load of its host (``load``; None: unchanged), and why it is degraded (``trouble``;
        None: it is not). Raises StoreReplaced when the node's counter is far below that of this object's last
        heartbeat.

        ``urgent``: it is a node's own. In a file it goes ahead of the writers that wait, because a node whose
        heartbeats wait too long is ended. Those of external workers wait for their turn, because hundreds of them would
        hold up the nodes; and a server, which sends them, does not end because of an older copy."""

    def keep_out(self, node_id: int) -> bool:
        """Let no other process write before the next ``beat`` of this object is committed, except others that keep out,
        too. Return True when that is so, and the node has not been declared dead until then, so that its attempts may
        continue; False when it has been, or the store cannot guarantee it (one with a server)."""

    def update_node(
        self, node_id: int, *, state: str, beat: int | None = None, died: bool = False, now_us: int
    ) -> bool:
        """Set that a node drains or has left; it leads no more then. ``beat``: only if its counter still has this
        value. ``died``: it has not left by itself, so the list of nodes shows it
        as dead for a day. Return False when nothing was changed, because it has left or the counter has changed."""

    def elect_leader(self, node_id: int, *, dead: int | None = None, now_us: int) -> Leadership:
        """Return the leader, which does what one node does for all (promotion of scheduled jobs, recovery, retention).
        The calling node becomes the leader where there is none: because none has begun, or the former one drains, has
        left, was declared dead, or is ``dead`` as observed by the caller. Only an active node may lead. It only reads,
        unless the leader changes.

        It avoids that several nodes do the same work at once; safety does not depend on it."""

    def nodes(self) -> Sequence[NodeInfo]:
        """Return all nodes that have not left, and those that have left but still own leases."""

    def recover(self, node_id: int, running: Mapping[int, int] | None, *, now_us: int) -> Sequence[int]:
        """Take every lease of a dead node away; return the jobs concerned.

        ``running`` maps the fences that are known to have been running to their start time (then
        all others are handed back uncounted, except those marked as started whose type must not run twice unasked: they
        may have ended unrecorded); None: not known, so every lease marked as started counts as lost. The node has left
        afterwards. Idempotent."""

    def cancel_requests(self, node_id: int) -> Sequence[tuple[int, int]]:
        """Return (job, fence) of this node's leases whose cancellation was requested."""

    def deleted_folders(self, limit: int, *, after: int = 0, home: int | None = None) -> Sequence[int]:
        """Return deleted jobs whose folders may still exist, by id, after the id ``after``. ``home``: only those whose
        folders are in that home, or in none (None: all)."""

    def note_removed_folders(self, job_ids: Sequence[int], *, home: int = 0) -> None:
        """Note that the folders of these jobs are removed, if they were in this home; others are ignored."""

    # --- housekeeping ---------------------------------------------------------------------

    def sweep(self, *, now_us: int, limit: int = 500) -> SweepResult:
        """Do one bounded step of housekeeping: promote scheduled jobs that are due, drop interrupted submissions (or
        finish accepted ones), update dependants of jobs that have settled or were opened again, apply cancel requests
        to trees, forget causes of failures that have not occurred for long, hold jobs whose next stage their type does
        not have any more."""

    # --- reading --------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        """Return one job, also one that was deleted and left a tombstone. Raises NoSuchJob."""

    def jobs(
        self, job_filter: Filter, *, after: int = 0, limit: int = 100, newest: bool = False
    ) -> list[Job]:
        """Return up to ``limit`` matching jobs by id, from behind the id ``after``; with ``newest`` in descending
        order, from before it (0: from the last)."""

    def tree(self, job_id: int, *, limit: int = 10_000, within: AccessScope | None = None) -> list[Job]:
        """Return the job and all jobs below it, in lineage order, ``limit`` in all. ``within``: only jobs within these
        limits. Raises NoSuchJob."""

    def attempts(self, job_id: int) -> list[Attempt]:
        """Return the job's attempts, oldest first; a running attempt is last. Raises NoSuchJob."""

    def counts(self, job_filter: Filter) -> Mapping[str, int]:
        """Return how many matching jobs are in each state."""

    def below(
        self, job_ids: Sequence[int], *, within: AccessScope | None = None
    ) -> Mapping[int, ChildSummary]:
        """Summarize the direct children of each of these jobs in one query, without those that are deleted or
        superseded. A job without children has no entry. ``within``: only jobs within these limits."""

    def children(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[Job]:
        """Return up to ``limit`` of the job's direct children by id, from behind ``after``, without those that are
        deleted or superseded. A job without children, or that does not exist, has none."""

    def signature(self) -> int:
        """Return a number that changes when another process has committed, for polling."""

    # --- waking ---------------------------------------------------------------------------

    def notify(self, sender: str = "") -> None:
        """Wake all listeners of this store on all hosts, because something that nodes should see has been committed. It
        is a transaction of its own that fails silently: a lost notification costs a poll interval.

        ``sender`` is passed to the listeners, so that one that was woken in another way can ignore it."""

    def listen(self) -> "Listener | None":
        """Return a listener for notifications, on a connection of its own; any thread may call this. None where there
        are no notifications (a database file, a connection pooler): there polling has to suffice. Raises
        StoreUnusable."""


class Administration(Protocol):
    """Administration of the store itself: its schema, the access of database roles, its connections."""

    def create(self, *, local_folders: bool = False) -> None:
        """Create the store, or upgrade its schema. Idempotent.

        ``local_folders``: a new store's folders are local: a job is claimable only by nodes that have its folder, once
        an attempt of it has begun. Raises Refused for a store that was created with the other setting."""

    def unfinished(self) -> Sequence[str]:
        """Return the parts of upgrades that wait until the last node of an older version has left; see ``finish``."""

    def finish(self) -> Sequence[str]:
        """Do the unfinished parts of upgrades; return their names. Older versions of Spinney are refused from then on.
        Raises StoreUnusable while a node of an older version has not left."""

    def grant(self, roles: Sequence[str]) -> None:
        """Grant these roles of the database access to the store, without the right to alter it. Raises UsageError where
        there are no roles, or not these."""

    def script(self, roles: Sequence[str] = ()) -> str:
        """Return what ``create`` and ``grant`` would do now as a script, for a DBA to read and to run. Raises
        UsageError where there is no such script."""

    def close(self) -> None:
        """Close all connections; the store cannot be used afterwards. Idempotent."""

    def facts(self) -> Mapping[str, str]:
        """Return name, version and settings of the database, and the token of its folder root, for ``init`` and
        ``doctor``."""


class Listener(Protocol):
    """Receives the notifications of one store. It belongs to one thread."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when there may be notifications."""

    def poll(self) -> Sequence[str]:
        """Return the senders of notifications since the last call; it never waits. Raises StoreUnusable when the
        connection is lost: close the listener, and listen again."""

    def close(self) -> None:
        """Close the connection on which notifications arrive."""
