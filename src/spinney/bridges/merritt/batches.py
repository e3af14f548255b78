"""Batches: what a depositor submitted at once, with a job for each of its objects."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from kazoo.client import KazooClient

from spinney.bridges.merritt import codec, layout
from spinney.bridges.merritt.codec import Fields
from spinney.bridges.merritt.errors import (
    MerrittConflict,
    MerrittLocked,
    MerrittNodeTooLarge,
    MerrittStateError,
    MerrittZKNodeInvalid,
)
from spinney.bridges.merritt.items import Item, Items, read_item, require_deletable, status_fields
from spinney.bridges.merritt.jobs import Jobs
from spinney.bridges.merritt.nodes import children, counts, data_of, get, get_all
from spinney.bridges.merritt.states import BatchState, JobState, require_transition
from spinney.bridges.merritt.transactions import Transaction, Witness, create_numbered, with_retries

log = logging.getLogger(__name__)
_OPEN_JOBS: Final = "states/batch-processing"
_MOST_OPERATIONS: Final = 4_000
"""The number of operations after which a transaction is committed; ZooKeeper refuses requests of more than 1 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Item):
    """A batch as it was when it was read; it does not follow later changes."""

    state: BatchState
    submission: dict[str, Any]
    """What the depositor submitted; ``batchID`` in it is the batch's uuid."""
    has_failure: bool
    """Whether one of its jobs is failed."""

    @property
    def uuid(self) -> str:
        """The name that ingest gave the batch, by which depositors know it; empty when it has none."""
        return str(self.submission.get("batchID") or "")

    @property
    def states_path(self) -> str:
        """The node with the lists of its jobs. It is made when a consumer takes the batch."""
        return f"{self.path}/states"


