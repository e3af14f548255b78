"""What a store does for operators, a part for each concern: ``store.holds``, ``store.audit``, …

As in ``spinney.store.contract``: every method is as if one transaction, bounded to well under 50 ms
unless it says that it reads; every change writes its entry into the audit in the same transaction.
Verbs that touch many jobs are called in steps by ``spinney.control``, which may be cut off between
any two of them and asked again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from spinney.model.access import AccessScope, Rights
from spinney.model.attempts.failures import Cause
from spinney.model.audits import AuditCall, AuditEntry
from spinney.model.external import ExternalLease, ExternalWorker
from spinney.model.fleet import NodeOrders, NodeStatus
from spinney.model.homes import Fetch, FetchResult, Home
from spinney.model.jobs import Filter, NodeInfo
from spinney.model.rights.accounts import Identity, Link, LoginAttempt, LoginLimit, Session, Token, User
from spinney.model.rights.operators import (
    Actor,
    BulkStep,
    CapacityInfo,
    Check,
    Explanation,
    FailureGroups,
    HoldPreview,
    LockInfo,
    Order,
    QueueChange,
    QueueInfo,
    RetentionRule,
    Stats,
    Violation,
)
from spinney.model.settings.holds import Hold, Scope
from spinney.model.settings.schedules import Schedule, ScheduleRun
from spinney.model.settings.webhooks import Delivery, DeliveryOutcome, DeliveryResult, DueDelivery, Webhook
from spinney.model.types import QueueSpec


class Holds(Protocol):
    """Holds are the truth; ``held`` follows by bounded sweeps.

    Under a hold nothing new starts, what runs finishes its stage, and what is submitted is accepted and held.
    Only what would be claimable is ``held``: what waits for something else goes on waiting for that first. One
    on a single job, or on what lies at the top of a tree, stays in force when the job settles, and ends with
    its deletion.
    """

    def lay(
        self, scope: Scope, name: str, reason: str, actor: Actor, *, until_us: int | None = None, now_us: int
    ) -> Hold:
        """Lay a hold. From the moment it returns nothing that it covers is claimed. The same hold of the same
        person (scope, name, reason), laid again, is no second one: it gets the new end.

        Raises NoSuchJob, UnknownType, UsageError (a queue that nobody has named, a name that cannot be one),
        Refused (a single job that has settled).
        """

    def lift(self, hold_id: int, actor: Actor, *, now_us: int) -> Hold:
        """Release a hold: what no other covers goes on, by ``sweep``. One that was released already, but not swept
        since, is returned again (``lifted``). Raises NoSuch when there is none."""

    def all(self) -> Sequence[Hold]:
        """Those in force, oldest first."""

    def would_hold(self, scope: Scope, name: str) -> HoldPreview:
        """What ``lay`` and the sweep after it would come to, for a wide scope. Raises what ``lay`` raises."""

    def would_go_on(self, hold_ids: Collection[int]) -> HoldPreview:
        """How many jobs would go on if these wide holds were lifted and swept."""

    def lifted(self) -> Sequence[Hold]:
        """Wide holds that somebody released while what they kept has not all been looked at since, the last first;
        with who released them in place of who laid them."""

    def covering(self, job_id: int) -> Sequence[Hold]:
        """Those that cover a job, oldest first. Raises NoSuchJob."""

    def held(self, hold_id: int) -> int:
        """How many jobs stand held that this one covers."""

    def leased_under(self, node_id: int, after: int) -> tuple[int, Sequence[int]]:
        """What a node should have back if it has not begun: the number of the last hold laid, and the fences of
        this node's leases that a hold covers which was laid after the one with the number ``after``."""

    def sweep(self, *, now_us: int, limit: int = 1000, yielding: bool = False) -> bool:
        """One bounded step: pending jobs that a hold covers become ``held``; held ones that none covers
        any more are looked at afresh; holds whose time is over end. Whether there is more to do.

        ``yielding``: leave it to whoever else took a step in the last two seconds, and answer False then. A loss
        of power may undo the last steps; whoever sweeps next takes them again."""

    @property
    def took_s(self) -> float:
        """How long the last step of this store object kept others from writing, its wait for its turn apart."""


