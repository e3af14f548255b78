"""The contract of a store: what it keeps, what it promises, what may be asked of it.

A store is synchronous. **Every method is as if one transaction**: it happens wholly or not at all,
whatever dies in the middle, and is durable when it returns. A long submission is written in steps, but
its jobs become visible together; verbs over many jobs (a tree's cancel, the retry of many children,
children with keys) go in steps that each leave everything in order, and may be asked for again. (A claim
without records, a heartbeat and a progress note may be undone by a loss of power, never by the death of a
process.) A store object belongs to one thread at a time; reads are served by a connection of their own and
never hold up a write.

Who writes what:

* ``submit`` makes jobs; ``flush_and_claim`` gives leases and records what became of them;
* verbs of a running attempt (``put_data``, ``append_data``, ``spawn``, ``submit_from``, ``take_lock``,
  ``prioritise``, ``progress``)
  bear its fence, and are refused with StaleFence once the attempt has lost its lease;
* ``recover`` takes the leases of a dead node away; after it nothing that bears their fences counts;
* operators' verbs (``cancel``, ``retry``, ``rerun``, ``release``, ``delete``) change jobs that are
  not running, and leave cancel requests for those that are;
* ``sweep`` is housekeeping: it may be called by anybody at any time, twice or never for a while,
  and works in bounded steps. Nodes leave it to one among them (``elect_leader``).

A call that raises StoreUnavailable has done nothing; one that raises CommitUncertain may have been done. Verbs that
say so may simply be asked again then; a node asks for its ``reconcile``.

The suite in ``tests/contract`` is the specification; an implementation is right when it passes.
``now_us`` is handed in by the caller's clock, in microseconds since 1970 UTC.
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
from spinney.model.rights.operators import Actor
from spinney.model.settings.capacities import LockCapacity
from spinney.model.types import QueueSpec, TypeSpec
from spinney.store import operators


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitResult:
    """The answer to a submission."""

    ids: Sequence[int]
    """In the order of the submissions and, within each, of its parameters."""
    held: int = 0
    """How many of them a hold stopped at the door."""
    repeated: bool = False
    """The same was asked before, with the same key of the caller's; nothing was made now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionKey:
    """What makes a submission safe to be asked again: a key that the caller chose for it."""

    owner: str
    """In whose name; keys of others are others."""
    key: str
    digest: str
    """Of the whole request, so that a key is not used for two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedJobs:
    """The answer to an operator's verb."""

    ids: Sequence[int]
    """Jobs that it changed, or whose running attempt it asked to end."""
    reopened: Sequence[int] = ()
    """Settled ancestors and needers that went back to waiting because of it; of very many needers the first, the
    others follow in steps (``sweep``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedFolder:
    """A deleted job whose folder may go too."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnResult:
    """The answer to a running attempt that makes jobs."""

    ids: Sequence[int]
    """In the order asked. A key that a child of this parent (``submit_from``: a job) has already gives its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What housekeeping did, and when it is due again."""

    due: int = 0
    """Scheduled jobs that became claimable."""
    more: bool = False
    """The step's bound was reached: call again soon."""
    wake_us: int | None = None
    """The earliest time at which something becomes due by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who does what one node does for all, and what comes next."""

    leader: int | None
    """The leader; None: nobody, for the one that asked may not."""
    wake_us: int | None = None
    """The earliest time at which something becomes due by itself."""


