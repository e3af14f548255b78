"""Batches that a consumer makes jobs of, and reports: crashes, and how many requests they take."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from bridges.merritt.test_locks import until
from bridges.merritt.trees import locks, new_batch
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.bridges.merritt import BatchState, JobState, MerrittQueue

TESTS = Path(__file__).parents[3]
KILLED_AFTER_ITS_FIRST_WRITE = """
import sys
from pathlib import Path
from kazoo.client import KazooClient, TransactionRequest
from bridges.merritt.verbs import _die_at
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.bridges.merritt import MerrittQueue

client = KazooClient(sys.argv[1], timeout=1.0)
client.start()
TransactionRequest.commit = _die_at(TransactionRequest.commit, "after")
BatchWork(client, MerrittQueue(client), "oak", Path(sys.argv[2])).read_pending()
"""


def submit(queue: MerrittQueue, folder: Path, bid: str) -> None:
    """Put a batch of two objects into the queue."""
    (folder / bid).mkdir()
    rows = [Row(url=f"https://files.example.org/{number}", name=f"{number}") for number in range(2)]
    with (folder / bid / "batch.checkm").open("wb") as stream:
        write(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    new_batch(queue, bid, filename="batch.checkm", type="batchManifestFile")


def test_a_consumer_that_is_killed_when_it_has_acquired_a_batch_leaves_it_to_the_next(
    hosts: str, client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    submit(queue, tmp_path, "bid-1")
    words = [sys.executable, "-c", KILLED_AFTER_ITS_FIRST_WRITE, hosts, str(tmp_path)]
    assert subprocess.run(words, cwd=TESTS, check=False).returncode == -9
    assert [each.state for each in queue.batches.list()] == [BatchState.PROCESSING]
    until(lambda: not locks(client))  # its session has ended

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    assert [job.configuration["number"] for job in queue.jobs.list(JobState.PENDING)] == [1, 2]
    assert (client.get_children("/spinney/batches"), locks(client)) == ([], [])


def test_many_batches_take_as_many_requests_each_as_few(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    work, requests = BatchWork(client, queue, "oak", tmp_path), list[Any]()
    call = client._call

    def recorded(request: Any, answer: Any) -> Any:
        requests.append(request)
        return call(request, answer)

    def effort(batches: int) -> int:
        for _ in range(batches):
            new_batch(queue, filename="missing", type="batchManifestFile")
        requests.clear()
        client._call = recorded
        open_batches = work.open_paths()
        work.read_pending(open_batches)
        work.report_ended(open_batches)
        client._call = call
        return len(requests)

    few, many = effort(4), effort(20)

    assert many < 1.2 * few / 4 * 20
    assert queue.batches.counts()[BatchState.FAILED] == 24
    assert work.open_paths() == []
    requests.clear()
    client._call = recorded
    assert work.open_paths() == []
    client._call = call
    assert len(requests) == 25  # the list, and the version of each


def test_a_batch_that_is_to_be_reported_again_is_open_again(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    work = BatchWork(client, queue, "oak", tmp_path)
    new_batch(queue, filename="missing", type="batchManifestFile")
    work.read_pending()
    work.report_ended()
    assert work.open_paths() == []
    (failed,) = queue.batches.list(BatchState.FAILED)

    queue.batches.set_status(failed, BatchState.UPDATE_REPORTING)

    assert work.open_paths() == [failed.path]
    work.report_ended(work.open_paths())
    assert work.open_paths() == []
