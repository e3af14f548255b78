"""Merritt's ingest queue as the other side of a bridge: its jobs become objects of ``spinney ingest``.

The bridge (``spinney.bridges.bridge``) calls this consumer in rounds, from one thread: ``begin`` at the start
and after an outage, then ``tend``, ``claim``, ``report`` and ``wishes`` again and again. A round reads lists
of the queue only when a watch of ZooKeeper has fired, or when ``poll`` seconds have passed, since watches may
be lost with a session. Errors of the connection become ForeignAway, on which the bridge waits; an error of
one item is logged, and that item is left as it is.
"""

import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from spinney.apps.ingest.merritt import orders, progress
from spinney.apps.ingest.merritt.access import AccessWork
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.apps.ingest.merritt.marks import Mark, Marks, Phase, new_claim
from spinney.apps.ingest.merritt.mirror import Mirror
from spinney.apps.ingest.merritt.ownership import ENDED, Ownership
from spinney.apps.ingest.merritt.passed_over import PassedOver
from spinney.apps.ingest.merritt.settings import Settings
from spinney.apps.ingest.merritt.watched_lists import WatchedLists
from spinney.bridges.foreign import Claim, ClaimLost, ForeignAway, Order, Report, Wish, compared
from spinney.bridges.merritt import (
    STEPS,
    Head,
    Job,
    JobState,
    MerrittCommitUncertain,
    MerrittConflict,
    MerrittError,
    MerrittLocked,
    MerrittNodeTooLarge,
    MerrittQueue,
    MerrittStateError,
    MerrittZKNodeInvalid,
)
from spinney.bridges.merritt.layout import ACCESS, ACCESS_QUEUES, BATCHES, job_states_path
from spinney.errors import UsageError
from spinney.jobs import SETTLED, State
from spinney.jobs import Job as SpinneyJob

log = logging.getLogger("spinney.bridges.merritt")

TYPE = "ingest.object"
"""The job type of a claim, whatever it deposits."""
MOST_PARKED = 1_000
"""How many jobs may be with Merritt's services before no new ones are taken."""
_AWAY = "ZooKeeper does not answer; start it, or repair the network. The bridge connects again by itself"
_ACCESS_PATHS = [f"{ACCESS}/{queue}" for queue in ACCESS_QUEUES]