class Kernel(Protocol):
    """The port that a node needs, and with it the simulator and the model machine: making jobs, giving them out,
    recording what became of them, recovery. Each method says what it adds to the module's docstring."""

    # --- what nodes and applications declare ----------------------------------------------

    def register(
        self, types: Iterable[TypeSpec], queues: Iterable[QueueSpec], locks: Iterable[LockCapacity] = ()
    ) -> None:
        """Make these job types, queues and capacities of locks known; a later registration of a name replaces it.

        Raises Refused when a queue's order or sharing changes while jobs stand in it.
        """

    def types(self) -> Mapping[str, TypeSpec]:
        """All job types known, by name."""

    def queues(self) -> Mapping[str, QueueSpec]:
        """All queues declared, by name. One that is only named somewhere has QueueSpec's defaults."""

    # --- making jobs ----------------------------------------------------------------------

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

        ``soon`` is called when they are on the point of being accepted, and may wake whoever asks for work: an
        exchange that begins from then on has its turn only behind them, and finds them. Nodes so get up while the
        jobs are being made durable. It must neither fail nor wait; refused jobs it may have told of in vain.

        ``under``: each (of at most some 50) under a hold of its own, with the reason of this author, in the same
        transaction: for what has to happen before a job may start (its files are put into its folder).

        ``once``: the key is taken in the transaction that accepts them, so that after any crash the same may be asked
        again: for a day it answers with the same jobs. Raises UsageError where the key was used for something else,
        Refused while another is at it.

        Raises UnknownType, BadParameters (a lock's field missing), DuplicateKey, NoSuchJob (a need),
        Cycle. Parameters were validated before; the store does not look into them but for locks.
        """

    def spawn(
        self,
        job_id: int,
        fence: int,
        submissions: Sequence[Submission],
        *,
        now_us: int,
    ) -> SpawnResult:
        """Children of a running attempt. Ids at once; the rows become visible in the transaction
        that records the stage as passed, and vanish when the attempt does not pass.

        Those with keys are born at once, a bounded number a transaction; the same key below one parent
        is the same child, so that a call cut off half-way is made again without harm. Refused
        (Refused) when the job or an ancestor is to be cancelled. Raises StaleFence, and what
        ``submit`` raises.
        """

    def submit_from(
        self,
        job_id: int,
        fence: int,
        submissions: Sequence[Submission],
        *,
        beside: int | None = None,
        now_us: int,
    ) -> SpawnResult:
        """Jobs of their own, submitted by a running attempt: at the top, children of nobody. As with ``spawn``: ids
        at once; the rows become visible in the transaction that records the stage as passed, and vanish when the
        attempt does not pass. From then on nothing ties them to the job that submitted them: it does not wait for
        them, nor fail or regrow with them, and to cancel or delete its tree does not reach them. A request to cancel it
        refuses nothing: a stage that passes all the same has submitted them.

        Those with keys are born at once, a bounded number a transaction, whatever becomes of the attempt. A key is
        the same as in ``submit``: one that an unsettled job has, or has for ever, gives that job's id where that is
        of the same type; else it raises DuplicateKey.

        What names no collection or submitter takes those of the job that submits, and nothing else of it. The jobs
        of a call count as one share; ``beside`` is a job of an earlier part when a call is asked for in several.
        Raises StaleFence, and what ``submit`` raises.
        """

    # --- the hot path ---------------------------------------------------------------------

    def flush_and_claim(
        self, records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        """Record what became of attempts and claim new ones, in one transaction.

        Records: a passed stage takes the job to its next stage (kept in the same slot when the
        record says ``keep`` and the rules allow, so the answer's leases hold it), to waiting for
        its children, or to completion; others go as ``scheduling.retry_decision`` says. Settling a job
        moves on, in the same transaction, its parent, those who need it, those who wait for its
        locks, and its tree's next in line when serial. A record whose lease is gone is refused.

        Claims: docs/promises.md, 4 and 5: no lease beyond a queue's limit, a node's slots
        or a lock; strict priority over all queues; within one, queues in turn; within a queue by
        shares. Free slots get one job each before anything is looked ahead. A claim that meets a
        taken lock moves that job to waiting for it, a bounded number a transaction.
        """

    def reconcile(self, node_id: int, records: Sequence[Record]) -> Reconciliation:
        """After an exchange that raised CommitUncertain: what came of it, once nothing can come of it any more. Nothing
        is changed."""

    def started(self, fences: Sequence[int], *, now_us: int) -> None:
        """Mark these leases as running (durable when it returns). Unknown fences are ignored."""

    # --- what a running attempt may ask ---------------------------------------------------

    def get_data(self, job_id: int) -> Mapping[str, Any]:
        """All of a job's data, read fresh."""

    def put_data(self, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
        """Set (None: remove) one entry, JSON text up to 64 kB. ``target`` is the job itself, its
        parent or its root. Raises StaleFence, BadParameters (too large), Refused (another job)."""

    def append_data(self, job_id: int, fence: int, name: str, value: str, target: int) -> int:
        """Append a JSON value to the list of that name (made when missing); returns its length."""

    def results(self, job_id: int) -> Mapping[str, Any]:
        """The values of the stages that have passed, by stage."""

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
        """Take a lock for a running attempt, or that much of it, or answer False; never waits. What the job has of it
        becomes ``amount``: less at any time, more when there is room.

        ``capacity``: what counts for this taking, unless an operator has set one. False also where there is room, but
        somebody waits for the lock who comes first. Raises StaleFence, UsageError (an amount beyond the capacity of a
        lock of which nobody else has any: it would never come)."""

    def prioritise(self, job_id: int, fence: int, priority: int) -> None:
        """Another priority (0 to 99) for the job of a running attempt: from its next claim on, and for the children
        that it spawns from now on, whatever becomes of the attempt. An operator may set another at any time; the last
        word counts. Raises StaleFence, UsageError."""

    def progress(self, job_id: int, fence: int, fraction: float, message: str | None) -> None:
        """What people see while the attempt runs. Raises StaleFence."""

    # --- nodes ----------------------------------------------------------------------------

    def join(self, node: NodeInfo, *, now_us: int) -> int:
        """Enter a node (its id in ``node`` is ignored, and its home: where folders are local, that comes from its
        ``root``); returns the id its leases will bear. Raises NodeRefused when its root is a copy of another's that
        is in use."""

    def beat(
        self, node_id: int, *, load: Load | None = None, trouble: str | None = None, now_us: int
    ) -> bool:
        """Move the heartbeat counter; False when the node has been declared dead meanwhile.

        With it the node says how its host fares (``load``; None: as said before), and why it works worse than it
        should (``trouble``; None: it does not)."""

    def keep_out(self, node_id: int) -> bool:
        """Let nobody change the store before the next ``beat`` of this object has been taken, as far as others do not
        keep out, too. True: so it is, and nobody has declared the node dead until then; what it runs may go on.
        False: it has been, or the store cannot promise it (one with a server)."""

    def update_node(self, node_id: int, *, state: str, beat: int | None = None, now_us: int) -> bool:
        """Say that a node drains or has left. With that it leads no more. ``beat``: only if its counter still
        stands there. False: nothing was changed, because it has left or the counter has moved."""

    def elect_leader(self, node_id: int, *, dead: int | None = None, now_us: int) -> Leadership:
        """Who leads: does what one node does for all (promotion of scheduled jobs, recovery, retention). The
        one that asks, where nobody does: where nobody has begun, or who did drains, has left, was declared dead, or
        is ``dead`` by the watch of the one that asks. Only an active node may. Reads, unless it changes hands.

        It keeps several from doing the same at once; nothing that safety needs hangs on it."""

    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes that have not left, and those that left still owning leases."""

    def recover(self, node_id: int, running: Mapping[int, int] | None, *, now_us: int) -> Sequence[int]:
        """Take every lease of a dead node away; returns the jobs concerned.

        ``running`` maps the fences that are known to have been running to their start time (then
        all others are handed back uncounted, but for those marked as started whose type forbids a silent second
        run: they may have ended unrecorded); None: not known, so every lease marked as started counts as lost.
        The node has left afterwards. Idempotent.
        """

    def cancel_requests(self, node_id: int) -> Sequence[tuple[int, int]]:
        """(job, fence) of this node's leases that somebody wants cancelled."""

    def deleted_folders(self, limit: int, *, after: int = 0, home: int | None = None) -> Sequence[int]:
        """Deleted jobs whose folders may still be there, by number, from behind ``after``. ``home``: only those whose
        folders are in that home, or in none (None: all)."""

    def folder_gone(self, job_ids: Sequence[int], *, home: int = 0) -> None:
        """Their folders have been removed, as far as they were in this home; of others it is not believed."""

    # --- housekeeping ---------------------------------------------------------------------

    def sweep(self, *, now_us: int, limit: int = 500) -> SweepResult:
        """One bounded step of housekeeping: scheduled jobs that are due, submissions whose
        submitter died half-way (dropped, or finished when accepted), those that need a job that settled or
        was opened again and have not heard of it yet, cancel requests over trees, causes of
        failures that nobody has seen for long (forgotten),
        jobs whose next stage has vanished from their type (held, with the reason)."""

    # --- reading --------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        """One job. Raises NoSuchJob."""

    def jobs(self, which: Filter, *, after: int = 0, limit: int = 100, newest: bool = False) -> list[Job]:
        """Jobs that fit, by id (``newest``: the other way), from behind ``after``."""

    def tree(self, job_id: int, *, limit: int = 10_000) -> list[Job]:
        """The job and all below it, in lineage order."""

    def attempts(self, job_id: int) -> list[Attempt]:
        """Its history, oldest first; a running attempt is last."""

    def counts(self, which: Filter) -> Mapping[str, int]:
        """How many jobs stand in each state."""

    def below(
        self, job_ids: Sequence[int], *, within: AccessScope | None = None
    ) -> Mapping[int, ChildSummary]:
        """What the direct children of each of these come to, those deleted or superseded left out; in one look at all
        of them. Who has none has no entry. ``within``: only what somebody's limits let him see."""

    def children(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[Job]:
        """Its direct children by id, those deleted or superseded left out."""

    def signature(self) -> int:
        """A number that moves when another process has committed: for polling behind wake-ups."""

    # --- waking ---------------------------------------------------------------------------

    def notify(self, sender: str = "") -> None:
        """Wake all who listen to this store, wherever they are: something that nodes should see has been
        committed. A transaction of its own that fails silently: a lost one costs a poll interval.

        ``sender``: what the ears are to hear, so that one who was woken otherwise can tell."""

    def listen(self) -> "Listener | None":
        """An ear for what is announced, on a connection of its own; any thread may ask. None where nothing can be
        heard (one file, a pooler on the way): there polling has to do. Raises StoreUnusable."""


class Administration(Protocol):
    """The store itself."""

    def create(self, *, local_folders: bool = False) -> None:
        """Make the store, or bring its schema up to date. Idempotent.

        ``local_folders``: a new store's folders are local: a job is claimable only by nodes that have its folder, once
        an attempt of it has begun. Raises Refused for a store that was made otherwise."""

    def unfinished(self) -> Sequence[str]:
        """Parts of upgrades that wait until the last node of an older version has left; see ``finish``."""

    def finish(self) -> Sequence[str]:
        """Do them; returns their names. Older versions of Spinney are refused from then on. Raises StoreUnusable while
        an older node has not left."""

    def grant(self, roles: Sequence[str]) -> None:
        """Let these roles of the database work with the store, without the right to alter it. Raises UsageError
        where there are no roles, or not these."""

    def script(self, roles: Sequence[str] = ()) -> str:
        """What ``create`` and ``grant`` would do now, for a DBA to read and to run. Raises UsageError where that is
        no script."""

    def close(self) -> None:
        """Let go of everything. Idempotent."""

    def facts(self) -> Mapping[str, str]:
        """Name, version and settings of the database, and the token of its folder root: for ``init``
        and ``doctor`` to print."""


class JobOperations(Protocol):
    """What operators do with single jobs."""

    def cancel(self, job_id: int, *, tree: bool, by: str, reason: str | None, now_us: int) -> ChangedJobs:
        """Cancel a job, or it and all below. What runs gets a wish and ends soon.

        A job with open children cannot be cancelled without its tree (Refused).
        """

    def retry(self, job_id: int, *, stage: str | None, by: str, now_us: int) -> ChangedJobs:
        """Open a failed, orphaned or cancelled job again: from the stage after the last passed one,
        or from an earlier ``stage``. For a job that failed because of its children, those that
        failed are retried. Ancestors regrow. Raises Refused, UnlawfulTransition."""

    def rerun(self, job_id: int, *, stage: str | None, by: str, now_us: int) -> ChangedJobs:
        """Run a settled job again from its first stage (or from ``stage``), whatever had passed.
        Children which those stages bore are superseded, except those spawned again by key."""

    def release(self, job_id: int, *, by: str, now_us: int) -> ChangedJobs:
        """Let a held job go on, each looked at afresh (children, needs, time)."""

    def delete(self, job_id: int, *, by: str, now_us: int) -> Sequence[DeletedFolder]:
        """Delete a settled or held job with everything below it; a tombstone stays. Those that need one of them
        hear first how it ended. Keys are free again, also those taken for ever.

        Raises Refused when something below is open (cancel it first). The folders are the caller's
        to remove, and ``deleted_folders`` tells them again until ``folder_gone``.
        """


class Parts(Protocol):
    """What features bring: see ``spinney.store.operators``."""

    @property
    def accounts(self) -> operators.Accounts: ...
    @property
    def audit(self) -> operators.Audit: ...
    @property
    def sign_in(self) -> operators.SignIn: ...
    @property
    def holds(self) -> operators.Holds: ...
    @property
    def explainer(self) -> operators.Explainer: ...
    @property
    def bulk(self) -> operators.Bulk: ...
    @property
    def statistics(self) -> operators.Statistics: ...
    @property
    def failures(self) -> operators.Failures: ...
    @property
    def fleet(self) -> operators.Fleet: ...
    @property
    def homes(self) -> operators.Homes: ...
    @property
    def fetches(self) -> operators.Fetches: ...
    @property
    def locks(self) -> operators.Locks: ...
    @property
    def queue_admin(self) -> operators.Queues: ...
    @property
    def schedules(self) -> operators.Schedules: ...
    @property
    def retention(self) -> operators.Retention: ...
    @property
    def doctor(self) -> operators.Doctor: ...
    @property
    def external_workers(self) -> operators.ExternalWorkers: ...
    @property
    def webhooks(self) -> operators.Webhooks: ...


class Store(Kernel, Administration, JobOperations, Parts, Protocol):
    """All of it."""


class Listener(Protocol):
    """Hears what is announced to one store. Belongs to one thread."""

    def fileno(self) -> int:
        """Becomes readable when there may be something to hear."""

    def poll(self) -> Sequence[str]:
        """Who has announced something since the last call; never waits. Raises StoreUnusable when nothing will
        be heard any more: close it, and listen again."""

    def close(self) -> None:
        """Let go of the connection."""
