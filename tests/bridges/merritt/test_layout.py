"""Every path of the layout, with its bytes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridges.merritt.conftest import NOW
from bridges.merritt.trees import CONFIGURATION, SUBMISSION, new_job, put_batch, tree
from spinney.bridges.merritt import (
    AccessState,
    BatchState,
    JobState,
    MerrittNodeTooLarge,
    MerrittQueue,
    MerrittZKNodeInvalid,
    job_identifiers,
    job_metadata,
)

pytestmark = pytest.mark.usefixtures("fixed_time")
STATUS = f'"last_modified":"{NOW}"'.encode()


def test_the_permanent_nodes(client: KazooClient, queue: MerrittQueue) -> None:
    queue.initialize()

    assert sorted(client.get_children("/")) == ["access", "batch-uuids", "batches", "jobs", "locks"]
    assert sorted(client.get_children("/jobs/states")) == sorted(state.lower() for state in JobState)
    assert sorted(client.get_children("/access")) == ["large", "small"]
    assert sorted(client.get_children("/locks")) == [
        "collections",
        "inventory",
        "localid",
        "queue",
        "storage",
    ]


def test_a_batch_and_its_way(client: KazooClient, queue: MerrittQueue) -> None:
    queue.batches.create(SUBMISSION)

    created = {
        "/batch-uuids/bid-7f1c": b"bid0000000000",
        "/batches/bid0000000000": b"",
        "/batches/bid0000000000/status": b'{"status":"Pending",' + STATUS + b',"message":""}',
        "/batches/bid0000000000/submission": (
            b'{"batchID":"bid-7f1c","profile":"ucsd_lib_content","submitter":"dpr","filename":"two.checkm"}'
        ),
    }
    assert tree(client) == created

    batch = queue.batches.acquire_pending()
    assert batch is not None
    assert batch.lock is not None
    with_lock = tree(client)
    note = json.loads(with_lock.pop("/batches/bid0000000000/lock"))
    assert (note["owner"], note["time"]) == ("ingest01:4711", NOW)
    assert client.get("/batches/bid0000000000/lock")[1].ephemeralOwner == client.client_id[0]
    assert with_lock == created | {
        "/batches/bid0000000000/states": b"",
        "/batches/bid0000000000/status": b'{"status":"Processing",' + STATUS + b',"message":""}',
    }

    batch = queue.batches.set_status(batch, BatchState.FAILED, message="größer")
    queue.batches.unlock(batch)
    failed = b'{"status":"Failed",' + STATUS + ',"message":"größer"}'.encode()
    assert tree(client)["/batches/bid0000000000/status"] == failed
    assert "/batches/bid0000000000/lock" not in tree(client)


def test_a_job_with_all_its_parts(client: KazooClient, queue: MerrittQueue) -> None:
    batch = queue.batches.create({})
    before = tree(client)

    job = queue.jobs.create(
        batch.id,
        CONFIGURATION,
        identifiers=job_identifiers("ark:/99999/fk4x", "a;b"),
        metadata=job_metadata("Who", "What", "When", "Where"),
        inventory={"manifest_url": "https://store/m", "mode": "add"},
        store={"manifest_url": "https://ingest/m", "mode": "add", "delete": "false"},
        priority=2,
        space_needed=10**12,
    )

    assert job.id == "jid0000000001"  # /jobs/states was the first child
    added = dict(tree(client).items() - before.items())
    assert added == {
        "/batches/bid0000000000/states": b"",
        "/batches/bid0000000000/states/batch-processing": b"",
        "/batches/bid0000000000/states/batch-processing/jid0000000001": b"",
        "/jobs/jid0000000001": b"",
        "/jobs/jid0000000001/bid": b"bid0000000000",
        "/jobs/jid0000000001/configuration": (
            b'{"profile_name":"ucsd_lib_content","submitter":"dpr","payload_url":"https://depot/1.zip",'
            b'"payload_type":"container","response_type":"json"}'
        ),
        "/jobs/jid0000000001/identifiers": b'{"primary_id":"ark:/99999/fk4x","local_id":["a","b"]}',
        "/jobs/jid0000000001/inventory": b'{"manifest_url":"https://store/m","mode":"add"}',
        "/jobs/jid0000000001/metadata": (
            b'{"erc_who":"Who","erc_what":"What","erc_when":"When","erc_where":"Where"}'
        ),
        "/jobs/jid0000000001/priority": b"2",
        "/jobs/jid0000000001/space_needed": b"1000000000000",
        "/jobs/jid0000000001/status": (
            b'{"status":"Pending","last_successful_status":null,' + STATUS + b',"retry_count":0,"message":""}'
        ),
        "/jobs/jid0000000001/store": b'{"manifest_url":"https://ingest/m","mode":"add","delete":"false"}',
        "/jobs/states/pending/02-jid0000000001": b"",
    }


def test_a_job_of_few_parts_has_no_other_nodes(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)

    names = ["bid", "configuration", "priority", "space_needed", "status"]
    assert sorted(client.get_children(job.path)) == names
    assert client.get(f"{job.path}/priority")[0] == b"5"


def test_where_a_job_stands_in_each_state(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue, priority=7)
    places = {"Failed": "batch-failed", "Completed": "batch-completed", "Deleted": "batch-deleted"}
    way = "Held Pending Estimating Provisioning Downloading Processing Storing Recording Notify Failed Notify Completed"
    for name in way.split():
        job = queue.jobs.set_status(job, JobState(name))

        lists = [path for path in tree(client) if path.endswith(job.id) and "/states/" in path]
        place = places.get(name, "batch-processing")
        assert lists == [
            f"{queue.batches.load(job.bid).path}/states/{place}/{job.id}",
            f"/jobs/states/{name.lower()}/07-{job.id}",
        ]


def test_the_status_of_a_job_that_fails_and_goes_on(client: KazooClient, queue: MerrittQueue) -> None:
    job = queue.jobs.set_status(new_job(queue), JobState.ESTIMATING)
    job = queue.jobs.set_status(job, JobState.PROVISIONING)
    job = queue.jobs.fail(job, "no space")
    assert client.get(job.status_path)[0] == (
        b'{"status":"Failed","last_successful_status":"Estimating",'
        + STATUS
        + b',"retry_count":0,"message":"no space"}'
    )

    job = queue.jobs.requeue(job)

    assert client.get(job.status_path)[0] == (
        b'{"status":"Provisioning","last_successful_status":"Estimating",'
        + STATUS
        + b',"retry_count":1,"message":""}'
    )


def test_an_access_request(client: KazooClient, queue: MerrittQueue) -> None:
    token: dict[str, Any] = {
        "token": "e2f9",
        "delivery-node": 7777,
        "cloud-content-byte": 9876543210,
        "status": 201,
        "url": "",
        "anticipated-availability-time": NOW,
    }
    small = queue.access.create("small", token)
    large = queue.access.create("large", {"token": "x"})

    data = json.dumps(token, separators=(",", ":")).encode()
    pending = b'{"status":"Pending",' + STATUS + b',"message":""}'
    assert tree(client) == {
        "/access/small/qid0000000000": b"",
        "/access/small/qid0000000000/status": pending,
        "/access/small/qid0000000000/token": data,
        "/access/large/qid0000000000": b"",
        "/access/large/qid0000000000/status": pending,
        "/access/large/qid0000000000/token": b'{"token":"x"}',
    }
    assert (small.queue, small.token, large.queue) == ("small", token, "large")

    taken = queue.access.acquire("small")
    assert taken is not None
    assert "/access/small/qid0000000000/lock" in tree(client)
    taken = queue.access.set_status(taken, AccessState.PROCESSING)
    taken = queue.access.set_token(taken, {**token, "status": 200, "url": "https://download/e2f9"})
    taken = queue.access.set_status(taken, AccessState.COMPLETED, unlock=True)
    assert taken.token["url"] == "https://download/e2f9"
    queue.access.delete(taken)
    assert [path for path in tree(client) if "small" in path] == []


def test_locks(client: KazooClient, queue: MerrittQueue) -> None:
    locks = queue.locks
    for name in ("ingest", "accessSmall", "accessLarge"):
        assert locks.lock_queue(name)
        assert not locks.lock_queue(name)
        assert locks.queue_is_locked(name)
    assert locks.lock_collection("ucsd_lib")
    assert locks.locked_collections() == ["ucsd_lib"]
    storage, inventory = locks.lock_storage("ark:/13030/m5x1"), locks.lock_inventory("ark:/13030/m5x1")
    local = locks.lock_local_id("doi:10/7", "ark:/13030/owner")

    nodes = tree(client)
    for path in ("queue/ingest", "queue/accessSmall", "queue/accessLarge", "collections/ucsd_lib"):
        assert nodes.pop(f"/locks/{path}") == b""
        assert client.get(f"/locks/{path}")[1].ephemeralOwner == 0
    assert list(nodes) == [
        "/locks/inventory/ark_13030_m5x1",
        "/locks/localid/doi:10_7ark_13030_owner",
        "/locks/storage/ark_13030_m5x1",
    ]
    for path, note in nodes.items():
        assert json.loads(note).keys() == {"owner", "time", "token"}
        assert client.get(path)[1].ephemeralOwner == client.client_id[0]
        assert (locks.holder(path) or "").startswith(f"ingest01:4711 since {NOW} (session 0x")

    assert locks.lock_storage("ark:/13030/m5x1") is None
    for lock in (storage, inventory, local):
        assert lock is not None
        assert locks.unlock(lock)
        assert not locks.unlock(lock)
    assert locks.unlock_collection("ucsd_lib")
    assert not locks.unlock_collection("ucsd_lib")
    assert all(locks.unlock_queue(name) for name in ("ingest", "accessSmall", "accessLarge"))
    assert tree(client) == {}


def test_a_report(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)
    queue.jobs.fail(job, "")
    batch = queue.batches.load(job.bid)
    client.set(batch.status_path, b'{"status":"Processing"}')
    taken = queue.batches.acquire_for_reporting()
    assert taken is not None

    done = queue.batches.finish_reporting(taken, [job.id], [])

    assert (done.state, done.lock) == (BatchState.FAILED, None)
    assert client.get(f"{batch.path}/status-report")[0] == (
        b'{"failed_jobs":["jid0000000001"],"successful_jobs":[]}'
    )
    assert queue.batches.report(done) == {"failed_jobs": [job.id], "successful_jobs": []}


def test_a_report_of_many_jobs_is_a_file_with_a_pointer(client: KazooClient, queue: MerrittQueue) -> None:
    batch = put_batch(client, queue, queue.batches.load(new_job(queue).bid), BatchState.REPORTING)
    many = [f"jid{number:010d}" for number in range(2_000)]
    with pytest.raises(MerrittNodeTooLarge, match="Write the data to a file"):
        queue.batches.finish_reporting(batch, [], many)
    files: list[bytes] = []

    def store(data: bytes) -> str:
        files.append(data)
        return "https://files/1.json"

    done = queue.batches.finish_reporting(batch, [], many, store=store)

    assert json.loads(files[0]) == {"failed_jobs": [], "successful_jobs": many}
    assert queue.batches.report(done) == {
        "url": "https://files/1.json",
        "failed_jobs_count": 0,
        "successful_jobs_count": 2_000,
    }


def test_what_is_too_large_is_refused_and_a_long_message_is_cut(
    client: KazooClient, queue: MerrittQueue
) -> None:
    before = tree(client)
    with pytest.raises(MerrittNodeTooLarge, match="Write the data to a file"):
        queue.batches.create({"note": "x" * 10_001})
    assert tree(client) == before

    failed = queue.jobs.fail(new_job(queue), "é" * 50_000)

    assert failed.message.endswith("… (cut)")
    assert len(client.get(failed.status_path)[0]) < 10_000


@pytest.mark.parametrize(
    ("node", "data"),
    [
        ("status", b"{"),
        ("status", b""),
        ("status", b'{"status":"Gone"}'),
        ("configuration", b"[1]"),
        ("priority", b"high"),
    ],
)
def test_what_cannot_be_read_is_named(
    client: KazooClient, queue: MerrittQueue, node: str, data: bytes
) -> None:
    job = new_job(queue)
    client.set(f"{job.path}/{node}", data)

    with pytest.raises(MerrittZKNodeInvalid, match=f"{job.path}/{node}"):
        queue.jobs.load(job.id)
    assert queue.jobs.list() == []
    assert queue.jobs.acquire(JobState.PENDING) is None
    assert not client.exists(job.lock_path)


def test_what_another_library_adds_stays(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)
    client.set(job.status_path, b'{"status":"Pending","last_modified":"x","theirs":[1]}')

    job = queue.jobs.set_status(queue.jobs.load(job.id), JobState.ESTIMATING)

    assert job.status["theirs"] == [1]
    assert job.retry_count == 0


@pytest.mark.parametrize("count", [b"null", b'"many"', b"[]", b"2"])
def test_a_wrong_count_does_not_make_a_job_look_deleted(
    client: KazooClient, queue: MerrittQueue, count: bytes
) -> None:
    job = new_job(queue)
    client.set(job.status_path, b'{"status":"Estimating","retry_count":' + count + b"}")

    (head,) = queue.jobs.heads([job.id])

    assert head is not None
    assert (head.state, head.retry_count) == (JobState.ESTIMATING, 2 if count == b"2" else 0)


def test_numbers_are_those_of_sequential_nodes(
    client: KazooClient, connect: Callable[[], KazooClient], queue: MerrittQueue
) -> None:
    assert queue.batches.create({}).id == "bid0000000000"
    client.delete(client.create("/batches/bid", sequence=True))
    assert queue.batches.create({}).id == "bid0000000002"
    assert client.create("/batches/bid", sequence=True) == "/batches/bid0000000003"
