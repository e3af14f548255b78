"""Every pair of states on a server: what is allowed moves the item, what is refused changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridges.merritt.test_states import allowed
from bridges.merritt.trees import finish_job, new_batch, new_job, put_batch, put_job, tree
from spinney.bridges.merritt import AccessState, BatchState, Job, JobState, MerrittQueue, MerrittStateError


def outcome(client: KazooClient, change: Callable[[], Any]) -> bool:
    """Tell whether the change was made; one that was refused must leave the tree as it was."""
    before = tree(client)
    try:
        change()
    except MerrittStateError:
        assert tree(client) == before
        return False
    return True


@pytest.mark.parametrize("before", JobState)
def test_jobs(client: KazooClient, queue: MerrittQueue, before: JobState) -> None:
    job = new_job(queue)
    for after in JobState:
        job = put_job(client, queue, job, before)
        if after is before:
            assert queue.jobs.set_status(job, after) == job
            continue
        made = outcome(client, lambda: queue.jobs.set_status(job, after))  # noqa: B023
        assert made == ((before, after) in allowed(JobState)), after
        job = queue.jobs.load(job.id)
        assert job.state is (after if made else before)
        if made:
            assert [finding for finding in queue.check() if finding.path != f"/batches/{job.bid}"] == []


@pytest.mark.parametrize("before", BatchState)
def test_batches(client: KazooClient, queue: MerrittQueue, before: BatchState) -> None:
    batch = new_batch(queue)
    for after in BatchState:
        batch = put_batch(client, queue, batch, before)
        if after is before:
            assert queue.batches.set_status(batch, after) == batch
            continue
        made = outcome(client, lambda: queue.batches.set_status(batch, after))  # noqa: B023
        assert made == ((before, after) in allowed(BatchState)), after


@pytest.mark.parametrize("before", AccessState)
def test_access_requests(client: KazooClient, queue: MerrittQueue, before: AccessState) -> None:
    for after in AccessState:
        request = queue.access.create("small", {"token": "t"})
        client.set(request.status_path, f'{{"status":"{before}"}}'.encode())
        request = queue.access.load("small", request.id)
        if after is not before:
            made = outcome(client, lambda: queue.access.set_status(request, after))  # noqa: B023
            assert made == ((before, after) in allowed(AccessState)), after


@pytest.mark.parametrize("state", JobState)
def test_what_can_be_deleted(client: KazooClient, queue: MerrittQueue, state: JobState) -> None:
    job = put_job(client, queue, new_job(queue), state)

    made = outcome(client, lambda: queue.jobs.delete(job))

    assert made == (state in (JobState.COMPLETED, JobState.DELETED))
    assert made == (not any(job.id in path for path in tree(client)))


def test_priority_with_and_without_a_state(client: KazooClient, queue: MerrittQueue) -> None:
    job = queue.jobs.set_status(new_job(queue), JobState.ESTIMATING, priority=30)
    assert client.get_children("/jobs/states/estimating") == [f"30-{job.id}"]
    job = queue.jobs.set_priority(job, 1)
    assert client.get_children("/jobs/states/estimating") == [f"01-{job.id}"]
    assert (job.priority, job.state, client.get(f"{job.path}/priority")[0]) == (1, JobState.ESTIMATING, b"1")
    with pytest.raises(ValueError, match="from 0 to 99"):
        queue.jobs.set_priority(job, 100)


def test_hold_and_release(queue: MerrittQueue) -> None:
    job = queue.jobs.hold(new_job(queue))
    assert queue.jobs.acquire(JobState.PENDING) is None
    with pytest.raises(MerrittStateError):
        queue.jobs.requeue(job)
    job = queue.jobs.release(job)
    with pytest.raises(MerrittStateError):
        queue.jobs.release(job)
    assert queue.jobs.acquire(JobState.PENDING) is not None


def test_parts_are_written_later(queue: MerrittQueue) -> None:
    job = new_job(queue)
    job = queue.jobs.set_parts(job, inventory={"manifest_url": "https://m", "mode": "add"})
    job = queue.jobs.set_parts(job, inventory={"manifest_url": "https://n"}, metadata={"erc_who": "w"})
    assert job == queue.jobs.load(job.id)
    job = queue.jobs.set_space_needed(job, 3_000_000_000)
    assert (job.inventory["manifest_url"], job.space_needed) == ("https://n", 3_000_000_000)
    with pytest.raises(ValueError, match="identifiers, metadata, inventory, store"):
        queue.jobs.set_parts(job, status={})


def test_a_batch_from_submission_to_deletion(client: KazooClient, queue: MerrittQueue) -> None:
    new_batch(queue, "bid-1")
    assert queue.batches.find_by_uuid("bid-2") is None
    batch = queue.batches.acquire_pending()
    assert batch is not None
    assert queue.batches.acquire_pending() is None
    jobs = [queue.jobs.create(batch.id, {"profile_name": "p"}) for _ in range(3)]
    queue.batches.unlock(batch)
    finish_job(client, queue, jobs[0])
    assert queue.batches.acquire_for_reporting() is None
    finish_job(client, queue, jobs[1])
    failed = finish_job(client, queue, jobs[2], JobState.FAILED)

    reporting = queue.batches.acquire_for_reporting()
    assert reporting is not None
    assert reporting.has_failure
    assert reporting.state is BatchState.REPORTING
    assert queue.batches.acquire_for_reporting() is None
    by_state = queue.batches.jobs(reporting)
    queue.batches.finish_reporting(reporting, by_state["batch-failed"], by_state["batch-completed"])
    assert queue.batches.acquire_for_reporting() is None
    assert queue.batches.delete_completed() == []

    queue.jobs.set_status(queue.jobs.requeue(failed, JobState.NOTIFY), JobState.COMPLETED)
    loaded = queue.batches.find_by_uuid("bid-1")
    assert loaded is not None
    queue.batches.set_status(loaded, BatchState.UPDATE_REPORTING)
    updating = queue.batches.acquire_for_update_reporting()
    assert updating is not None
    assert not updating.has_failure
    queue.batches.finish_reporting(updating, [], [failed.id])
    assert queue.batches.counts()[BatchState.COMPLETED] == 1
    assert queue.jobs.counts()[JobState.COMPLETED] == 3
    assert queue.check() == []

    assert queue.batches.delete_completed() == [updating.id]
    assert tree(client) == {}


def test_batches_and_requests_in_use_are_left_when_all_that_ended_are_deleted(
    client: KazooClient, queue: MerrittQueue
) -> None:
    batches = []
    for number in range(2):
        batch = new_batch(queue, f"bid-{number}")
        taken = queue.batches.acquire_pending()
        assert taken is not None
        job = finish_job(client, queue, queue.jobs.create(batch.id, {"profile_name": "p"}))
        reporting = queue.batches.set_status(taken, BatchState.REPORTING)
        batches.append(queue.batches.finish_reporting(reporting, [], [job.id]))
        request = queue.access.create("small", {"token": "t"})
        request = queue.access.set_status(request, AccessState.PROCESSING)
        request = queue.access.set_status(request, AccessState.COMPLETED)
        if number == 0:
            queue.batches.lock(batches[0])
            queue.access.lock(request)

    assert queue.batches.delete_completed() == [batches[1].id]
    assert queue.access.delete_completed() == ["small/qid0000000001"]


def test_a_deleted_batch_takes_failed_jobs_along_but_no_others(
    client: KazooClient, queue: MerrittQueue
) -> None:
    batch = new_batch(queue)
    failed = queue.jobs.create(batch.id, {})
    queue.jobs.fail(failed, "broken")
    running: Job = queue.jobs.create(batch.id, {})
    batch = put_batch(client, queue, batch, BatchState.DELETED)
    with pytest.raises(MerrittStateError, match=running.id):
        queue.batches.delete(batch)
    queue.jobs.hold(running)

    queue.batches.delete(batch)

    assert tree(client) == {}


def test_a_finished_batch_takes_no_more_jobs(client: KazooClient, queue: MerrittQueue) -> None:
    batch = put_batch(client, queue, new_batch(queue), BatchState.COMPLETED)
    with pytest.raises(MerrittStateError, match="create another batch"):
        queue.jobs.create(batch.id, {})


def test_a_large_batch_is_deleted_in_several_transactions(
    client: KazooClient, queue: MerrittQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.bridges.merritt.batches._MOST_OPERATIONS", 30)
    batch = new_batch(queue)
    for _ in range(12):
        queue.jobs.create(batch.id, {})
    for job_id in queue.jobs.ids():
        queue.jobs.hold(queue.jobs.load(job_id))
    batch = put_batch(client, queue, queue.batches.load(batch.id), BatchState.DELETED)

    queue.batches.delete(batch)

    assert tree(client) == {}
