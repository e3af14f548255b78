"""Which jobs of Merritt's queue are this node's, by their locks and their marks.

A job belongs to this node while both its lock and its mark do. The lock ends with the session, and the mark stays: so a
process that was killed takes its jobs up again, unless another consumer has taken them meanwhile. While a job is with
Merritt's services between two steps of this node, it has only the mark; its lock is taken again when it comes back."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kazoo.client import KazooClient

from spinney.apps.ingest.merritt.marks import Mark, Marks, Phase, release_own_lock
from spinney.bridges.foreign import ClaimLost
from spinney.bridges.merritt import (
    Head,
    Job,
    JobState,
    MerrittConflict,
    MerrittLocked,
    MerrittQueue,
    MerrittStateError,
    MerrittZKNodeInvalid,
)
from spinney.bridges.merritt.nodes import data_of, get_all

log = logging.getLogger("spinney.bridges.merritt")

ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.HELD, JobState.DELETED)


@dataclass
class Ownership:
    """The jobs of one node, and the locks that its session holds.

    Which locks are held is remembered and compared with ZooKeeper before it is relied on; marks are always
    read from there. Errors of the connection are raised as they are.
    """

    client: KazooClient
    queue: MerrittQueue
    marks: Marks
    owner: str
    """What the locks of this node say of their holder."""
    states: Sequence[JobState]
    """The states whose work is done here."""
    priorities: dict[str, int] = field(default_factory=dict, init=False)
    """The priorities of jobs, as both sides know them."""
    _held: dict[str, Job] = field(default_factory=dict, init=False)
    """The jobs whose locks this session holds, as they were last seen, by their ids."""
    _handed_over: set[str] = field(default_factory=set, init=False)
    """Jobs of this node in a state whose work Merritt's services do, and those that have come back from there."""

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._held or job_id in self._handed_over

    def ids(self) -> Sequence[str]:
        """Return the ids of the jobs that this process knows as its own."""
        return sorted({*self._held, *self._handed_over})

    def is_handed_over(self, job_id: str) -> bool:
        """Return whether a job of this node is with Merritt's services for a step, or was and has come back."""
        return job_id in self._handed_over

    def away(self) -> int:
        """Return how many jobs of this node are with Merritt's services."""
        return len(self._handed_over - self._held.keys())

    def forget_locks(self) -> None:
        """Forget which locks are held, after the session has ended or an answer was lost; they are read again."""
        self._held.clear()

    def take(self, job: Job, claim: str) -> None:
        """Lock a job and mark it as taken under this claim.

        The lock comes first, since a mark without a lock would reserve a job that another consumer works on.
        Raises MerrittLocked and MerrittConflict where another consumer was first.
        """
        job = self.lock(job)
        self.priorities[job.id] = job.priority
        self.marks.write(job.id, Mark(claim))

    def lock(self, job: Job) -> Job:
        """Lock a job, without a mark. Raises MerrittLocked and MerrittConflict where another consumer was first."""
        release_own_lock(self.client, job.lock_path, self.owner)
        self._held[job.id] = job = self.queue.jobs.lock(job)
        return job

    def unchanged(self, marks: Mapping[str, Mark]) -> Collection[str]:
        """Return which of the jobs with these marks are as this process knows them: locked by it in a state whose work
        is done here, or with Merritt's services in another one. They are read together; ``load`` takes up the others,
        or finds them lost."""
        locked, unchanged = self._still_locked(marks), set()
        for (job_id, mark), head in zip(marks.items(), self.queue.jobs.heads(list(marks)), strict=True):
            if head is None or is_ended(head, mark.claim):
                continue
            if head.state in self.states:
                is_unchanged = job_id in locked and not _is_away(mark)
            else:
                is_known = job_id in self._handed_over and job_id not in self._held
                is_unchanged = is_known and mark.phase is Phase.AWAY
            if is_unchanged:
                unchanged.add(job_id)
        return unchanged

    def load(self, job_id: str, claim: str) -> Job:
        """Return a job that is ours, with its lock unless it is with others (``lock`` is None then).

        A lock that this session does not hold is taken again; a job that has come back from others is marked
        so. Raises ClaimLost where the job is not ours any more: it is not marked with this claim, has ended
        or was deleted there, is in a state that is not ours, or another consumer has locked it.
        """
        mark = self.marks.read(job_id)
        if mark is None or mark.claim != claim:
            raise ClaimLost("it is not marked as taken by this node under this claim")
        is_away = _is_away(mark)
        try:
            job = self.queue.jobs.load(job_id)
            if is_ended(job, claim):
                raise ClaimLost(f"it is {job.state} in Merritt's queue")
            if mark.phase is not Phase.HERE:
                self._handed_over.add(job_id)
            if job.state not in self.states:
                if not is_away:  # the settings are others than when it was taken
                    release_own_lock(self.client, job.lock_path, self.owner)
                    raise ClaimLost(f"it is {job.state} in Merritt's queue, and that step is left to others")
                self._held.pop(job_id, None)
                return job
            if self._still_locked([job_id]):
                job = replace(job, lock=self._held[job_id].lock)
            else:
                release_own_lock(self.client, job.lock_path, self.owner)
                job = self.queue.jobs.lock(job)
            self._held[job_id] = job
            self.priorities.setdefault(job_id, job.priority)
            if is_away:
                self.marks.write(job_id, Mark(claim, Phase.BACK))
            return job
        except (MerrittLocked, MerrittConflict) as error:
            if is_away:
                return replace(job, lock=None)  # others have not let it go yet
            raise ClaimLost(str(error)) from error
        except MerrittZKNodeInvalid as error:
            raise ClaimLost(f"it was deleted in Merritt's queue: {error}") from error

    def _still_locked(self, ids: Iterable[str]) -> Collection[str]:
        """Return which of these jobs have locks that are still this session's, read in one round."""
        held = [self._held[job_id] for job_id in ids if job_id in self._held]
        nodes = get_all(self.client, [job.lock_path for job in held])
        return {
            job.id
            for job, node in zip(held, nodes, strict=True)
            if job.lock is not None and data_of(node) == job.lock.note
        }

    def keep(self, job: Job) -> None:
        """Remember a job of ours as it is after a change; one without a lock is with others from now on."""
        if job.lock is None:
            self._held.pop(job.id, None)
            self._handed_over.add(job.id)
        else:
            self._held[job.id] = job

    def lose(self, job_id: str) -> None:
        """Forget the lock of a job that another client has."""
        self._held.pop(job_id, None)

    def let_go(self, job_id: str) -> None:
        """Forget a job that has ended or is lost: release a lock that is still ours, then remove the mark.

        In this order, so that a crash in between leaves a mark that is examined again, and not a lock that
        nobody knows.
        """
        self.priorities.pop(job_id, None)
        self._handed_over.discard(job_id)
        if (job := self._held.pop(job_id, None)) is not None:
            self.queue.jobs.unlock(job)
        self.marks.remove(job_id)

    def fail(self, job: Job, reason: str) -> None:
        """Make a job Failed with this reason, and let it go. Another client may have it by now; then it is
        only let go."""
        try:
            self.queue.jobs.set_status(job, JobState.FAILED, message=reason, unlock=True)
        except (MerrittStateError, MerrittLocked, MerrittConflict, MerrittZKNodeInvalid) as error:
            log.warning("%s: job %s is not ours any more: %s", self.owner, job.id, error)
        self.let_go(job.id)

    # --- jobs that others work at -------------------------------------------------------------

    def cancel_away(self, job_id: str, claim: str, reason: str) -> None:
        """Record that a job which is with others was cancelled here, so that it fails when it comes back."""
        self._handed_over.discard(job_id)
        self.marks.write(job_id, Mark(claim, Phase.CANCELLED, reason))

    def fail_if_back(self, job_id: str, mark: Mark) -> None:
        """Fail a job that was cancelled here while others had it, as soon as it is in a state of ours again."""
        with suppress(MerrittLocked, MerrittConflict):  # others have not let it go yet
            try:
                job = self.queue.jobs.load(job_id)
                if not is_ended(job, mark.claim):
                    if job.state not in self.states:
                        return
                    release_own_lock(self.client, job.lock_path, self.owner)
                    self.queue.jobs.set_status(job, JobState.FAILED, message=mark.reason)
            except MerrittZKNodeInvalid as error:
                log.warning("%s: job %s was deleted in Merritt's queue: %s", self.owner, job_id, error)
            self.let_go(job_id)

    def take_back(self, job_id: str) -> Job | None:
        """Return a job, locked again, when others have done their step; None while they have not unlocked it,
        or it is lost."""
        mark = self.marks.read(job_id)
        with suppress(ClaimLost):
            if mark is not None and (job := self.load(job_id, mark.claim)).lock is not None:
                return job
        return None


def is_ended(job: Job | Head, claim: str) -> bool:
    """Return whether a job has ended in Merritt's queue, or was requeued since it was taken under this claim."""
    return job.state in ENDED or claim.partition(".")[0] != str(job.retry_count)


def _is_away(mark: Mark) -> bool:
    """Return whether others work on a job, whatever has become of it here."""
    return mark.phase in (Phase.AWAY, Phase.CANCELLED)
