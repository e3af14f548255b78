"""What Merritt's own libraries leave when they die between two writes: found, told, and mended."""

import json
import time
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import new_batch, new_job, put_batch, put_job, tree
from spinney.bridges.merritt import BatchState, JobState, MerrittQueue
from spinney.bridges.merritt.consistency.check import Kind

Step = Callable[[], object]


def later() -> float:
    """Return a time at which what tests leave is old."""
    return time.time() + 4000


def their_batch(client: KazooClient) -> list[Step]:
    """Return the writes with which Merritt's library creates a batch."""
    return [
        lambda: client.create("/batches/bid", sequence=True),
        lambda: client.create("/batch-uuids/bid-7f", b"bid0000000000"),
        lambda: client.create("/batches/bid0000000000/submission", b'{"batchID":"bid-7f"}'),
        lambda: client.create("/batches/bid0000000000/status", b'{"status":"Pending","last_modified":"x"}'),
    ]


def their_job(client: KazooClient) -> list[Step]:
    """Return the writes with which Merritt's library creates a job in the batch bid0000000000."""
    job, states = "/jobs/jid0000000001", "/batches/bid0000000000/states"
    status = (
        b'{"status":"Pending","last_successful_status":null,"last_modified":"x","retry_count":0,"message":""}'
    )
    return [
        lambda: client.create("/jobs/jid", sequence=True),
        lambda: client.create(f"{job}/bid", b"bid0000000000"),
        lambda: client.create(f"{job}/priority", b"5"),
        lambda: client.create(f"{job}/space_needed", b"0"),
        lambda: client.create(f"{job}/configuration", b'{"profile_name":"p"}'),
        lambda: client.create(f"{job}/status", status),
        lambda: client.create(states),
        lambda: client.create(f"{states}/batch-processing"),
        lambda: client.create(f"{states}/batch-processing/jid0000000001"),
        lambda: client.create("/jobs/states/pending/05-jid0000000001"),
    ]


def their_failure(client: KazooClient) -> list[Step]:
    """Return the writes with which Merritt's library fails the pending job jid0000000001."""
    states = "/batches/bid0000000000/states"
    return [
        lambda: client.set("/jobs/jid0000000001/status", b'{"status":"Failed","retry_count":0}'),
        lambda: client.delete("/jobs/states/pending/05-jid0000000001"),
        lambda: client.create("/jobs/states/failed/05-jid0000000001"),
        lambda: client.delete(f"{states}/batch-processing/jid0000000001"),
        lambda: client.ensure_path(f"{states}/batch-failed"),
        lambda: client.create(f"{states}/batch-failed/jid0000000001"),
    ]


def mended(client: KazooClient, queue: MerrittQueue) -> None:
    """Repair until nothing is left to mend; a dry run changes nothing."""
    before = tree(client)
    plan = queue.repair(dry_run=True, clock=later)
    assert tree(client) == before
    assert not any(each.done for each in plan)
    for _ in range(3):
        queue.repair(dry_run=False, clock=later)
    assert queue.check(later) == []


@pytest.mark.parametrize("writes", range(1, 5))
def test_a_batch_that_was_begun(client: KazooClient, queue: MerrittQueue, writes: int) -> None:
    for step in their_batch(client)[:writes]:
        step()
    assert (queue.check(later) == []) == (writes == 4)
    assert all(finding.severity == "WARN" for finding in queue.check())

    mended(client, queue)

    batches = queue.batches.list(BatchState.PENDING)
    assert [batch.uuid for batch in batches] == (["bid-7f"] if writes >= 3 else [])
    assert bool(client.exists("/batch-uuids/bid-7f")) == (writes >= 3)
    if writes >= 3:
        assert queue.batches.acquire_pending() is not None


@pytest.mark.parametrize("writes", range(1, 11))
def test_a_job_that_was_begun(client: KazooClient, queue: MerrittQueue, writes: int) -> None:
    new_batch(queue)
    for step in their_job(client)[:writes]:
        step()
    assert (queue.check(later) == []) == (writes == 10)

    mended(client, queue)

    job = queue.jobs.acquire(JobState.PENDING)
    assert (job is not None) == (writes >= 6)
    assert (queue.jobs.ids() == []) == (writes < 6)
    if writes < 6:
        assert queue.batches.acquire_pending() is not None


@pytest.mark.parametrize("writes", range(1, 7))
def test_a_job_that_was_being_failed(client: KazooClient, queue: MerrittQueue, writes: int) -> None:
    new_batch(queue)
    for step in [*their_job(client), *their_failure(client)[:writes]]:
        step()
    kinds = {finding.kind for finding in queue.check(later)}
    assert kinds <= {Kind.MISSING, Kind.DUPLICATE}
    assert (not kinds) == (writes == 6)

    mended(client, queue)

    assert queue.jobs.counts()[JobState.FAILED] == 1
    assert queue.jobs.counts()[JobState.PENDING] == 0
    assert queue.batches.jobs(queue.batches.load("bid0000000000"))["batch-failed"] == ["jid0000000001"]
    queue.jobs.requeue(queue.jobs.load("jid0000000001"))


