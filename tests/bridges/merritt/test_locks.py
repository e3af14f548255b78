"""Locks: one holder at a time, gone with its session, and no write by who has lost one."""

import json
import subprocess
import sys
from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import new_batch, new_job, put_job, tree
from long_tests import LONG
from spinney.bridges.merritt import (
    AccessState,
    BatchState,
    JobState,
    MerrittConflict,
    MerrittLocked,
    MerrittQueue,
)
from waiting import until


def test_jobs_are_acquired_in_order_of_priority_and_number(queue: MerrittQueue) -> None:
    batch = new_batch(queue)
    jobs = [queue.jobs.create(batch.id, {}, priority=priority) for priority in (50, 5, 99, 5, 0)]

    acquired = [queue.jobs.acquire(JobState.PENDING) for _ in range(6)]

    expected = [jobs[4].id, jobs[1].id, jobs[3].id, jobs[0].id, jobs[2].id]
    assert [job.id for job in acquired if job] == expected
    assert acquired[5] is None
    assert queue.jobs.ids(JobState.PENDING) == expected


@pytest.mark.parametrize("what", ["jobs", "batches", "reports", "requests"])
def test_clients_that_acquire_at_once_never_get_the_same(
    client: KazooClient, connect: Callable[[], KazooClient], queue: MerrittQueue, what: str
) -> None:
    items = 60 if LONG else 30
    for _ in range(items):
        batch = new_batch(queue)
        if what == "jobs":
            queue.jobs.create(batch.id, {})
        if what == "requests":
            queue.access.create("large", {"token": "t"})
        if what == "reports":
            client.ensure_path(f"{batch.states_path}/batch-processing")
            client.set(batch.status_path, b'{"status":"Processing"}')
    acquired: list[list[str]] = [[], [], [], []]
    barrier = Barrier(len(acquired))

    def work(mine: list[str], each: MerrittQueue) -> None:
        verbs: dict[str, Callable[[], object]] = {
            "jobs": lambda: each.jobs.acquire(JobState.PENDING),
            "batches": each.batches.acquire_pending,
            "reports": each.batches.acquire_for_reporting,
            "requests": lambda: each.access.acquire("large"),
        }
        barrier.wait()
        while item := verbs[what]():
            mine.append(item.id)  # type: ignore[attr-defined]

    threads = [Thread(target=work, args=(mine, MerrittQueue(connect()))) for mine in acquired]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    every = [each for mine in acquired for each in mine]
    assert len(every) == len(set(every)) == items
    assert sum(bool(mine) for mine in acquired) > 1


_HOLDER = """
import sys, time
from kazoo.client import KazooClient
from spinney.bridges.merritt import JobState, MerrittQueue
client = KazooClient(sys.argv[1], timeout=1.0)
client.start()
queue = MerrittQueue(client, "victim")
assert queue.jobs.acquire(JobState.PENDING)
assert queue.locks.lock_storage("ark:/1/2")
print("holds", flush=True)
time.sleep(60)
"""


