"""Batches of ``spinney ingest`` shown in Merritt's queue, for tools that look there.

A batch that was submitted here gets a batch in Merritt's queue with the same uuid, and each of its objects a job; both
follow what happens here. No consumer may work on them: while they are open they have locks that do not end with a
session, so that a crash of this consumer does not hand them to another one. Each batch is written by the consumer that
created it, which the field ``mirror`` of its submission names."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.merritt import progress
from spinney.apps.ingest.merritt.marks import ROOT, owner_of
from spinney.bridges.merritt import Batch, BatchState, Job, JobState, MerrittError, MerrittQueue
from spinney.bridges.merritt.batches import add_batch
from spinney.bridges.merritt.item_locks import Lock, add_lock, new_lock
from spinney.bridges.merritt.items import Item
from spinney.bridges.merritt.items import status_fields as batch_status
from spinney.bridges.merritt.job_nodes import DEFAULT_PRIORITY, add_job
from spinney.bridges.merritt.layout import BATCHES, JOBS
from spinney.bridges.merritt.states import requeue_target
from spinney.bridges.merritt.transactions import OperationFailed, Transaction, create_numbered
from spinney.jobs import OPEN, SETTLED, Filter, State
from spinney.jobs import Job as SpinneyJob
from spinney.operations import all_jobs

if TYPE_CHECKING:
    from spinney.operations import Control

log = logging.getLogger("spinney.bridges.merritt")

TYPE: Final = "ingest.batch"
_FINAL = (JobState.COMPLETED, JobState.DELETED)
_OVERLAP_US = 60_000_000
"""Jobs that settled so long before the last round are read again: a commit may come later than its time says."""


class Mirror:
    """Writes the batches of one store into Merritt's queue.

    ``owner`` is the name of the consumer; its locks and submissions say ``mirror:OWNER``. ``server``: the URL
    of Spinney's server, for links; None: links have no host. What was written is remembered in memory, so
    that a round writes only changes; after a restart everything open is compared again, which changes nothing
    where it is equal.
    """

    def __init__(self, client: KazooClient, control: "Control", owner: str, server: str | None) -> None:
        self._client, self._control, self._server = client, control, server
        self._owner = f"mirror:{owner}"
        self._queue = MerrittQueue(client, self._owner)
        self._since = f"{ROOT}/mirror-{owner.rpartition(':')[2]}"
        self._jobs: dict[str, dict[str, str]] = {}
        """The ids of the jobs in Merritt's queue, by batch and by the names of the objects in Spinney."""
        self._written: dict[int, tuple[object, ...]] = {}
        """What of an object's job was last written, by its number."""
        self._reported: dict[int, int | None] = {}
        """When the batches that were reported lately had settled, by the numbers of their jobs."""

    def write(self) -> None:
        """Write what has changed here since the last round; the first round of all begins with the open
        batches.

        Batches that are open, or settled since the last round, are examined. The time of the round is written
        last, so that a round that is interrupted is repeated in full. A batch that the queue refuses is
        logged and left out; errors of the connection are raised.
        """
        began_us, since_us = self._control.clock(), self._read_since()
        jobs = [*self._batches(states=OPEN), *self._batches(settled_after_us=since_us - _OVERLAP_US)]
        for job in jobs:
            try:
                self._write_batch(job, BatchOrder.model_validate(job.params["order"]))
            except MerrittError as error:
                self._jobs.clear()  # one may have been created all the same
                log.warning("batch job %s is not shown in Merritt's queue: %s", job.id, error)
        self._reported = {job.id: self._reported[job.id] for job in jobs if job.id in self._reported}
        self._client.retry(self._client.set, self._since, str(began_us).encode())

    def _read_since(self) -> int:
        """Return when the last round began, in microseconds since 1970 UTC; now, where there was none."""
        self._client.retry(self._client.ensure_path, self._since)
        return int(self._client.retry(self._client.get, self._since)[0] or self._control.clock())

    def _batches(self, **criteria: Any) -> Iterator[SpinneyJob]:
        return all_jobs(self._control.store, Filter(type=TYPE, **criteria))

    # --- batches ------------------------------------------------------------------------------

    def _write_batch(self, job: SpinneyJob, order: BatchOrder) -> None:
        """Write a batch with its objects, and its end if it has one. One that another consumer mirrors is
        left to it."""
        if job.state in SETTLED and self._reported.get(job.id) == job.settled_us:
            return
        batch = self._queue.batches.find_by_uuid(order.bid) or self._create_batch(order)
        lock = self._held(batch) if batch.submission.get("mirror") == self._owner else None
        if lock is None:
            return
        below = Filter(parent_id=job.id, type="ingest.object", superseded=False)
        objects = list(all_jobs(self._control.store, below))
        for each in objects:
            self._write_object(batch, each)
        if job.state in SETTLED:
            self._report(replace(batch, lock=lock), job, objects)
            self._reported[job.id] = job.settled_us
            self._jobs.pop(batch.id, None)
            for each in objects:
                self._written.pop(each.id, None)

    def _create_batch(self, order: BatchOrder) -> Batch:
        """Create a batch that is Processing and locked, in one transaction, so that no consumer can take it
        in between."""
        submission = {
            "batchID": order.bid,
            "profile": order.profile,
            "submitter": order.submitter,
            "filename": order.name,
            "type": str(order.kind),
            "update": order.update,
            "mirror": self._owner,
        }

        def write(transaction: Transaction, bid: str) -> Any:
            status = batch_status({}, BatchState.PROCESSING)
            witness = add_batch(self._client, transaction, bid, submission, status)
            self._add_lock(transaction, f"{BATCHES}/{bid}/lock")
            return witness

        return self._queue.batches.load(create_numbered(self._client, BATCHES, "bid", write))

    def _report(self, batch: Batch, job: SpinneyJob, objects: list[SpinneyJob]) -> None:
        """Move a batch that has ended here to its end, with its jobs as the report.

        An equal report is not written again. A batch that was Failed and has changed since gets an update
        report. A Completed one has no further transitions, and is only unlocked.
        """
        ids = self._ids(batch)
        done = [ids[_order(each).jid] for each in objects if each.state is State.COMPLETED]
        failed: list[Any] = [ids[_order(each).jid] for each in objects if each.state is not State.COMPLETED]
        if job.state is not State.COMPLETED and not failed:
            failed = [{"message": job.message}]  # such as a payload that cannot be read
        batches, report = self._queue.batches, {"failed_jobs": failed, "successful_jobs": done}
        again = batch.state in (BatchState.FAILED, BatchState.UPDATE_REPORTING)
        if batch.state in (BatchState.COMPLETED, BatchState.DELETED) or (
            again and batches.report(batch) == report
        ):
            batches.unlock(batch)
            return
        batches.finish_reporting(
            batches.set_status(batch, BatchState.UPDATE_REPORTING if again else BatchState.REPORTING),
            failed,
            done,
            store=lambda _: f"{self._server or ''}/batches/{job.id}",
        )

    # --- jobs ---------------------------------------------------------------------------------

    def _write_object(self, batch: Batch, job: SpinneyJob) -> None:
        """Write an object's job if its state, stage or number of attempts differs from what was last
        written."""
        position = (job.state, job.stage, job.attempts)
        if self._written.get(job.id) == position:
            return
        order, ids = _order(job), self._ids(batch)
        if order.jid not in ids:
            ids[order.jid] = self._create_job(batch, order)
        mirrored = self._queue.jobs.load(ids[order.jid])
        has_failed = job.state in SETTLED and job.state is not State.COMPLETED
        if mirrored.state in _FINAL or (mirrored.state is JobState.FAILED and has_failed):
            self._written[job.id] = position
            return
        if (lock := self._held(mirrored)) is None:
            return
        self._follow(replace(mirrored, lock=lock), job)
        self._written[job.id] = position

    def _create_job(self, batch: Batch, order: ObjectOrder) -> str:
        """Create the job of an object, locked in the same transaction, and return its id."""
        configuration = {
            "profile_name": order.profile,
            "submitter": order.submitter,
            "payload_url": order.payload.url or "",
            "payload_type": str(order.payload.kind),
            "payload_filename": order.payload.name,
            "response_type": order.response,
            "update": order.update,
            "jid": order.jid,
        }

        def write(transaction: Transaction, job_id: str) -> None:
            add_job(self._client, transaction, job_id, batch.id, configuration, {}, DEFAULT_PRIORITY, 0)
            self._add_lock(transaction, f"{JOBS}/{job_id}/lock")

        return create_numbered(self._client, JOBS, "jid", write)

    def _follow(self, mirrored: Job, job: SpinneyJob) -> None:
        """Move a job of Merritt's queue, one transition after the other, to the state of the object's job in
        Spinney."""
        jobs = self._queue.jobs
        if mirrored.state is JobState.FAILED:  # and was retried here
            mirrored = jobs.requeue(mirrored, requeue_target(mirrored.last_successful_status))
        results = self._control.queries.results(job.id)
        pointer = f"{self._server or ''}/jobs/{job.id}"
        mirrored = progress.write_parts(self._queue, mirrored, results, self._server, lambda *_: pointer)
        for state in progress.steps(mirrored.state, job):
            has_ended = state in (JobState.COMPLETED, JobState.FAILED)
            message = progress.message(job) if state is JobState.FAILED else ""
            mirrored = jobs.set_status(
                mirrored, state, message=message, priority=job.priority, unlock=has_ended
            )

    def _ids(self, batch: Batch) -> dict[str, str]:
        """Return the ids of a batch's jobs, by the names of the objects; they are read once."""
        if batch.id not in self._jobs:
            ids = (job_id for ids in self._queue.batches.jobs(batch).values() for job_id in ids)
            self._jobs[batch.id] = {
                str(self._queue.jobs.load(job_id).configuration.get("jid")): job_id for job_id in ids
            }
        return self._jobs[batch.id]

    # --- locks --------------------------------------------------------------------------------

    def _add_lock(self, transaction: Transaction, path: str) -> Lock:
        """Have a transaction take a lock that stays when the session ends."""
        lock = new_lock(path, self._owner)
        add_lock(transaction, lock, ephemeral=False)
        return lock

    def _held(self, item: Item) -> Lock | None:
        """Return the lock of an item, taken now where nobody has it; None where it is not ours."""
        try:
            note: bytes = self._client.retry(self._client.get, item.lock_path)[0]
        except NoNodeError:
            transaction = Transaction(self._client)
            lock = self._add_lock(transaction, item.lock_path)
            try:
                transaction.commit()
            except OperationFailed:
                return None
            return lock
        return Lock(item.lock_path, note) if owner_of(note) == self._owner else None


def _order(job: SpinneyJob) -> ObjectOrder:
    return ObjectOrder.model_validate(job.params["order"])