class Batches(Items[Batch]):
    """The batch queue: ``/batches`` and ``/batch-uuids``."""

    def __init__(self, client: KazooClient, owner: str) -> None:
        super().__init__(client, owner)
        self._jobs = Jobs(client, owner)
        self._unsettled = Counter[str]()
        """How often each batch was not reported because of a job that stands in a wrong list, by the batch's path."""

    def create(self, submission: Fields) -> Batch:
        """Create a batch in Pending, with all its nodes in one transaction.

        ``batchID`` in the submission is its uuid, by which it is found. Raises MerrittConflict where another batch has
        that uuid, MerrittZKNodeInvalid for a uuid that no node can have as its name, and MerrittNodeTooLarge for a
        submission that belongs into a file.
        """

        def write(transaction: Transaction, bid: str) -> Witness | None:
            return add_batch(
                self._client, transaction, bid, submission, status_fields({}, BatchState.PENDING)
            )

        return self.load(create_numbered(self._client, layout.BATCHES, "bid", write))

    def load(self, bid: str) -> Batch:
        """Return a batch. Raises MerrittZKNodeInvalid where a node is missing or cannot be read."""
        return self._read(f"{layout.BATCHES}/{bid}")

    def find_by_uuid(self, uuid: str) -> Batch | None:
        """Return the batch that ingest gave this uuid; None where there is none."""
        path = f"{layout.BATCH_UUIDS}/{uuid}"
        if not layout.is_name(uuid) or not self._client.retry(self._client.exists, path):
            return None
        return self.load(codec.read_text(get(self._client, path)[0]))

    def acquire_pending(self) -> Batch | None:
        """Lock the first pending batch that nobody holds and move it to Processing, in one transaction.

        A pending batch is one without the node ``states``. A batch in Processing without it is one whose consumer died
        before it created a job, and is taken again. Two clients never acquire the same batch.
        """
        return next(self.each_pending(), None)

    def each_pending(
        self,
        among: Sequence[str] | None = None,
        also: Callable[[Transaction, Batch], None] | None = None,
    ) -> Iterator[Batch]:
        """Acquire pending batches one after the other, each when it is fetched.

        ``among``: the paths of the batches that are looked at; without it all. ``also`` adds nodes of the caller's own
        to the transaction.
        """
        paths = [path for path, count in self._counted("states", among) if count is None]

        def claim(transaction: Transaction, batch: Batch) -> bytes | None:
            transaction.create(batch.states_path)
            if also is not None:
                also(transaction, batch)
            return self._moved(batch, BatchState.PROCESSING)

        return self._acquire(paths, claim, (BatchState.PENDING, BatchState.PROCESSING))

    def acquire_for_reporting(self) -> Batch | None:
        """Lock the first batch whose jobs are all done and move it to Reporting, in one transaction.

        Jobs that name the batch as theirs count too, where no list of it has them. A batch that is in Reporting and not
        locked is one whose reporter died, and is taken again.
        """
        return next(self.each_for_reporting(), None)

    def each_for_reporting(self, among: Sequence[str] | None = None) -> Iterator[Batch]:
        """Acquire batches whose jobs are all done one after the other, each when it is fetched. ``among``:
        the paths of the batches that are looked at; without it all."""
        paths = [path for path, count in self._counted(_OPEN_JOBS, among) if count == 0]
        job_ids = cache(self._jobs.ids)  # listed at the first claim

        def claim(transaction: Transaction, batch: Batch) -> bytes | None:
            self._require_settled(batch, job_ids())
            _require_no_open_jobs(transaction, batch)
            return self._moved(batch, BatchState.REPORTING)

        return self._acquire(paths, claim, (BatchState.PROCESSING, BatchState.REPORTING))

    def acquire_for_update_reporting(self) -> Batch | None:
        """Lock the first batch in UpdateReporting whose jobs are all done; its state stays.

        An operator moves a failed batch to UpdateReporting when its jobs have been requeued.
        """
        return next(self.each_for_update_reporting(), None)

    def each_for_update_reporting(self, among: Sequence[str] | None = None) -> Iterator[Batch]:
        """Acquire batches in UpdateReporting whose jobs are all done one after the other, each when it is
        fetched. ``among``: the paths of the batches that are looked at; without it all."""
        paths = [path for path, count in self._counted(_OPEN_JOBS, among) if not count]
        job_ids = cache(self._jobs.ids)

        def claim(transaction: Transaction, batch: Batch) -> None:
            self._require_settled(batch, job_ids())
            if self._exists(f"{batch.path}/{_OPEN_JOBS}"):
                _require_no_open_jobs(transaction, batch)

        return self._acquire(paths, claim, (BatchState.UPDATE_REPORTING,))

    def set_status(
        self, batch: Batch, state: BatchState, *, message: str = "", unlock: bool = False
    ) -> Batch:
        """Move a batch to another state and return it as it is then; to set the state that it has changes nothing.

        Raises MerrittStateError where the state may not follow, MerrittLocked where another client holds the lock or
        this one has lost it, and MerrittConflict where the batch was changed since it was read.
        """
        return self._set_state(batch, state, message, unlock)

    def finish_reporting(
        self,
        batch: Batch,
        failed_jobs: Iterable[Any],
        successful_jobs: Iterable[Any],
        *,
        store: Callable[[bytes], str] | None = None,
    ) -> Batch:
        """Record what was reported, move the batch to Failed or Completed by it, and release its lock, all at once.

        The report is what the depositor was told: any values that JSON has, mostly ids of jobs. One that is larger than
        a node may be is given to ``store``, which writes it to a file and returns its URL; the node then has that URL
        and the numbers of jobs. Raises MerrittNodeTooLarge where there is no ``store``.
        """
        report: dict[str, Any] = {"failed_jobs": list(failed_jobs), "successful_jobs": list(successful_jobs)}
        state = BatchState.FAILED if report["failed_jobs"] else BatchState.COMPLETED
        require_transition(batch.path, batch.state, state)
        path = f"{batch.path}/status-report"
        try:
            data = codec.object_bytes(path, report)
        except MerrittNodeTooLarge:
            if store is None:
                raise
            counts = {f"{name}_count": len(jobs) for name, jobs in report.items()}
            data = codec.object_bytes(path, {"url": store(json.dumps(report).encode()), **counts})

        def write(transaction: Transaction) -> None:
            if self._exists(path):
                transaction.set(path, data)
            else:
                transaction.create(path, data)

        return self._change(batch, status_fields(batch.status, state), write, unlock=batch.lock is not None)

    def report(self, batch: Batch) -> dict[str, Any]:
        """Return what the depositor was told last; nothing before the first report."""
        path = f"{batch.path}/status-report"
        return codec.read_object(path, data_of(get_all(self._client, [path])[0]))

    def delete(self, batch: Batch) -> None:
        """Delete a batch that is Completed or Deleted, with its uuid and its jobs.

        Failed and held jobs are deleted only with a batch that is Deleted. A batch of so many jobs that one transaction
        cannot take them loses them in several first, each whole; where that is cut off, it is repeated.

        Raises MerrittStateError where the batch or one of its jobs is still needed.
        """

        require_deletable(batch)

        def attempt() -> None:
            transaction = Transaction(self._client)
            for job_id in (job_id for ids in self.jobs(batch).values() for job_id in ids):
                job = self._jobs.load(job_id)
                if not (batch.state is BatchState.DELETED and job.state in (JobState.FAILED, JobState.HELD)):
                    require_deletable(job)
                if len(transaction) > _MOST_OPERATIONS:
                    transaction.commit()
                    transaction = Transaction(self._client)
                self._jobs.add_deletion(transaction, job, job.pointers)
            self.add_deletion(
                transaction,
                batch,
                [f"{layout.BATCH_UUIDS}/{batch.uuid}"] if layout.is_name(batch.uuid) else [],
            )
            self._commit(transaction, batch)

        with_retries(attempt)

    def delete_completed(self) -> list[str]:
        """Delete all batches that are Completed or Deleted, and return their ids; those in use are left."""
        deleted = []
        for batch in self.list():
            if batch.state in (BatchState.COMPLETED, BatchState.DELETED):
                try:
                    self.delete(batch)
                except (MerrittStateError, MerrittLocked, MerrittConflict, MerrittZKNodeInvalid):
                    continue
                deleted.append(batch.id)
        return deleted

    def jobs(self, batch: Batch) -> dict[str, list[str]]:
        """Return the ids of the batch's jobs, by ``batch-processing``, ``batch-failed`` and so on."""
        return {
            each: children(self._client, f"{batch.states_path}/{each}") for each in layout.BATCH_JOB_STATES
        }

    def open_jobs_paths(self, among: Sequence[str]) -> Sequence[str]:
        """Return a node to watch for each of these batches that waits for its jobs before it is reported: the node is
        empty when all jobs of the batch are done."""
        open_states = (BatchState.PROCESSING, BatchState.UPDATE_REPORTING)
        return [f"{path}/{_OPEN_JOBS}" for path in self._in_states(among, open_states)]

    def paths(self) -> Sequence[str]:
        """Return the paths of all batches in order."""
        return [f"{layout.BATCHES}/{name}" for name in children(self._client, layout.BATCHES)]

    def list(self, state: BatchState | None = None, among: Sequence[str] | None = None) -> list[Batch]:
        """Return all batches in order, or those in a state. ``among``: the paths of the batches that are
        looked at. One that cannot be read is left out with a warning."""
        return self._load_all(self.paths() if among is None else among, state)

    def counts(self) -> dict[BatchState, int]:
        """Return how many batches are in each state; every state is a key. All batches are read."""
        states = [batch.state for batch in self.list()]
        return {state: states.count(state) for state in BatchState}

    def _read(self, path: str) -> Batch:
        item, (submission,) = read_item(self._client, path, BatchState, ("submission",))
        return Batch(
            **item,
            submission=codec.read_object(f"{path}/submission", submission),
            has_failure=bool(children(self._client, f"{path}/states/batch-failed")),
        )

    def _counted(self, name: str, among: Sequence[str] | None) -> Iterable[tuple[str, int | None]]:
        """Return batches with the number of children that this node of theirs has; None where it is missing."""
        paths = self.paths() if among is None else among
        return zip(paths, counts(self._client, [f"{path}/{name}" for path in paths]), strict=True)

    def _require_settled(self, batch: Batch, job_ids: Sequence[str]) -> None:
        """Raise MerrittConflict unless each job of the batch stands in the list of its state, and in no other.
        ``job_ids``: all jobs of the queue.

        Merritt's own libraries take a job out of one list before they put it into the next. Where that lasts, so that a
        writer seems to have died there, it is logged once.
        """
        lists = {name: set(jobs) for name, jobs in self.jobs(batch).items()}
        ids = self._jobs.of_batch(batch.id, chain.from_iterable(lists.values()), job_ids)
        heads = self._jobs.heads(ids)
        for job_id, head in zip(ids, heads, strict=True):
            names = [name for name, jobs in lists.items() if job_id in jobs]
            if head is None or names != [layout.batch_job_state(head.state)]:
                state = "of no state that can be read" if head is None else head.state
                message = f"{batch.path}: {job_id} is {state}, but is in {' and '.join(names) or 'no list'}"
                self._unsettled[batch.path] += 1
                if self._unsettled[batch.path] == 2:
                    log.warning("%s; it is not reported until a check finds nothing: repair it.", message)
                raise MerrittConflict(message)
        del self._unsettled[batch.path]

    def _moved(self, batch: Batch, state: BatchState) -> bytes | None:
        """Return the bytes of the status of a batch in another state; None where it is in that already."""
        if batch.state is state:
            return None
        require_transition(batch.path, batch.state, state)
        return codec.object_bytes(batch.status_path, status_fields(batch.status, state))