def test_a_client_that_is_killed_frees_what_it_holds(
    hosts: str, client: KazooClient, queue: MerrittQueue
) -> None:
    job = new_job(queue)
    victim = subprocess.Popen([sys.executable, "-c", _HOLDER, hosts], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"holds\n"
    assert queue.jobs.acquire(JobState.PENDING) is None
    assert queue.locks.lock_storage("ark:/1/2") is None
    with pytest.raises(MerrittLocked, match="victim since"):
        queue.jobs.set_status(job, JobState.FAILED)
    with pytest.raises(MerrittLocked, match="victim since"):
        queue.jobs.lock(queue.jobs.load(job.id))

    victim.kill()
    victim.wait()
    victim.stdout.close()

    until(lambda: not client.exists(job.lock_path))
    taken = queue.jobs.acquire(JobState.PENDING)
    assert taken is not None
    assert taken.id == job.id
    until(lambda: queue.locks.lock_storage("ark:/1/2"))


def expire(client: KazooClient, path: str) -> None:
    """End the session of a client as ZooKeeper does: the client goes on with a new one."""
    session = client.client_id

    def is_replaced() -> bool:
        """Take the session over and end it. On a busy machine the client may take it back before that."""
        thief = KazooClient(f"{client.hosts[0][0]}:{client.hosts[0][1]}", client_id=session, timeout=1.0)
        thief.start()
        thief.stop()
        thief.close()
        until(lambda: client.connected)
        return client.client_id not in (session, None)

    until(is_replaced)
    until(lambda: not client.exists(path))


def test_who_lost_the_lock_writes_no_more(connect: Callable[[], KazooClient], queue: MerrittQueue) -> None:
    new_job(queue)
    late_client = connect()
    late = MerrittQueue(late_client, "late")
    job = late.jobs.acquire(JobState.PENDING)
    assert job is not None
    assert job.lock is not None
    expire(late_client, job.lock_path)
    with pytest.raises(MerrittLocked, match="no longer held"):
        late.jobs.set_status(job, JobState.ESTIMATING)

    other = queue.jobs.acquire(JobState.PENDING)
    assert other is not None
    with pytest.raises((MerrittLocked, MerrittConflict)):
        late.jobs.set_status(job, JobState.FAILED)
    late.jobs.unlock(job)

    assert queue.jobs.set_status(other, JobState.ESTIMATING).state is JobState.ESTIMATING


def test_a_lock_of_another_library_is_respected(client: KazooClient, queue: MerrittQueue) -> None:
    job, batch = new_job(queue), new_batch(queue)
    for item in (job, batch):
        client.create(item.lock_path, ephemeral=True)

    assert queue.jobs.acquire(JobState.PENDING) is None
    with pytest.raises(MerrittLocked, match="another library"):
        queue.jobs.hold(job)
    with pytest.raises(MerrittLocked, match="another library"):
        queue.batches.set_status(batch, BatchState.HELD)
    client.delete(job.lock_path)
    held = queue.jobs.acquire(JobState.PENDING)
    assert held is not None

    client.delete(job.lock_path)  # by an operator; and a service of Merritt takes it
    client.create(job.lock_path, ephemeral=True)
    with pytest.raises(MerrittLocked, match="no longer held"):
        queue.jobs.set_status(held, JobState.ESTIMATING)


def test_a_job_that_hangs_is_failed_and_its_locks_are_broken(
    client: KazooClient, connect: Callable[[], KazooClient], queue: MerrittQueue
) -> None:
    job = new_job(queue, identifiers={"primary_id": "ark:/1/2"})
    other = MerrittQueue(connect())
    hanging = other.jobs.acquire(JobState.PENDING)
    other.locks.lock_storage("ark:/1/2")
    with pytest.raises(MerrittLocked):
        queue.jobs.fail(queue.jobs.load(job.id), "hangs")

    failed = queue.jobs.fail(queue.jobs.load(job.id), "hangs", break_locks=True)

    assert (failed.state, failed.message, failed.lock) == (JobState.FAILED, "hangs", None)
    assert not [path for path in tree(client) if "lock" in path]
    assert hanging is not None
    with pytest.raises(MerrittLocked):
        other.jobs.set_status(hanging, JobState.ESTIMATING)


def test_what_changed_since_it_was_read_is_refused(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)
    put_job(client, queue, job, JobState.FAILED)

    with pytest.raises(MerrittConflict, match="load it again"):
        queue.jobs.hold(job)
    with pytest.raises(MerrittConflict, match="load it again"):
        queue.jobs.lock(job)


def test_a_state_and_the_end_of_the_lock_are_one_write(client: KazooClient, queue: MerrittQueue) -> None:
    new_job(queue)
    queue.access.create("small", {"token": "t"})
    new_batch(queue)
    job, request = queue.jobs.acquire(JobState.PENDING), queue.access.acquire("small")
    batch = queue.batches.acquire_pending()
    assert job
    assert request
    assert batch

    assert queue.jobs.set_status(job, JobState.ESTIMATING, unlock=True).lock is None
    assert queue.access.set_status(request, AccessState.PROCESSING, unlock=True).lock is None
    assert queue.batches.set_status(batch, BatchState.FAILED, unlock=True).lock is None
    assert not [path for path in tree(client) if path.endswith("/lock")]
    again = queue.access.acquire("small", AccessState.PROCESSING)
    assert again is not None


def test_what_a_lock_says(client: KazooClient, queue: MerrittQueue) -> None:
    new_job(queue)
    job = queue.jobs.acquire(JobState.PENDING)
    assert job is not None

    note = json.loads(client.get(job.lock_path)[0])

    assert note["owner"] == "ingest01:4711"
    assert len(note["time"]) == len("2026-03-01 14:05:09 -0800")
    assert MerrittQueue(client)._client is client  # an owner is made up: host and process


def test_a_lock_needs_a_name(queue: MerrittQueue) -> None:
    for name in ("", "a/b", ".."):
        with pytest.raises(ValueError, match="needs a name"):
            queue.locks.lock_collection(name)
    with pytest.raises(ValueError, match="ingest, accessSmall, accessLarge"):
        queue.locks.lock_queue("small")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="small and large"):
        queue.access.acquire("medium")  # type: ignore[arg-type]
