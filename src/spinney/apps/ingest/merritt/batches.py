"""Batches of Merritt's queue: a submission becomes jobs, and jobs that have all ended become a report.

Jobs are created one by one, each with its number in the batch. While that goes on, the batch is locked and has a mark
(``marks.BATCHES``); a consumer that sees the mark without the lock goes on with the missing numbers. A payload that
cannot be read makes one job that is Failed, because a batch without jobs is never reported."""

import logging
from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient

from spinney.apps.ingest import manifests
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.deposits.orders import BatchOrder
from spinney.apps.ingest.manifests import Row
from spinney.apps.ingest.merritt import orders
from spinney.apps.ingest.merritt.marks import BATCHES, release_own_lock
from spinney.bridges.merritt import (
    Batch,
    BatchState,
    JobState,
    MerrittConflict,
    MerrittLocked,
    MerrittNodeTooLarge,
    MerrittQueue,
    MerrittZKNodeInvalid,
    layout,
)
from spinney.bridges.merritt.nodes import children
from spinney.errors import UsageError
from spinney.files.paths import NotAdmitted

log = logging.getLogger("spinney.bridges.merritt")


class BatchWork:
    """Reads submissions and writes reports."""

    def __init__(self, client: KazooClient, queue: MerrittQueue, owner: str, folder: Path | None) -> None:
        self._client = client
        self._queue = queue
        self._owner = owner
        self._folder = folder

    def read_pending(self) -> None:
        """Create the jobs of all pending batches, and those that a crash has left out."""
        for batch_id in children(self._client, BATCHES):
            if not self._client.retry(self._client.exists, f"{layout.BATCHES}/{batch_id}"):
                self._unmark(batch_id)
                continue
            try:
                batch = self._queue.batches.load(batch_id)
                if batch.state is BatchState.PENDING:  # the mark was set, and then the process was killed
                    continue
                release_own_lock(self._client, batch.lock_path, self._owner)
                self._take(self._queue.batches.lock(batch))
            except (MerrittLocked, MerrittConflict):
                continue  # another consumer is at it
            except MerrittZKNodeInvalid as error:
                log.warning("batch %s is passed over: %s", batch_id, error)
        while (batch_ := self._queue.batches.acquire_pending()) is not None:
            self._client.ensure_path(f"{BATCHES}/{batch_.id}")
            self._take(batch_)

    def _take(self, batch: Batch) -> None:
        """Create the jobs of a batch that is locked, and release it. With a job that cannot be read it waits."""
        try:
            self._read(batch)
        except MerrittZKNodeInvalid as error:
            log.warning("batch %s waits for its other jobs: %s", batch.id, error)
        self._queue.batches.unlock(batch)

    def report_ended(self) -> None:
        """Report each batch whose jobs have all ended, for the first time or again."""
        batches = self._queue.batches
        for batch in batches.list(BatchState.REPORTING):
            release_own_lock(self._client, batch.lock_path, self._owner)
        left = set(children(self._client, BATCHES))  # some of their jobs are not created yet
        for acquire in (batches.acquire_for_reporting, batches.acquire_for_update_reporting):
            while (ended := acquire(left)) is not None:
                try:
                    self._report(ended)
                except (UsageError, OSError) as error:
                    log.error("batch %s is not reported: %s", ended.id, error)
                    batches.unlock(ended)
                    left.add(ended.id)

    def _report(self, batch: Batch) -> None:
        def store(data: bytes) -> str:
            return self.write_beside(batch, "status-report.json", data)

        jobs = self._queue.batches.jobs(batch)
        self._queue.batches.finish_reporting(
            batch, jobs["batch-failed"], jobs["batch-completed"], store=store
        )

    def _read(self, batch: Batch) -> None:
        """Create the jobs of a batch that is locked, but for those that it has."""
        numbers = {
            self._queue.jobs.load(job_id).configuration.get("number")
            for ids in self._queue.batches.jobs(batch).values()
            for job_id in ids
        }
        try:
            order = orders.batch_order(batch)
            payload = self._payload(batch, order)
            count = sum(1 for _ in _rows(payload, order))
            priority = priorities.of_batch(count)
            for number, row in enumerate(_rows(payload, order), 1):
                if number not in numbers:
                    nodes = orders.job_nodes(order, number, row, payload.as_uri())
                    try:
                        self._queue.jobs.create(
                            batch.id,
                            nodes["configuration"],
                            identifiers=nodes.get("identifiers"),
                            metadata=nodes.get("metadata"),
                            priority=priority,
                        )
                    except MerrittNodeTooLarge as error:
                        self._refuse(batch, number, str(error))
        except (UsageError, NotAdmitted, OSError) as error:
            log.error("batch %s is refused: %s", batch.id, error)
            if 0 not in numbers:
                self._refuse(batch, 0, str(error))
        self._unmark(batch.id)

    def _refuse(self, batch: Batch, number: int, reason: str) -> None:
        """Create a job that is Failed, for what no job can be made of."""
        configuration = {"profile_name": orders.profile_of(batch.submission)[:255], "number": number}
        job = self._queue.jobs.create(batch.id, configuration)
        self._queue.jobs.set_status(job, JobState.FAILED, message=reason)

    def _payload(self, batch: Batch, order: BatchOrder) -> Path:
        """Return the payload of a batch, where Merritt's services have put it. Raises UsageError."""
        if self._folder is None:
            raise UsageError("the settings have no 'queue', the folder where payloads of batches are; add it")
        return self._folder / (batch.uuid or batch.id) / order.name

    def write_beside(self, batch: Batch, name: str, data: bytes) -> str:
        """Write what is too large for a node beside the payload, and return its URL."""
        if self._folder is None:
            raise UsageError(f"{name} needs the setting 'queue', the folder of batches; add it")
        path = self._folder / (batch.uuid or batch.id) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path.as_uri()

    def _unmark(self, batch_id: str) -> None:
        if self._client.retry(self._client.exists, f"{BATCHES}/{batch_id}"):
            self._client.retry(self._client.delete, f"{BATCHES}/{batch_id}")


def _rows(payload: Path, order: BatchOrder) -> Iterator[Row | None]:
    """Yield the rows of a manifest of objects; None once for a payload that is one object."""
    if order.kind.is_batch:
        yield from manifests.read(payload, order.kind).rows
    else:
        yield None