@dataclass
class MerrittConsumer:
    """One consumer of Merritt's queue (``spinney.bridges.foreign.Foreign``)."""

    client: KazooClient
    database: str
    """The identity of the ZooKeeper tree (``marks.identity``)."""
    node: str
    """The name of this consumer, which is unique in the tree (``marks.Marks.enter``)."""
    settings: Settings
    collection_of: Callable[[str], str]
    """Returns the collection of a profile; raises UsageError."""
    access: AccessWork
    mirror: Mirror
    system: str = field(default="merritt", init=False)
    _session: object = field(default=None, init=False)
    """The id of the session in which the locks were taken; another one means that they are gone."""

    def __post_init__(self) -> None:
        self.name = f"merritt:{self.database}:{self.node}"
        self.queue = MerrittQueue(self.client, self.name)
        self._passes_over = PassedOver(self.name)
        self._marks = Marks(self.client, self.node)
        self._owned = Ownership(self.client, self.queue, self._marks, self.name, self.settings.states)
        self._batches = BatchWork(self.client, self.queue, self.name, self.settings.queue)
        # The lists of jobs to take.
        self._job_lists = WatchedLists(self.client, self.settings.poll)
        # The lists of batches, of their jobs, and of requests for access.
        self._batch_lists = WatchedLists(self.client, self.settings.poll)

    @property
    def parked(self) -> int:
        """How many jobs of this consumer are with Merritt's services, at most ``MOST_PARKED``; from that number on no
        new ones are taken."""
        return min(MOST_PARKED, self._owned.away())

    def begin(self, mark: str, *, linked: bool) -> None:
        """Create the queue's own nodes where they are missing, and enter this node.

        Called at the start, and again when ZooKeeper was away; nothing is taken yet. Raises ForeignAway where
        ZooKeeper does not answer, or another store works under this name.
        """
        with self._reached():
            self.queue.initialize()
            self._marks.enter(mark)
            self._marks.announce()
            self._job_lists.note_change()
            self._batch_lists.note_change()

    def tend(self) -> None:
        """Create the jobs of pending batches, report those that have ended, and have packages made; nothing
        of a queue that is locked.

        This is the work beside jobs, in each round. What is done of it is ``settings.work``. Packages that
        are ready are answered in every round, the rest only when a list has changed or ``poll`` has passed.
        """
        with self._reached():
            self._marks.announce()
            self.access.answer()
        if not self._batch_lists.is_due():
            return
        with self._reached():
            self._batch_lists.watch([BATCHES, *_ACCESS_PATHS])
            batches = self._batches.open_paths()
            if "access" in self.settings.work:
                self.access.take()
            if self.settings.mirror:
                self.mirror.write()
            is_locked = self.queue.locks.queue_is_locked("ingest")
            if "batches" in self.settings.work and not is_locked:
                self._batches.read_pending(batches)
            # Behind the new jobs, whose lists are watched, too, and before the lists are read for reports.
            self._batch_lists.watch(self.queue.batches.open_jobs_paths(batches))
            if "reports" in self.settings.work and not is_locked:
                self._batches.report_ended(batches)

    # --- claims -------------------------------------------------------------------------------

    def claimed(self, linked: Container[tuple[str, str]] = ()) -> Iterable[Claim]:
        """Return the claims of the jobs that are ours, with their locks taken again where the session was
        another one.

        ``linked``: entries and claims whose job here exists, so that their parameters need not be read. A job
        that another consumer has taken, or that has ended there, is let go with a warning and left out. A job
        that was cancelled here while others worked on it is failed there as soon as it is back.
        """
        claims = []
        with self._reached():
            marks = self._marks.jobs()
            unchanged = self._owned.unchanged(
                {job_id: mark for job_id, mark in marks.items() if (job_id, mark.claim) in linked}
            )
            for job_id, mark in marks.items():
                if mark.phase is Phase.CANCELLED:
                    self._owned.fail_if_back(job_id, mark)
                    continue
                try:
                    job = None if job_id in unchanged else self._owned.load(job_id, mark.claim)
                    if job is None or (job_id, mark.claim) in linked:
                        claims.append(Claim(entry=job_id, claim=mark.claim, type=TYPE, params={}))
                    else:
                        claims.append(self._claim_of(job, mark.claim))
                except ClaimLost as lost:
                    log.warning("%s: job %s is not ours any more: %s", self.name, job_id, lost)
                    self._owned.let_go(job_id)
                except Exception as error:  # one odd job must not stop the others
                    if not self._passes_over(f"job {job_id}", error):
                        raise
        return claims

    def claim(self, room: int) -> Sequence[Claim]:
        """Take up to ``room`` jobs, and return their claims: in the order of their priorities within a state,
        and those in the latest state first, since they occupy space already.

        Each is locked and marked on return. Nothing is taken while operators have locked the queue
        ``ingest``; a pending job of a locked collection becomes Held. The result is empty when nothing has
        changed since the last look.
        """
        if "jobs" not in self.settings.work or not self._job_lists.is_due():
            return ()
        claims: list[Claim] = []
        with self._reached():
            self._job_lists.watch(map(job_states_path, self.settings.states))
            if self.queue.locks.queue_is_locked("ingest"):
                return ()
            locked_collections = set(self.queue.locks.locked_collections())
            nodes = self._marks.live_nodes()
            for state in sorted(self.settings.states, key=STEPS.index, reverse=True):
                for job_id in self.queue.jobs.ids(state):
                    if len(claims) >= room:
                        self._job_lists.note_change()  # there is more, for when there is room
                        return claims
                    if job_id in self._owned:
                        continue
                    if (claim := self._take(job_id, state, locked_collections, nodes)) is not None:
                        claims.append(claim)
        return claims

    def _take(
        self, job_id: str, state: JobState, locked_collections: set[str], nodes: Collection[str]
    ) -> Claim | None:
        """Lock a job and mark it; return None where another consumer has it, or it must be held. ``nodes``: the live
        ones, for which a job in Notify is reserved by its mark."""
        try:
            job = self.queue.jobs.load(job_id)
            if job.state is not state:
                return None
            if state is JobState.NOTIFY and self._marks.is_marked(job_id, nodes):
                return None
            profile = orders.profile_of(job.configuration)
            if locked_collections & {profile, self._collection(profile)}:
                if state is JobState.PENDING:
                    self.queue.jobs.set_status(job, JobState.HELD, message="its collection is locked")
                return None
            try:
                claim = self._claim_of(job, new_claim(job))
            except UsageError as error:
                # Under its lock: one that others have, such as an object of a mirrored batch, is left to them.
                self._owned.fail(self._owned.lock(job), str(error))
                return None
            self._owned.take(job, claim.claim)
        except (MerrittLocked, MerrittConflict, MerrittStateError):
            return None  # another consumer was first
        except Exception as error:  # one odd job must not stop the others
            if not self._passes_over(f"job {job_id}", error):
                raise
            return None
        return claim

    def _collection(self, profile: str) -> str:
        """Return the collection of a profile; the profile's own name where it cannot be read."""
        try:
            return self.collection_of(profile)
        except UsageError:
            return profile  # the job fails by it, with a sentence

    def _claim_of(self, job: Job, claim: str) -> Claim:
        """Return the claim of a job. Raises UsageError for one that describes no object, and MerrittZKNodeInvalid where
        its batch cannot be read."""
        bid = orders.bid_of(self.queue.batches.load(job.bid))
        order = orders.object_order(job, bid, self.settings)
        collection = self.collection_of(order.profile)
        return Claim(
            entry=job.id,
            claim=claim,
            type=TYPE,
            params={"order": order.model_dump(mode="json", exclude_defaults=True)},
            options={
                "priority": job.priority,
                "collection": collection,
                "data": {"merritt": {"job": job.id, "batch": job.bid}},
            },
        )

    def reject(self, claim: Claim, reason: str) -> None:
        """Fail a job of which no object can be made, for this reason. A job that is not ours any more is only
        forgotten."""
        with self._reached():
            try:
                self._owned.fail(self._owned.load(claim.entry, claim.claim), reason)
            except ClaimLost:
                self._owned.let_go(claim.entry)

    # --- reports about jobs -------------------------------------------------------------------

    def report(self, reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        """Write states and results of jobs to Merritt's queue, one transition after the other.

        Returns why a job was lost, by its entry; such a job is forgotten here, and the bridge cancels its
        job. The other reports are complete on return. Raises ForeignAway in the middle where the connection
        is lost; a report that is repeated continues behind the transitions that were made.
        """
        lost = {}
        with self._reached():
            for report in reports:
                try:
                    self._report(report)
                except ClaimLost as error:
                    lost[report.entry] = error
                    self._owned.let_go(report.entry)
        return lost

    def _report(self, report: Report) -> None:
        """Write one report. Raises ClaimLost where the job is not ours, or cannot enter the states.

        A state whose work Merritt's services do is entered in the transaction that unlocks the job and marks
        it as away, so that there is no moment at which it belongs to both or to none.
        """
        job = self._owned.load(report.entry, report.claim)
        has_ended = report.job is None or report.job.state in SETTLED
        if job.lock is None:  # others work at it
            self._report_away(job.id, report)
            return
        try:
            if report.job is not None:
                write = partial(self._batches.write_beside, job.bid)
                job = progress.write_parts(self.queue, job, report.results(), self.settings.server, write)
            away = Mark(report.claim, Phase.AWAY)
            states = progress.steps(job.state, report.job, self.settings.states)
            for state in states:
                is_left = state not in (*self.settings.states, *ENDED)
                estimated = report.job is not None and state is JobState.PROVISIONING
                job = self.queue.jobs.set_status(
                    job,
                    state,
                    message=progress.message(report.job) if state is states[-1] else "",
                    priority=report.job.priority if estimated and report.job else None,
                    unlock=is_left,
                    also=partial(self._marks.write_with, job_id=job.id, mark=away) if is_left else None,
                )
                self._owned.keep(job)
                if estimated:
                    self._owned.priorities[job.id] = job.priority
        except OSError as error:  # a disk that is full for a while must not fail what is stored
            raise ForeignAway(f"a file for job {job.id} cannot be written: {error}") from error
        except (MerrittNodeTooLarge, UsageError) as error:
            self._owned.fail(job, str(error))
            raise ClaimLost(str(error)) from error
        except MerrittStateError as error:
            raise ClaimLost(str(error)) from error
        except (MerrittLocked, MerrittConflict, MerrittZKNodeInvalid) as error:
            self._owned.lose(report.entry)
            raise ClaimLost(str(error)) from error
        self._owned.keep(job)
        if job.state in ENDED or has_ended:
            self._owned.let_go(job.id)

    def _report_away(self, job_id: str, report: Report) -> None:
        """Record what became here of a job that is with others: one that was cancelled fails when it comes back."""
        if report.job is not None and report.job.state is State.COMPLETED:
            self._owned.let_go(job_id)
        elif report.job is None or report.job.state in SETTLED:
            self._owned.cancel_away(job_id, report.claim, progress.message(report.job))
        else:  # also one that was cancelled and then retried
            self._marks.write(job_id, Mark(report.claim, Phase.AWAY))

    # --- orders of users, and checks ----------------------------------------------------------

    def wishes(self) -> Iterator[Wish]:
        """Yield what Merritt's operators and services want of our jobs: another priority, the end of a job that has
        failed, is held or was deleted there, or the release of one whose step by others has passed.

        All heads are read in one round. A release is yielded once the job is locked again. A priority is recorded as
        known only when the caller takes the next wish: where Spinney's store is away before that, the next call yields
        the wish again.
        """
        with self._reached():
            ids = self._owned.ids()
            for job_id, head in zip(ids, self.queue.jobs.heads(ids), strict=True):
                wish = self._wish_for(job_id, head)
                if wish is None:
                    continue
                yield wish
                if wish.priority is not None:
                    self._owned.priorities[job_id] = wish.priority

    def _wish_for(self, job_id: str, head: Head | None) -> Wish | None:
        """Return the wish for one of our jobs by its head; None: there is none. A job that others have unlocked after
        their step is locked again."""
        if head is None:
            return Wish(entry=job_id, order=Order.CANCEL, reason="deleted in Merritt's queue")
        if head.state in ENDED:
            return Wish(entry=job_id, order=Order.CANCEL, reason=f"{head.state} in Merritt's queue")
        if self._owned.is_handed_over(job_id):
            job = self._owned.take_back(job_id) if head.state in self.settings.states else None
            if job is None:
                return None
            return Wish(entry=job_id, order=Order.RELEASE, reason=f"{job.state} in Merritt's queue")
        if head.priority == self._owned.priorities[job_id]:
            return None
        reason = "changed in Merritt's queue"
        return Wish(entry=job_id, order=Order.PRIORITY, reason=reason, priority=head.priority)

    def differences(self, jobs: Mapping[str, SpinneyJob | None]) -> Iterator[tuple[str, str]]:
        """Compare the jobs that this consumer has taken in Merritt's queue with their jobs in Spinney. Yields an entry
        and a sentence for each difference.

        ``jobs``: the jobs here by their entries; None for one that does not exist. Nothing is changed.
        """
        with self._reached():
            ours = {entry for entry, mark in self._marks.jobs().items() if mark.phase is not Phase.CANCELLED}
        yield from compared(ours, jobs)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn errors of the connection into ForeignAway, and forget locks of a session that has ended.

        After an error it is unknown whether the last request was executed, so that the locks are forgotten as
        well, and read again when they are needed.
        """
        if not self.client.connected:
            raise ForeignAway(_AWAY)
        if self._session != self.client.client_id[0]:
            self._owned.forget_locks()
            self._session = self.client.client_id[0]
        try:
            yield
        except (KazooException, KazooTimeoutError, MerrittCommitUncertain) as error:
            self._owned.forget_locks()
            reason = f"ZooKeeper: {type(error).__name__}: {error}"[:300] if self.client.connected else _AWAY
            raise ForeignAway(reason) from error
        except MerrittError as error:
            raise ForeignAway(f"Merritt's queue: {error}"[:300]) from error