def _require_no_open_jobs(transaction: Transaction, batch: Batch) -> None:
    """Let the transaction fail where the batch has an open job: a node with children cannot be deleted."""
    path = f"{batch.path}/{_OPEN_JOBS}"
    transaction.delete(path)
    transaction.create(path)


def add_batch(
    client: KazooClient, transaction: Transaction, bid: str, submission: Fields, status: Fields
) -> Witness | None:
    """Add the nodes of a new batch to a transaction that creates the batch's own node. Return the node that shows
    whether the transaction was committed; None: the batch has no uuid. Raises MerrittConflict when another batch has
    the uuid, and what ``require_uuid`` raises."""
    path = f"{layout.BATCHES}/{bid}"
    uuid = require_uuid(submission)
    if uuid:
        (existing,) = get_all(client, [f"{layout.BATCH_UUIDS}/{uuid}"])
        if existing is not None:
            raise MerrittConflict(
                f"{codec.read_text(existing[0])} has the uuid {uuid}; find it by that, or use another uuid."
            )
        transaction.create(f"{layout.BATCH_UUIDS}/{uuid}", bid.encode())
    transaction.create(f"{path}/submission", codec.object_bytes(f"{path}/submission", submission))
    transaction.create(f"{path}/status", codec.object_bytes(f"{path}/status", status))
    return Witness(f"{layout.BATCH_UUIDS}/{uuid}", bid.encode(), 0) if uuid else None


def require_uuid(submission: Fields) -> str:
    """Return the uuid of a batch with this submission; empty where there is none. Raises MerrittZKNodeInvalid for one
    that cannot be part of a path."""
    uuid = str(submission.get("batchID") or "")
    if uuid and not layout.is_name(uuid):
        raise MerrittZKNodeInvalid(f"The uuid {uuid!r} cannot be the name of a node; use another uuid.")
    return uuid