def test_a_batch_is_reported_when_the_failure_of_its_job_is_written_and_not_before(
    client: KazooClient, queue: MerrittQueue, caplog: pytest.LogCaptureFixture
) -> None:
    batch = new_batch(queue)
    for step in their_job(client):
        step()
    put_batch(client, queue, batch, BatchState.PROCESSING)
    for step in their_failure(client):
        assert all(queue.batches.acquire_for_reporting() is None for _ in range(3))
        assert all(queue.batches.acquire_for_update_reporting() is None for _ in range(3))
        step()
    (warning,) = caplog.messages
    assert "jid0000000001 is Failed, but is in no list" in warning

    reporting = queue.batches.acquire_for_reporting()

    assert reporting is not None
    assert reporting.has_failure


def test_a_completed_batch_with_a_failed_job_is_a_finding(client: KazooClient, queue: MerrittQueue) -> None:
    job = put_job(client, queue, new_job(queue), JobState.FAILED)
    batch = put_batch(client, queue, queue.batches.load(job.bid), BatchState.COMPLETED)

    (finding,) = queue.check(later)

    assert (finding.kind, finding.path, finding.severity) == (Kind.INVALID, batch.path, "FAIL")
    assert "Jobs of it have failed" in finding.message


def test_a_deletion_that_was_cut_off(client: KazooClient, queue: MerrittQueue) -> None:
    job = put_job(client, queue, new_job(queue), JobState.COMPLETED)
    client.delete(job.path, recursive=True)
    orphans = [finding for finding in queue.check(later) if finding.kind is Kind.ORPHAN]
    assert sorted(finding.path for finding in orphans) == sorted(job.pointers)

    mended(client, queue)

    assert not any(client.exists(pointer) for pointer in job.pointers)


def test_what_somebody_must_decide_is_left(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)
    client.delete(f"/batches/{job.bid}", recursive=True)
    client.create("/jobs/unheard-of")
    broken = new_job(queue)
    client.set(f"{broken.path}/configuration", b"{")

    findings = {(finding.kind, finding.path) for finding in queue.check(later)}
    assert findings == {
        (Kind.ORPHAN, job.path),
        (Kind.UNKNOWN, "/jobs/unheard-of"),
        (Kind.INVALID, f"{broken.path}/configuration"),
    }

    before = tree(client)
    repairs = queue.repair(dry_run=False, clock=later)
    assert [(each.done, "decide" in each.action) for each in repairs] == [(False, True)] * 3
    assert tree(client) == before


def test_locks_of_two_minutes_are_told_and_broken_only_on_demand(
    client: KazooClient, connect: Callable[[], KazooClient], queue: MerrittQueue
) -> None:
    new_job(queue)
    job = MerrittQueue(connect()).jobs.acquire(JobState.PENDING)
    assert job is not None
    assert queue.check() == []
    in_two_minutes = time.time() + 125
    (finding,) = queue.check(lambda: in_two_minutes)
    assert (finding.kind, finding.path, finding.severity) == (Kind.OLD_LOCK, job.lock_path, "FAIL")

    (kept,) = queue.repair(dry_run=False, clock=lambda: in_two_minutes)
    assert not kept.done
    assert client.exists(job.lock_path)
    (broken,) = queue.repair(dry_run=False, break_locks=True, clock=lambda: in_two_minutes)
    assert broken.done
    assert not client.exists(job.lock_path)


def test_a_lock_without_a_session_is_told_at_once(client: KazooClient, queue: MerrittQueue) -> None:
    job = new_job(queue)
    client.create(job.lock_path)
    (finding,) = queue.check()
    assert "no session" in finding.message
    assert queue.repair(dry_run=False, break_locks=True)[0].done


def test_what_somebody_works_at_is_left_alone(
    client: KazooClient, connect: Callable[[], KazooClient], queue: MerrittQueue
) -> None:
    job = new_job(queue)
    MerrittQueue(connect()).jobs.acquire(JobState.PENDING)
    client.delete(job.pointers[0])

    (repair,) = queue.repair(dry_run=False, also_recent=True)

    assert not repair.done
    assert "another process works on it" in repair.action


def test_what_changed_since_the_check_is_left(client: KazooClient, queue: MerrittQueue) -> None:
    from spinney.bridges.merritt.consistency import repair

    job = new_job(queue)
    client.create("/jobs/states/failed/05-" + job.id)
    findings = queue.check(later)
    queue.jobs.set_status(job, JobState.FAILED)

    (done,) = repair.mend(client, findings, dry_run=False)

    assert not done.done
    assert "has changed" in done.action
    assert client.exists("/jobs/states/failed/05-" + job.id)


def test_a_queue_at_work_has_no_findings(client: KazooClient, queue: MerrittQueue) -> None:
    batch = queue.batches.create({"batchID": "bid-1"})
    jobs = [queue.jobs.create(batch.id, {}, priority=priority) for priority in range(8)]
    for job, state in zip(jobs, list(JobState), strict=False):
        put_job(client, queue, job, state)
    queue.access.create("large", {"token": "t"})
    queue.locks.lock_queue("ingest")
    queue.locks.lock_collection("ucsd")
    queue.locks.lock_storage("ark:/1/2")
    queue.locks.lock_local_id("l", "o")
    client.create(f"{batch.path}/status-report", json.dumps({"failed_jobs": []}).encode())

    assert queue.check() == []
    old_locks = [(finding.kind, finding.path) for finding in queue.check(later)]
    assert sorted(old_locks) == [
        (Kind.OLD_LOCK, "/locks/localid/lo"),
        (Kind.OLD_LOCK, "/locks/storage/ark_1_2"),
    ]


def test_an_empty_zookeeper_has_no_findings(client: KazooClient) -> None:
    assert MerrittQueue(client).check() == []