class Bulk(Protocol):
    """One verb, many jobs, a step at a time."""

    def find(
        self,
        which: Filter,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[int]:
        """Ids that fit, ascending, from behind ``after`` (and not above ``until``); ``newest``: descending, from
        below ``after`` (0: from the last), and not below ``until``."""

    def count(self, which: Filter, *, most: int) -> int:
        """How many fit; counts no further than ``most``."""

    def apply(
        self, order: Order, job_ids: Sequence[int], actor: Actor, *, which: Filter | None = None, now_us: int
    ) -> BulkStep:
        """Do it to each of these (at most some 50) that lawfully can, and say why to the others not.

        ``which``: they were found by this filter. Those that fit no more are passed over, as are (retry, rerun)
        those that count no longer since a stage above them ran again, and (cancel, hold) those that it was
        done to already; and a job with open children is not refused its cancel, but cancelled when they have
        settled. One of a retry that failed because of its children is told in ``instead``.
        """

    def trial(self) -> AbstractContextManager[Callable[[], None]]:
        """Whatever is asked of this store object within the block is taken back in the end. Others cannot write
        meanwhile, so what the block is given is to be called between two steps: when they have waited for long, it
        takes back what was done until then. A deletion is counted rather than done where that would take long."""

    def failed_children(self, job_id: int, *, after: int = 0, limit: int = 50) -> list[int]:
        """The children because of which a job failed, or will, that are to be retried in its place; by id."""

    def trees(self, *, before: int = 0, limit: int = 100) -> list[int]:
        """Jobs at the top that have children, the newest first, from below ``before`` (0: from the last)."""

    def preview(self, order: Order, job_ids: Sequence[int]) -> Mapping[int, tuple[str, Sequence[str]]]:
        """For retry and rerun: the jobs that would go on because of it (those asked for, those retried in their
        place, and those above and behind that wait again), each with its type and the stages it would run."""

    def first_failure_us(self, root_id: int) -> int | None:
        """When the first of the jobs of a tree that stand failed settled; None: none has failed."""

    def names(self, kind: str, *, within: AccessScope | None = None) -> Collection[str]:
        """What a filter may say for ``queue``, ``node``, ``collection`` or ``submitter``: those that jobs bear, and
        queues that are declared. Reads all jobs: for a message to somebody whose filter found nothing. ``within``:
        queues and collections of these limits, and what the newest thousand jobs within bear."""


class Homes(Protocol):
    """Where jobs have their folders, in a store whose folders are local (``spinney.model.homes``).

    A job's home is where its last attempt that began ran. Only nodes there are given it; nothing takes a folder
    elsewhere. To let go of one means: where the job begins next, it finds an empty folder, at the stage where it
    stopped. No file is touched by it.
    """

    def all(self) -> Sequence[Home]:
        """Every folder root that a node has joined with; none where folders are shared."""

    def of(self, job_id: int) -> Home | None:
        """Where its folder is, or where it is at work. None: nowhere yet, or where those of all are. Raises
        NoSuchJob."""

    def elsewhere(self, job_ids: Sequence[int], mark: str) -> Sequence[int]:
        """Of these jobs those whose folder is in another root than the one with this mark. Reads."""

    def waiting(self, home_id: int, *, most: int) -> int:
        """How many jobs are claimable, but only there; counts no further than ``most``."""

    def let_go_of_job(self, job_id: int, actor: Actor, *, now_us: int) -> Home:
        """Bind a job to no home any more; returns the one it had. Raises NoSuchJob, Refused (it has none, it is at
        work, folders are shared)."""

    def let_go(self, home_id: int, actor: Actor, *, now_us: int) -> Home:
        """The same for all that have their folders in this home, at once; its deleted jobs' folders are forgotten.
        When a node joins with that root again, what has not begun elsewhere is its own again. Raises Refused (a node
        is there, somebody has done it already, folders are shared)."""


class Fetches(Protocol):
    """Pieces of files in job folders that are on another host, asked of the nodes there through the store.

    Few and small: who asks waits for the answer, which is taken away when he has it; what nobody took goes by itself.
    """

    def ask(self, job_id: int, path: str, *, start: int = 0, length: int, now_us: int) -> int:
        """Ask for a piece of a file, by its path within the job's folder, or (``length`` 0) for the names in a
        directory, from the ``start``-th on; returns the question's number. Raises NoSuchJob, Refused (no node is
        where its folder is, or it has none; too many ask already)."""

    def due(self, home_id: int) -> Sequence[Fetch]:
        """Questions to the nodes of a home that nobody has answered yet."""

    def answer(self, fetch_id: int, found: FetchResult) -> None:
        """What was found. Of two answers the first counts; one to a question that is gone is forgotten."""

    def take(self, fetch_id: int) -> FetchResult | None:
        """The answer, once; None: there is none yet. Raises Refused when the question is gone."""

    def drop(self, fetch_id: int) -> None:
        """Nobody waits for it any more."""

    def expire(self, tx: Any, now_us: int) -> None:
        """In the caller's transaction: remove questions and answers that nobody waits for any more."""


class Failures(Protocol):
    """Failed jobs, grouped by their cause."""

    def groups(
        self,
        *,
        type_: str | None = None,
        limit: int = 100,
        within: AccessScope | None = None,
        root_id: int | None = None,
    ) -> FailureGroups:
        """The groups that have jobs now, the largest first, and how many there are in all (of a type). ``within``:
        of the jobs within these limits alone, ``root_id``: of one tree; they were seen first and last when such jobs
        failed."""

    def find(self, beginning: str, *, within: AccessScope | None = None) -> str:
        """The one fingerprint that begins so and has jobs (``within`` these limits). Raises Refused when there is none
        or more than one, UsageError when no fingerprint can begin so."""

    def of(self, job_ids: Sequence[int]) -> Mapping[int, Cause]:
        """Why these jobs stand failed: those of them that do, by an attempt of their own."""


class Fleet(Protocol):
    """Nodes, and what operators want of them: by name, so that it outlasts restarts. From the moment a verb returns
    nothing is claimed against it; the node itself hears of it within two seconds."""

    def all(self, *, now_us: int) -> Sequence[NodeStatus]:
        """Nodes that have not left, and those that left still owning leases, by the order in which they joined."""

    def orders(self, name: str) -> NodeOrders:
        """What is wanted of the nodes of a name."""

    def drain(self, name: str, actor: Actor, *, now_us: int) -> NodeOrders:
        """Let it take nothing new: what runs finishes, what has not begun goes back, the node stays. Asked again it
        gets the new reason. Raises Refused when no node of this name has ever joined."""

    def resume(self, name: str, actor: Actor, *, now_us: int) -> NodeOrders:
        """Let it go on. Raises Refused when it is not drained, or nobody knows the name."""

    def set_slots(self, name: str, slots: int | None, actor: Actor, *, now_us: int) -> NodeOrders:
        """So many slots for the name, over all its incarnations; None: as each was started. While more than that
        are occupied nothing is claimed. Raises Refused (nobody knows the name), UsageError (no such number)."""


class Locks(Protocol):
    """Locks, seen from outside."""

    def all(
        self, *, after: str = "", limit: int = 1000, within: AccessScope | None = None
    ) -> Sequence[LockInfo]:
        """Those held or waited for, by name: of so many names from behind ``after`` all lines. ``within``: those that
        a job within these limits has or waits for, and of those that wait such jobs alone are counted."""

    def of(self, name: str, *, within: AccessScope | None = None) -> Sequence[LockInfo]:
        """The lines of one lock; none when nobody (``within``) has it and nobody waits for it."""

    def free(self, name: str, actor: Actor, *, job_id: int | None = None, now_us: int) -> int:
        """Take a lock away from its owners (or from one); how many lost it. The next that waits goes on,
        although the old owner may still be at work: the operator has judged that it is not. The old owner's
        lease stays, but it no longer has the lock. Raises Refused when nobody (or not this job) has it."""

    def capacities(self) -> Sequence[CapacityInfo]:
        """What operators set and applications declare, by name."""

    def capacity(self, name: str, given: int | None = None) -> int:
        """How much there is of a lock: an operator's word, else what its taker gives, else an application's, else 1.
        Of several words of one party the one with the longest name counts."""

    def set_capacity(self, name: str, capacity: int | None, actor: Actor, *, now_us: int) -> int:
        """Set how much there is of a lock, or of each of a family (``download:*``); None: take back what was set. How
        much is in force then.

        More: who waits goes on. Less than is held: nothing is taken away, and nothing more is granted. What changes
        nothing is not in the audit. Raises BadName, UsageError (no such capacity), Refused (nothing was set)."""


class Queues(Protocol):
    """Queues: what operators set wins over what is declared, at once and for all nodes.

    Every claim goes by what is in force when it is made; what a node was given before is run. Where a limit was
    lowered, occupied slots become fewer as runs end, and no more are given before they have.
    """

    def all(self, *, within: AccessScope | None = None) -> Sequence[QueueInfo]:
        """Those that somebody declared, set or named, by name. ``within``: those of these limits, with counts and
        types of what lies within."""

    def of(self, name: str, *, within: AccessScope | None = None) -> QueueInfo:
        """One of them. Raises UsageError for a queue that nobody has named."""

    def in_force(self, name: str) -> QueueSpec:
        """What holds for a queue now, whether anybody has named it or not."""

    def change(self, name: str, change: QueueChange, actor: Actor, *, now_us: int) -> QueueInfo:
        """Set it otherwise; how it stands then. What changes nothing is not in the audit.

        Raises UsageError (a queue that nobody has named, a limit, a node's name), UnknownType, Refused (to be
        unpinned from, or unbarred for, a node that it is not).
        """

    def create(self, spec: QueueSpec, actor: Actor, *, now_us: int) -> QueueInfo:
        """Declare one, as an application would; an application that declares it, too, has the last word.

        Raises Refused (it is declared or set already, or jobs stand in it in another order), UnknownType.
        """

    def delete(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Take back what is declared and set of it. One that a job type or a settled job names goes on to be a queue
        of which nothing is said, once it is named again; an application that declares it brings it back when it starts.

        Raises UsageError (a queue that nobody has named), Refused (jobs stand in it, a schedule makes jobs there, or a
        job type of a node that has not left names it).
        """


class Schedules(Protocol):
    """Schedules and their times."""

    def put(self, schedule: Schedule, actor: Actor, *, replace: bool = True, now_us: int) -> Schedule:
        """Make or replace one. One that is replaced keeps its next time where its cron expression, interval and
        zone stay what they were, else begins anew from now; and it stays paused if it was.

        Raises UsageError (cron, zone), UnknownType, BadParameters (a lock's field is missing; the others were
        checked before), Refused when it is there and not to be replaced.
        """

    def declare(self, schedules: Iterable[Schedule], actor: Actor, *, now_us: int) -> Sequence[str]:
        """Put those that an application declares, where they are new or differ from what was declared before.
        One that a person made or replaced stays as it is; the names of these, where they differ, are returned.
        Raises what ``put`` raises."""

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Schedule:
        """Let it rest, or go on: then the times that passed meanwhile are caught up with by its policy.
        Raises Refused when there is none."""

    def drop(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove it and what is remembered of its times; jobs it made stay. Raises Refused when there is none.
        In steps, of which the last removes it: one that was cut off is asked for again."""

    def run(self, name: str, actor: Actor, *, now_us: int) -> int:
        """Make one job now, apart from its nominal times; returns the job. Raises Refused when its last job is
        open and its jobs must not overlap, and what ``submit`` raises."""

    def all(self) -> Sequence[Schedule]:
        """By name."""

    def runs(self, name: str, *, limit: int = 20) -> Sequence[ScheduleRun]:
        """Its latest times, newest first. Some thousand are remembered, and all that still wait."""

    def tick(self, *, now_us: int) -> bool:
        """Make the jobs of one schedule that is due: one job a nominal time, in one transaction with the
        schedule's next time, so that any number of nodes may call. Whether another may be due.

        Raises UsageError when its times cannot be told on this host (its zone is not known here); that schedule
        is left to others for a minute, so that those behind it are not kept waiting.
        """


class Audit(Protocol):
    """Append-only; see ``spinney.model.audits``."""

    def enter(self, verb: str, what: Mapping[str, Any], actor: Actor, *, count: int = 0, now_us: int) -> None:
        """Enter what changed nothing in the store, and has to be known: a refusal. (Verbs enter what they do
        themselves.) Who can be made to call it any number of times puts entries together before
        (``control.refusals``): none is ever removed."""

    def entries(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        newest: bool = False,
        verb: str | None = None,
        by: str | None = None,
    ) -> Sequence[tuple[AuditEntry, str]]:
        """Entries with their links, by number, from behind ``after``; ``newest``: the other way, from below
        ``after`` (0: from the last). ``verb``, ``by``: only such."""

    def calls(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        newest: bool = False,
        verb: str | None = None,
        by: str | None = None,
    ) -> Sequence[AuditCall]:
        """The same with the steps of each call put together, by the number of their first entry."""

    def head(self) -> str:
        """``seq:link`` of the last entry, ``0:000…`` when there is none."""

    def verify(self, head: str | None = None) -> int:
        """Recompute the whole chain; returns how many entries are proven.

        Raises AuditBroken with the first entry that does not fit, or when ``head`` is not in the chain.
        """


class Accounts(Protocol):
    """Users and tokens. Names and rights are checked before; passwords come as their hashes, secrets as their
    digests (``spinney.model.rights.accounts``). What changes nothing is not in the audit, and no secret ever is."""

    def users(self) -> Sequence[User]:
        """All, by name."""

    def user(self, name: str) -> User:
        """One of them. Raises NoSuch."""

    def any_user(self) -> bool:
        """Whether there is one, disabled or not."""

    def add(self, name: str, rights: Rights, password: str | None, actor: Actor, *, now_us: int) -> User:
        """Make a user; without a password somebody else (a proxy) has to say who it is. Raises Refused (the name is
        taken)."""

    def change(self, name: str, rights: Rights, actor: Actor, *, now_us: int) -> User:
        """Give other rights, from the next request on, to tokens too. Raises NoSuch, Refused (the only admin without
        limits)."""

    def disable(self, name: str, actor: Actor, *, disabled: bool, now_us: int) -> User:
        """Let nobody in by this name, or again. Ends sessions and voids links; tokens open nothing meanwhile.
        Raises NoSuch, Refused (the only admin without limits)."""

    def delete(self, name: str, actor: Actor, *, now_us: int) -> None:
        """The same for good; revokes tokens. Raises NoSuch, Refused (the only admin without limits)."""

    def password(self, name: str) -> tuple[User, str | None] | None:
        """A user with the hash of the password; None: there is none of that name."""

    def set_password(
        self, name: str, password: str | None, actor: Actor, *, proof: str | None = None, now_us: int
    ) -> User:
        """Another password (None: none); ends sessions and voids links. ``proof``: the hash of the one that was
        verified before. Raises NoSuch, BadLogin (it is another by now)."""

    def rehash(self, name: str, before: str, after: str) -> None:
        """The same password, hashed better. Nothing where it has been changed meanwhile."""

    def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """All, by owner and name, those of some time ago that are void too; of one owner (empty: machines')."""

    def token(self, token_id: str) -> Token:
        """One of them. Raises NoSuch."""

    def make_token(self, token: Token, digest: str, actor: Actor, *, now_us: int) -> Token:
        """Make it good. Raises NoSuch (the owner), Refused (the owner is disabled, or has one of that name)."""

    def revoke(self, token_id: str, actor: Actor, *, now_us: int) -> Token:
        """Make it void for good. Raises NoSuch."""

    def known(self, token_id: str, digest: str, *, now_us: int) -> Identity | None:
        """Whose secret it is, with the rights in force; None: nobody's, or void. Enters, to the minute, that it was
        used, which a loss of power may undo."""


class SignIn(Protocol):
    """How people get in: sessions, links, and what slows those who guess. All by digests."""

    def attempt(self, limits: Sequence[LoginLimit], *, now_us: int) -> LoginAttempt:
        """Before a password is looked at: count a failure under each limit, for a day. When as many as are free have
        failed under one of them, the next attempt is answered only after 1 s, then 2, 4, … 300. Raises
        TooManyAttempts, and counts nothing."""

    def take_back(self, attempt: LoginAttempt) -> None:
        """Take back the failures that were counted for an attempt that succeeded and opens no session."""

    def open(
        self,
        name: str,
        digest: str,
        actor: Actor,
        *,
        proof: str | None = None,
        attempt: LoginAttempt | None = None,
        idle_us: int,
        lasts_us: int,
        address: str | None = None,
        agent: str | None = None,
        now_us: int,
    ) -> Session:
        """Open a session, and take the attempt back. ``proof``: the hash that was verified; None: somebody else has
        verified who it is. It ends after ``lasts_us``, or ``idle_us`` after it was seen last. Raises BadLogin where
        the password is another by now, or the user is gone or disabled."""

    def known(self, digest: str, *, used: bool = True, now_us: int) -> Identity | None:
        """Whose session it is, with the rights in force; None: it has ended, or the user is disabled. Where it is
        ``used``, enters, to the minute, that it was seen, which a loss of power may undo."""

    def close(self, digest: str, actor: Actor, *, now_us: int) -> bool:
        """End it; False: there was none."""

    def sessions(self, user: str, *, now_us: int) -> Sequence[Session]:
        """A user's, oldest first. Raises NoSuch."""

    def end(self, user: str, actor: Actor, *, now_us: int) -> int:
        """End all of a user's; how many. Raises NoSuch."""

    def invite(self, user: str | None, digest: str, actor: Actor, *, lasts_us: int, now_us: int) -> Link:
        """A secret that sets this user's password, once (None: makes the first admin); voids the one before. The first
        admin's ends no later than the first of its kind, and none is made after that. Raises NoSuch, Refused (disabled;
        None where there is any user, or where such a link has expired)."""

    def link(self, digest: str, *, now_us: int) -> Link | None:
        """What it is good for now; None: for nothing."""

    def accept(self, digest: str, name: str, password: str, actor: Actor, *, now_us: int) -> User:
        """Use a link up. ``name``: of the first admin. Of two who do so at once one succeeds. Raises BadLogin."""

    def secret(self, name: str, *, now_us: int) -> bytes:
        """32 random bytes, the same for all who ask of this store at any time. Not among its ``facts``."""

    def expire(self, tx: Any, now_us: int, limit: int = 500) -> None:
        """In the caller's transaction: remove a bounded number of sessions, links and tokens whose time is over."""


class Retention(Protocol):
    """How long settled jobs are kept; see ``spinney.model.settings.retention`` for whose word counts."""

    def set(
        self, type_: str, state: str, keep_s: float | None, actor: Actor, *, now_us: int
    ) -> RetentionRule:
        """Keep jobs of this type (``*``: of all) so long after they settled so (None: for ever). For those that
        an operator deleted: their tombstones. Raises UnknownType, UsageError (the state, the time)."""

    def unset(self, type_: str, state: str, actor: Actor, *, now_us: int) -> bool:
        """Take back what was set, so that the type's own word counts again; False when nothing was."""

    def all(self) -> Sequence[RetentionRule]:
        """What operators set, and what types declare."""

    def sweep(
        self, after: int, actor: Actor, *, now_us: int, limit: int = 1_000
    ) -> tuple[Sequence[int], int | None]:
        """One bounded step of a walk over all jobs from behind ``after`` (0: from the first).

        Either it looks at the next ``limit`` jobs, or it removes some of a tree that was found before: one whose
        top settled long enough ago, and in which nothing is open. Rows go for good; ``deleted_folders`` tells
        the folders until they are gone. Returns the jobs whose rows it removed, and where to go on (None: the
        walk is through). Anybody may walk at any time, several at once, and leave off anywhere."""


class Checker(Protocol):
    """Who knows invariants: the store of its database, others of what lies outside."""

    def checks(self) -> Sequence[Check]:
        """What it knows, in the order in which it looks."""

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        """Look at everything (or by these rules alone), and tell what must not be, as it is found.

        Each violation is judged within one snapshot, and none is held for longer than some thousand rows take, so
        that it may be asked of a store at work, of any size. ``deep``: also what takes long.
        """

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        """Mend one, if it is still there; whether something was changed. Raises SpinneyError when it cannot be
        mended as things are."""


class Doctor(Checker, Protocol):
    """Every invariant that the database can show."""

    def noted(self, violation: Violation, actor: Actor, *, now_us: int) -> None:
        """Enter into the audit that somebody repairs this, which lies outside of the database."""

    def declare_dead(self, name: str, actor: Actor, *, now_us: int) -> Sequence[NodeInfo]:
        """An operator knows that the nodes of this name are dead: from now on they may not claim. Returns them, to
        be recovered (``Store.recover``). Raises Refused when one has beaten lately, or none is there."""

    def standing(self, job_ids: Sequence[int]) -> Mapping[int, tuple[str | None, int | None]]:
        """Of these jobs those that are known: their state (None: retention has removed the job), and since when
        their folder is to be removed (None: it is not)."""


class Webhooks(Protocol):
    """Who is told when jobs settle. The transaction that settles a job writes what each webhook is to be told of it:
    so nothing is told of what did not happen, and nothing that happened is forgotten. What is told to nobody costs
    nothing. Reopened and settled again, a job is told of again, as a delivery of its own.

    A webhook has the rights that its maker (``Actor.account``) has when it is sent something. Where they are no
    operator's any more it is paused.

    A webhook and a delivery that are not there raise NoSuch.
    """

    def add(self, webhook: Webhook, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Tell it from now on. Raises Refused for a name that is taken."""

    def all(self, *, now_us: int) -> Sequence[Webhook]:
        """By name. One whose maker may not have it any more is shown as paused, although nothing was due since."""

    def of(self, name: str) -> Webhook:
        """This one."""

    def change(self, name: str, change: Mapping[str, Any], actor: Actor, *, now_us: int) -> Webhook:
        """Set these fields (``SETTABLE``) otherwise; how it is then. Raises UsageError, BadName, BadParameters. What
        it was to be told before, it is still told, at its new URL."""

    def rotate(self, name: str, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Sign with another secret from now on."""

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Webhook:
        """Send it nothing, or go on; what it is to be told meanwhile is kept, as deliveries are. Resumed, all that
        waited has a whole term again. The author's reason is shown. Where its maker may not have it any more, who
        resumes it becomes its maker."""

    def remove(self, name: str, actor: Actor, *, now_us: int) -> None:
        """It goes, and its deliveries with it, in steps."""

    def ping(self, name: str, actor: Actor, *, now_us: int) -> Delivery:
        """Send it a test, on the same way as everything else."""

    def deliveries(
        self, name: str, *, after: int = 0, limit: int = 100, outcome: DeliveryOutcome | None = None
    ) -> Sequence[Delivery]:
        """Newest first, from below the number ``after`` (0: from the last); those of the last 30 days."""

    def delivery(self, delivery: str) -> Delivery:
        """The one with this id."""

    def retry(self, delivery: str, actor: Actor, *, now_us: int) -> Delivery:
        """Send it at once, whatever came of it before; it has a whole term again."""

    def due(self) -> Mapping[str, int]:
        """When the next delivery of each webhook is due, for those that have one and are not paused."""

    def take(self, wanted: Mapping[str, int], *, now_us: int, until_us: int) -> Sequence[DueDelivery]:
        """Of these webhooks up to so many deliveries that are due: they are the caller's until ``until_us``, when
        they are due again unless he has ``told`` what came of them. Each counts as a try. One whose maker may not
        have it any more is paused instead, with the reason."""

    def told(self, due: DueDelivery, told: DeliveryResult, *, now_us: int) -> None:
        """What came of it. Passed over when somebody has taken it since, or it is there no more."""

    def forget(self, *, now_us: int) -> bool:
        """Remove deliveries older than 30 days, a bounded number; whether there may be more. ``Store.sweep`` does so,
        too."""

    def expire(self, tx: Any, now_us: int) -> bool:
        """In the caller's transaction: remove the oldest deliveries whose time is over, a bounded number. Whether
        there may be more."""


class Statistics(Protocol):
    """Figures for people."""

    def stats(self, *, window_s: float, now_us: int, within: AccessScope | None = None) -> Stats:
        """Queue depths, rates, times and slots, as of one snapshot. It reads; within 200 ms beside a million
        finished jobs. Counts are exact; rates are of the window (at most some minutes), times of a sample.

        ``within``: of what lies within these limits. Where they name collections rates and times are None, for what
        they are taken from does not know of which collection it was."""


class Explainer(Protocol):
    """Why a job is not running."""

    def explain(self, job_id: int, *, now_us: int) -> Explanation:
        """One exact sentence, as of one snapshot. Raises NoSuchJob."""


class ExternalWorkers(Protocol):
    """Who runs external stages and is no node. Each is a node to everything else: ``Store.beat``, ``flush_and_claim``,
    ``recover`` take its id."""

    def all(self) -> Sequence[ExternalWorker]:
        """Those that have not left."""

    def named(self, name: str) -> ExternalWorker | None:
        """The external worker of that name, whoever's it is, also when it has left."""

    def join(
        self, external_worker: ExternalWorker, actor: Actor, *, version: str, now_us: int
    ) -> ExternalWorker:
        """Enter an external worker (its id and ``join_count`` are ignored), in the place of one of its name that has
        left.

        Raises Refused (one of its name is there, or is still being taken back; the folders of the store are local),
        UnknownType, UsageError (a stage that is not external)."""

    def find(self, node_id: int, join_count: int, owner: str) -> ExternalWorker:
        """An external worker for who speaks for it. Raises NoSuchExternalWorker (also where it is another's),
        ExternalWorkerGone (it has joined again since). One that has left is found."""

    def given(self, node_id: int) -> Sequence[ExternalLease]:
        """Its leases, in the order of their fences."""

    def expire(self, node_id: int, beat: int, *, now_us: int) -> bool:
        """An external worker has been silent for too long: let it have left, unless its counter has moved from
        ``beat``. Whether it has left; what it had is to be recovered then."""

    def left(self, external_worker: ExternalWorker, actor: Actor, *, now_us: int) -> None:
        """An external worker leaves; what it had is to be recovered."""


Facts = Mapping[str, Any]
