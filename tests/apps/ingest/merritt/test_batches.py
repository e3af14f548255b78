"""Batches that a consumer makes jobs of, and reports: crashes, and how many requests they take."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import locks, new_batch, put_batch
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.apps.ingest.merritt import orders
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.merritt import Batch, BatchState, JobState, MerrittQueue
from spinney.bridges.merritt.batches import Batches
from spinney.errors import UsageError
from waiting import until

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


@pytest.mark.parametrize("is_mount_point", [True, False])
def test_a_batch_waits_while_the_folder_of_payloads_is_not_mounted(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path, is_mount_point: bool
) -> None:
    client.ensure_path("/spinney/batches")
    folder = tmp_path / "queue"
    folder.mkdir()
    submit(queue, folder, "bid-1")
    folder.rename(tmp_path / "disk")
    if is_mount_point:
        folder.mkdir()
    batches = BatchWork(client, queue, "oak", folder)

    batches.read_pending()

    assert (queue.jobs.list(JobState.PENDING), queue.jobs.list(JobState.FAILED)) == ([], [])
    (tmp_path / "disk").rename(folder)
    batches.read_pending()
    assert [job.configuration["number"] for job in queue.jobs.list(JobState.PENDING)] == [1, 2]


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


def test_a_pass_of_reports_lists_the_jobs_once_and_reads_batches_only_of_jobs_in_no_list_of_theirs(
    client: KazooClient, queue: MerrittQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []
    for _ in range(2):
        batch = new_batch(queue)
        jobs.append(queue.jobs.create(batch.id, {"profile_name": "p"}, failed="odd"))
        put_batch(client, queue, batch, BatchState.PROCESSING)
    paths, call = list[str](), client._call

    def recorded(request: Any, answer: Any) -> Any:
        paths.append(getattr(request, "path", "").removeprefix(client.chroot))
        return call(request, answer)

    monkeypatch.setattr(client, "_call", recorded)

    assert len(list(queue.batches.each_for_reporting())) == 2
    assert paths.count("/jobs") == 1
    assert [path for path in paths if path.endswith("/bid")] == [f"{jobs[1].path}/bid"]


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


def put_submission(client: KazooClient, **fields: Any) -> str:
    """Put a batch into the queue whatever its submission has, and return its path."""
    path: str = client.create("/batches/bid", sequence=True)
    order = {"profile": "p", "filename": "batch.checkm", "type": "batchManifestFile", **fields}
    client.create(f"{path}/submission", json.dumps(order).encode())
    client.create(f"{path}/status", b'{"status":"Pending"}')
    return path


@pytest.mark.parametrize("uuid", ["bid-\0x", "bid-\ud800x", "../outside", "..", "a/b", "b" * 300])
def test_a_batch_whose_uuid_is_no_name_of_a_folder_fails_alone_and_can_be_deleted(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path, uuid: str
) -> None:
    client.ensure_path("/spinney/batches")
    folder = tmp_path / "queue"
    folder.mkdir()
    put_submission(client, batchID=uuid)
    submit(queue, folder, "bid-1")
    submit(queue, tmp_path, "outside")  # what lies there is not to be read
    work = BatchWork(client, queue, "oak", folder)

    work.read_pending()
    work.report_ended()

    odd, sound, _ = queue.batches.list()
    assert (odd.state, sound.state) == (BatchState.FAILED, BatchState.PROCESSING)
    (job_id,) = queue.batches.jobs(odd)["batch-failed"]
    assert "submission: batchID: " in queue.jobs.load(job_id).message
    assert len(queue.batches.jobs(sound)["batch-processing"]) == 2
    assert locks(client) == []
    with pytest.raises(UsageError, match="batchID"):
        work.write_beside(odd.id, "x.json", b"{}")

    queue.repair(dry_run=False, clock=lambda: time.time() + 4000)
    queue.batches.delete(queue.batches.set_status(queue.batches.load(odd.id), BatchState.DELETED))


def test_a_fault_that_nobody_foresaw_passes_over_one_batch_with_one_warning(
    client: KazooClient,
    queue: MerrittQueue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client.ensure_path("/spinney/batches")
    (tmp_path / "another batch").mkdir()
    odd, sound = (Path(put_submission(client, profile=each)).name for each in ("odd", "sound"))
    work, order_of, finish = (
        BatchWork(client, queue, "oak", tmp_path),
        orders.batch_order,
        Batches.finish_reporting,
    )

    def order(batch: Batch) -> Any:
        return [].pop() if batch.submission["profile"] == "odd" else order_of(batch)

    monkeypatch.setattr(orders, "batch_order", order)
    for _ in range(2):
        work.read_pending()
    work.report_ended()
    assert (queue.batches.load(odd).state, queue.batches.load(sound).state) == ("Processing", "Failed")
    assert client.get_children("/spinney/batches") == [odd]

    monkeypatch.undo()
    monkeypatch.setattr(Batches, "finish_reporting", lambda *_, **__: [].pop())
    work.read_pending()
    for _ in range(2):
        work.report_ended()
    assert queue.batches.load(odd).state is BatchState.REPORTING

    monkeypatch.setattr(Batches, "finish_reporting", finish)
    work.report_ended()
    assert queue.batches.load(odd).state is BatchState.FAILED
    assert [line for line in caplog.messages if "passed over" in line] == [
        f"oak: batch {odd} is passed over: pop from empty list"
    ]
    assert locks(client) == []


@pytest.mark.parametrize("fault", [UsageError("no folder"), PermissionError(13, "denied")])
def test_a_report_that_cannot_be_written_is_logged_once_and_tried_again(
    client: KazooClient,
    queue: MerrittQueue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
) -> None:
    client.ensure_path("/spinney/batches")
    (tmp_path / "another batch").mkdir()
    batch = Path(put_submission(client)).name
    work, tried = BatchWork(client, queue, "oak", tmp_path), []

    def refused(*_: Any, **__: Any) -> None:
        tried.append(batch)
        raise fault

    monkeypatch.setattr(Batches, "finish_reporting", refused)
    work.read_pending()
    caplog.clear()
    for _ in range(2):
        work.report_ended()

    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info) == (f"oak: batch {batch} is passed over: {fault}", None)
    assert (tried, locks(client)) == ([batch, batch], [])


@pytest.mark.parametrize("keys", [("creator", "title"), ("primaryIdentifier", "erc_who", "erc_when")])
def test_each_field_that_is_wrong_is_named_as_it_was_submitted_with_its_reason(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    client.ensure_path("/spinney/batches")
    put_submission(client, **dict.fromkeys(keys, 4711))

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    (job,) = queue.jobs.list()
    reasons = [f"{field}: Input should be a valid string" for field in keys]
    assert job.message == f"the batch's submission: {'; '.join(reasons)}; submit it again"


def test_a_job_in_place_of_a_refused_batch_says_when_it_is_requeued_that_the_batch_has_to_come_again(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    put_submission(client, type="batchManifestFile", filename="missing")
    (tmp_path / "another batch").mkdir()
    BatchWork(client, queue, "oak", tmp_path).read_pending()
    (job,) = queue.jobs.list(JobState.FAILED)
    assert "is not there" in job.message

    requeued = queue.jobs.requeue(job)

    bid = "bid-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    with pytest.raises(UsageError, match="submit the batch again"):
        orders.object_order(requeued, bid, Settings(queue=tmp_path))


def test_a_manifest_with_another_digest_than_was_submitted_is_refused(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    (tmp_path / "bid-1").mkdir()
    with (tmp_path / "bid-1" / "batch.checkm").open("wb") as stream:
        write([Row(url="https://h/1", name="1")], PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    submission = {"filename": "batch.checkm", "type": "batchManifestFile", "digestType": "sha-256"}
    new_batch(queue, "bid-1", **submission, digestValue="0" * 64)

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    (job,) = queue.jobs.list()
    assert (job.state, "sha256" in job.message) == (JobState.FAILED, True)


def test_type_and_date_of_a_row_come_to_the_object(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    (tmp_path / "bid-1").mkdir()
    row = Row(url="https://files.example.org/1", name="1", mime_type="image/tiff", modified="2001-02-03")
    with (tmp_path / "bid-1" / "batch.checkm").open("wb") as stream:
        write([row], PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    new_batch(queue, "bid-1", filename="batch.checkm", type="batchManifestFile")

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    (job,) = queue.jobs.list()
    bid = "bid-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    payload = orders.object_order(job, bid, Settings(queue=tmp_path)).payload
    assert (payload.mime_type, payload.modified) == ("image/tiff", "2001-02-03")


@pytest.mark.parametrize(
    ("value", "local_ids"), [(["L-1", "L-2"], ["L-1", "L-2"]), ("L-1; L-2", ["L-1", "L-2"]), ([1], None)]
)
def test_local_ids_of_a_submission_are_text_or_a_list_of_texts(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path, value: object, local_ids: list[str] | None
) -> None:
    client.ensure_path("/spinney/batches")
    put_submission(client, type="file", localIdentifier=value)

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    (job,) = queue.jobs.list()
    if local_ids is None:
        assert "the local id [1] is neither text nor a list of texts" in job.message
    else:
        assert job.identifiers["local_id"] == local_ids


def test_what_merritts_services_submit_names_the_object(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    client.ensure_path("/spinney/batches")
    put_submission(client, type="file", objectID="ark:/99999/fk4x", localID="L-1;L-2", update=True)

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    (job,) = queue.jobs.list()
    assert job.identifiers == {"primary_id": "ark:/99999/fk4x", "local_id": ["L-1", "L-2"]}
    assert job.configuration["update"] is True


@pytest.mark.parametrize("moved", [{}, {"payload_url": "a b.zip"}])
def test_a_job_of_merritts_batch_service_has_its_payload_in_its_folder(
    queue: MerrittQueue, tmp_path: Path, moved: dict[str, str]
) -> None:
    configuration = {"profile": "p", "type": "container", "filename": "a b.zip", "title": "T", "update": True}
    configuration |= moved
    named = {"batchID": "bid-1", "jobID": "jid-1", "digestType": "sha-256", "digestValue": "0" * 64}
    batch = new_batch(queue, "bid-1")
    job = queue.jobs.create(
        batch.id, configuration | named, identifiers={"primary_id": "ark:/99999/fk4x", "local_id": ["L"]}
    )
    bid, settings = "bid-6ba7b810-9dad-11d1-80b4-00c04fd430c8", Settings(queue=tmp_path)

    order = orders.object_order(job, bid, settings)

    assert order.payload.url == (tmp_path / "bid-1" / "jid-1" / "a b.zip").as_uri()
    assert (order.payload.name, str(order.payload.kind), order.update) == ("a b.zip", "container", True)
    assert (order.about.primary_id, order.about.local_ids, order.about.title) == (
        "ark:/99999/fk4x",
        ("L",),
        "T",
    )
    outside = queue.jobs.create(batch.id, configuration | named | {"jobID": ".."})
    with pytest.raises(UsageError, match="is no name of a file"):
        orders.object_order(outside, bid, settings)
