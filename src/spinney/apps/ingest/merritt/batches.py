"""Batches of Merritt's queue: a submission becomes jobs, and jobs that have all ended become a report.

Jobs are created one by one, each with its number in the batch. While that goes on, the batch is locked and has a mark
(``marks.BATCHES``); a consumer that sees the mark without the lock goes on with the missing numbers. A payload that
cannot be read makes one job that is Failed, because a batch without jobs is never reported."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from spinney.apps.ingest import manifests
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.deposits.orders import BatchOrder
from spinney.apps.ingest.manifests import Row
from spinney.apps.ingest.merritt import orders
from spinney.apps.ingest.merritt.marks import BATCHES, release_own_lock
from spinney.apps.ingest.merritt.passed_over import PassedOver
from spinney.bridges.merritt import (
    Batch,
    BatchState,
    MerrittConflict,
    MerrittLocked,
    MerrittNodeTooLarge,
    MerrittQueue,
    MerrittZKNodeInvalid,
    layout,
)
from spinney.bridges.merritt.codec import read_object
from spinney.bridges.merritt.nodes import children, get_all, versions
from spinney.bridges.merritt.transactions import Transaction
from spinney.errors import UsageError
from spinney.files.copies import write_durably
from spinney.files.digests import require_digest
from spinney.files.paths import NotAdmitted

_ENDED = (BatchState.COMPLETED, BatchState.FAILED, BatchState.DELETED)
log = logging.getLogger("spinney.bridges.merritt")


class BatchWork:
    """The work for batches of Merritt's queue: it reads their submissions, and writes reports when they have
    ended.

    ``folder`` is where Merritt's services keep the payloads of batches; None: it is not set, so that
    submissions are refused. An error of one batch is logged once and leaves it as it is (``PassedOver``);
    errors of the connection are raised.
    """

    def __init__(self, client: KazooClient, queue: MerrittQueue, owner: str, folder: Path | None) -> None:
        self._client = client
        self._queue = queue
        self._owner = owner
        self._folder = folder
        self._passes_over = PassedOver(owner)
        self._ended: dict[str, int] = {}
        """The versions of the statuses of batches that have ended, by the batches' paths."""

    def open_paths(self) -> Sequence[str]:
        """Return the paths of the batches that have not ended.

        A batch that has ended is read again only when the version of its status has changed, so that a round
        over thousands of old batches costs one request for each of them and no content. A batch whose status
        cannot be read counts as open.
        """
        paths = self._queue.batches.paths()
        status_versions = versions(self._client, [f"{path}/status" for path in paths])
        now = dict(zip(paths, status_versions, strict=True))
        self._ended = {path: version for path, version in self._ended.items() if now.get(path) == version}
        left = [path for path in paths if path not in self._ended]
        read = get_all(self._client, [f"{path}/status" for path in left])
        for path, status in zip(left, read, strict=True):
            with suppress(MerrittZKNodeInvalid):  # a damaged batch is reported by `read_pending`
                if status is not None and read_object(path, status[0]).get("status") in _ENDED:
                    self._ended[path] = status[1]
        return [path for path in left if path not in self._ended]

    def read_pending(self, among: Sequence[str] | None = None) -> None:
        """Create the jobs of all pending batches, and those that a crash has left out.

        ``among``: the paths of the batches that are examined; None: all. Batches with a mark come first:
        their creation was interrupted. A mark whose batch was deleted meanwhile is removed, and one whose
        batch is still pending waits for the second loop, which takes it like any other.
        """
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
        for batch in self._queue.batches.each_pending(among, self._mark):
            self._take(batch)

    def _mark(self, transaction: Transaction, batch: Batch) -> None:
        """Have the transaction that acquires a batch mark it, so that a crash after it leaves no batch without jobs."""
        path = f"{BATCHES}/{batch.id}"
        if not self._client.retry(self._client.exists, path):
            transaction.create(path)

    def _take(self, batch: Batch) -> None:
        """Create the jobs of a batch that is locked, and unlock it. A batch with a job that cannot be read
        keeps its mark, so that the next round tries again."""
        try:
            self._read(batch)
        except MerrittZKNodeInvalid as error:
            log.warning("batch %s waits for its other jobs: %s", batch.id, error)
        except Exception as error:  # one odd batch must not stop the others
            if not self._passes_over(f"batch {batch.id}", error):
                raise
        self._queue.batches.unlock(batch)

    def report_ended(self, among: Sequence[str] | None = None) -> None:
        """Report each batch whose jobs have all ended, for the first time or again.

        ``among``: the paths of the batches that are examined; None: all. A batch with a mark lacks jobs and
        is not reported. A batch in Reporting with a lock of this consumer was interrupted while it was
        reported, and is reported again.
        """
        batches = self._queue.batches
        paths = batches.paths() if among is None else among
        for batch in batches.list(BatchState.REPORTING, paths):
            release_own_lock(self._client, batch.lock_path, self._owner)
        incomplete = {f"{layout.BATCHES}/{batch_id}" for batch_id in children(self._client, BATCHES)}
        paths = [path for path in paths if path not in incomplete]  # the others have all their jobs
        for ended in chain(batches.each_for_reporting(paths), batches.each_for_update_reporting(paths)):
            try:
                self._report(ended)
            except Exception as error:  # one odd batch must not stop the others
                if not self._passes_over(f"batch {ended.id}", error):
                    raise
                batches.unlock(ended)

    def _report(self, batch: Batch) -> None:
        """Write the report of a batch into its node, or into a file beside its payload where it is too large
        for a node."""

        def store(data: bytes) -> str:
            return self.write_beside(batch.id, "status-report.json", data)

        jobs = self._queue.batches.jobs(batch)
        self._queue.batches.finish_reporting(
            batch, jobs["batch-failed"], jobs["batch-completed"], store=store
        )

    def _read(self, batch: Batch) -> None:
        """Create the jobs of a batch that is locked, except those that it has, and remove its mark.

        The manifest is read twice: first to its end, so that a fault is found before any job is created and
        the number of objects determines the priority. A job is known by its number in the batch, which is in
        its configuration. A batch that is refused gets one job with the number 0 that is Failed. Raises OSError while
        the folder of batches is not there.
        """
        numbers = {
            self._queue.jobs.load(job_id).configuration.get("number")
            for ids in self._queue.batches.jobs(batch).values()
            for job_id in ids
        }
        try:
            order = orders.batch_order(batch)
            payload = self._payload(batch, order)
            if order.kind.is_batch:  # any other payload is compared when its object fetches it
                require_digest(payload, order.digest, order.name)
            count = sum(1 for _ in _rows(payload, order))
            priority = priorities.of_batch(count)
            for number, row in enumerate(_rows(payload, order), 1):
                if number not in numbers:
                    nodes = orders.job_nodes(order, number, row, payload.as_uri())
                    try:
                        self._queue.jobs.create(batch.id, **nodes, priority=priority)
                    except MerrittNodeTooLarge as error:
                        self._refuse(batch, number, str(error))
        except (UsageError, NotAdmitted, OSError) as error:
            if not isinstance(error, UsageError):
                self._require_folder()
            log.error("batch %s is refused: %s", batch.id, error)
            if 0 not in numbers:
                self._refuse(batch, 0, str(error))
        self._unmark(batch.id)

    def _refuse(self, batch: Batch, number: int, reason: str) -> None:
        """Create a job that is Failed, in place of one that cannot be made, so that the report has the
        reason."""
        configuration = {"profile_name": orders.profile_of(batch.submission)[:255], "number": number}
        self._queue.jobs.create(batch.id, configuration, failed=reason)

    def _require_folder(self) -> None:
        """Raise OSError while the folder of batches is missing or empty, as when its disk is not mounted: no batch may
        be refused for that."""
        if self._folder is not None:
            with os.scandir(self._folder) as entries:
                if next(entries, None) is None:
                    raise OSError(f"{self._folder} is empty; mount its disk")

    def _payload(self, batch: Batch, order: BatchOrder) -> Path:
        """Return the payload of a batch, where Merritt's services have put it. Raises UsageError."""
        if self._folder is None:
            raise UsageError("the settings have no 'queue', the folder where payloads of batches are; add it")
        return self._folder / orders.folder_of(batch) / order.name

    def write_beside(self, batch_id: str, name: str, data: bytes) -> str:
        """Write what is too large for a node beside the payload, durably, and return its ``file:`` URL.

        An older file of that name is replaced. Raises UsageError without the folder, or for a batchID that
        cannot be a folder's name, and OSError.
        """
        if self._folder is None:
            raise UsageError(f"{name} needs the setting 'queue', the folder of batches; add it")
        path = self._folder / orders.folder_of(self._queue.batches.load(batch_id)) / name
        path.parent.mkdir(exist_ok=True)
        write_durably(path, data.decode())
        return path.as_uri()

    def _unmark(self, batch_id: str) -> None:
        with suppress(NoNodeError):
            self._client.retry(self._client.delete, f"{BATCHES}/{batch_id}")


def _rows(payload: Path, order: BatchOrder) -> Iterator[Row | None]:
    """Yield the rows of a manifest of objects; None once for a payload that is one object."""
    if order.kind.is_batch:
        yield from manifests.read(payload, order.kind)
    else:
        yield None
