"""Batches of ``spinney ingest submit`` as Merritt's tools see them in the queue."""

import re
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import locks
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.bridges.merritt import Batch, BatchState, JobState, MerrittQueue

from .service import IngestService


@pytest.fixture
def mirroring(tmp_path: Path, hosts: str, service: IngestService) -> IngestService:
    """The service, which shows its own batches in the queue and takes none of it."""
    with (service.place / "merritt.toml").open("a") as file:
        file.write('mirror = true\nserver = "https://ingest.example.org"\n')
    return service


def submit(service: IngestService, name: str, *, missing: int = 0, profile: str = "maps") -> str:
    """Submit two objects here, of which so many have no file; return the batch's name."""
    folder = service.queue / name
    folder.mkdir()
    rows = []
    for number in range(2):
        file = folder / f"{number}.txt"
        if number >= missing:
            file.write_text(f"{name} {number}\n")
        rows.append(Row(url=file.as_uri(), name=file.name))
    with (folder / "batch.checkm").open("wb") as stream:
        write(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    printed = service.spinney("ingest", "submit", str(folder / "batch.checkm"), "--profile", profile)
    (bid,) = set(re.findall(r"bid-[0-9a-f-]{36}", printed))
    return str(bid)


def test_batches_submitted_here_are_seen_there(
    mirroring: IngestService, queue: MerrittQueue, client: KazooClient
) -> None:
    mirroring.start()
    mirroring.until("the queues to be known", lambda: "ingest-downloading" in mirroring.spinney("queues"))
    mirroring.spinney("queue", "ingest-downloading", "--limit", "0")  # so that objects stand still there
    good, bad = submit(mirroring, "good"), submit(mirroring, "bad", missing=1)

    mirroring.until("the objects", lambda: len(queue.jobs.ids(JobState.DOWNLOADING)) == 4)
    batch = queue.batches.find_by_uuid(good)
    assert batch is not None
    assert (batch.state, batch.submission["profile"]) == (BatchState.PROCESSING, "maps")
    assert queue.jobs.acquire(JobState.DOWNLOADING) is None  # nobody else takes them
    assert queue.batches.acquire_pending() is None
    assert queue.check() == []
    mirroring.kill()
    assert queue.jobs.acquire(JobState.DOWNLOADING) is None  # also not when the consumer is gone
    mirroring.start()
    mirroring.spinney("queue", "ingest-downloading", "--limit", "declared")

    def ended(bid: str, state: BatchState) -> bool:
        batch = queue.batches.find_by_uuid(bid)
        return batch is not None and batch.state is state

    mirroring.until("the good batch", lambda: ended(good, BatchState.COMPLETED))
    mirroring.until("the bad batch", lambda: ended(bad, BatchState.FAILED))
    failed = queue.batches.find_by_uuid(bad)
    assert failed is not None
    report = queue.batches.report(failed)
    assert (len(report["failed_jobs"]), len(report["successful_jobs"])) == (1, 1)
    assert "0.txt" in queue.jobs.load(report["failed_jobs"][0]).message
    done = queue.jobs.load(report["successful_jobs"][0])
    assert done.identifiers["primary_id"].startswith("ark:/99999/")
    assert done.store["manifest_url"].startswith("https://ingest.example.org/")
    assert locks(client) == []
    assert queue.check() == []

    # What is retried here goes on there, too, and the batch is reported again.
    (mirroring.queue / "bad" / "0.txt").write_text("here now\n")
    mirroring.spinney("retry", "--state", "failed", "--type", "ingest.object", "--yes")
    mirroring.until("the second report", lambda: ended(bad, BatchState.COMPLETED))
    assert len(queue.jobs.ids(JobState.COMPLETED)) == 4
    assert locks(client) == []


def test_held_batches_that_are_deleted_here_end_there(
    mirroring: IngestService, queue: MerrittQueue, client: KazooClient
) -> None:
    # Given a batch that its profile holds, and one of which the objects are held,
    (mirroring.place / "profiles" / "held.toml").write_text('collection = "held"\nhold = "a curator looks"\n')
    mirroring.start()
    mirroring.until("the queues to be known", lambda: "ingest-estimating" in mirroring.spinney("queues"))
    mirroring.spinney("queue", "ingest-estimating", "--limit", "0")  # so that objects stand still there
    alone, with_objects = submit(mirroring, "alone", profile="held"), submit(mirroring, "with_objects")

    def there(bid: str) -> Batch | None:
        return queue.batches.find_by_uuid(bid)

    mirroring.until("the batches", lambda: there(alone) is not None and there(with_objects) is not None)
    mirroring.until("the objects", lambda: len(queue.jobs.ids()) == 2)
    mirroring.spinney("ingest", "hold", "maps", "--reason", "to be deleted")

    # when they are deleted,
    mirroring.spinney("ingest", "delete", alone)
    mirroring.spinney("ingest", "delete", with_objects)

    # then both have failed over there with all their jobs, and nothing stays locked.
    def have_failed() -> bool:
        batches = [there(bid) for bid in (alone, with_objects)]
        return all(batch is not None and batch.state is BatchState.FAILED for batch in batches)

    mirroring.until("their ends", have_failed)
    assert len(queue.jobs.ids(JobState.FAILED)) == 2
    assert locks(client) == []
