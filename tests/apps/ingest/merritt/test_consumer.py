"""Jobs of Merritt's queue on an ingest service of ours: a real ZooKeeper, real processes, killed as crashes do."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from bridges.merritt.conftest import started
from bridges.merritt.trees import locks
from long_tests import LONG
from spinney.bridges.merritt import STEPS, Batch, BatchState, JobState, MerrittQueue
from zookeeper_servers import ensemble

from .service import IngestService

TESTS = Path(__file__).parents[3]


def ended(queue: MerrittQueue, *batches: Batch) -> bool:
    return all(
        queue.batches.load(each.id).state in (BatchState.COMPLETED, BatchState.FAILED) for each in batches
    )


def test_batches_become_jobs_objects_and_reports(
    running: IngestService, its_queue: MerrittQueue, its_client: KazooClient
) -> None:
    good, bad = running.submit(its_queue, 3), running.submit(its_queue, 2, missing=1)
    unreadable = its_queue.batches.create(
        {"batchID": "bid-none", "profile": "maps", "type": "batch-manifest", "filename": "none.checkm"}
    )

    running.until("reports", lambda: ended(its_queue, good, bad, unreadable))

    good, bad, unreadable = (its_queue.batches.load(each.id) for each in (good, bad, unreadable))
    assert (good.state, bad.state, unreadable.state) == (
        BatchState.COMPLETED,
        BatchState.FAILED,
        BatchState.FAILED,
    )
    report = its_queue.batches.report(bad)
    assert (len(report["failed_jobs"]), len(report["successful_jobs"])) == (1, 1)
    for job_id in its_queue.batches.jobs(good)["batch-completed"]:
        job = its_queue.jobs.load(job_id)
        assert (job.state, job.last_successful_status) == (JobState.COMPLETED, "Notify")
        assert job.identifiers["primary_id"].startswith("ark:/99999/fk4")
        assert job.space_needed > 0
        assert job.metadata["erc_where"] == job.identifiers["primary_id"]
    failed = its_queue.jobs.load(report["failed_jobs"][0])
    assert (failed.state, failed.last_successful_status) == (JobState.FAILED, "Provisioning")
    assert "0.txt" in failed.message
    (none,) = its_queue.batches.jobs(unreadable)["batch-failed"]
    assert "none.checkm" in its_queue.jobs.load(none).message
    assert locks(its_client) == []
    assert "merritt:" in running.spinney("bridges")
    assert its_queue.check() == []

    # An operator repairs the cause and requeues: the job goes on, and the batch reports again.
    (running.queue / bad.uuid / "0.txt").write_text("here now\n")
    running.spinney("merritt", "requeue", failed.id)
    running.until("the second report", lambda: its_queue.batches.load(bad.id).state is BatchState.COMPLETED)
    assert its_queue.batches.report(its_queue.batches.load(bad.id))["failed_jobs"] == []
    compare = ("merritt", "compare", "--name", "oak")
    running.until("agreement", lambda: "both sides agree" in running.spinney(*compare, code=None))


def test_locks_holds_and_deletions_of_operators_are_obeyed(
    running: IngestService, its_queue: MerrittQueue
) -> None:
    assert "locked" in running.spinney("merritt", "lock", "queue", "ingest")
    running.spinney("merritt", "lock", "collection", "maps")
    running.wait_for_look()
    batch = running.submit(its_queue, 1)
    running.wait_for_look()
    assert its_queue.batches.load(batch.id).state is BatchState.PENDING

    running.spinney("merritt", "unlock", "queue", "ingest")
    (job,) = running.until("a held job", lambda: its_queue.jobs.list(JobState.HELD))
    assert "locked" in job.message
    running.spinney("merritt", "unlock", "collection", "maps")
    running.spinney("merritt", "release", job.id)
    running.until("the report", lambda: ended(its_queue, batch))

    assert its_queue.jobs.load(job.id).state is JobState.COMPLETED


def test_a_job_that_is_failed_over_there_is_cancelled_here(
    running: IngestService, its_queue: MerrittQueue
) -> None:
    before = len(running.jobs())
    with running.standing_still("ingest-downloading"):
        batch = running.submit(its_queue, 1)
        (job,) = running.until("a job that waits", lambda: its_queue.jobs.list(JobState.DOWNLOADING))

        its_queue.jobs.fail(job, "an operator", break_locks=True)

        running.until("the report", lambda: ended(its_queue, batch))
        running.until("the job here to be cancelled", lambda: states(running, before) == ["cancelled"])
    assert (its_queue.jobs.load(job.id).state, its_queue.jobs.load(job.id).message) == (
        JobState.FAILED,
        "an operator",
    )


def states(service: IngestService, before: int) -> list[str]:
    """Those of all jobs but the first so many."""
    return [job["state"] for job in sorted(service.jobs(), key=lambda job: int(job["id"]))[before:]]


def test_a_second_store_under_the_same_name_is_refused(running: IngestService) -> None:
    other = IngestService(running.place.parent / "other", running.hosts, "oak")
    try:
        other.start()
        other.until("the refusal", lambda: "another store" in other.spinney("bridges"))
    finally:
        other.close()


def test_consumers_share_jobs_and_kills_lose_and_double_nothing(
    service: IngestService, queue: MerrittQueue, client: KazooClient, hosts: str
) -> None:
    """Ours and one that was written from the layout's description alone; both are killed again and again."""
    batches, objects, kills = (20, 50, 12) if LONG else (2, 4, 2)
    submitted = [service.submit(queue, objects) for _ in range(batches)]
    total, notes = batches * objects, service.place / "notes"
    words = [sys.executable, "-m", "apps.ingest.merritt.second_consumer", hosts, str(notes)]
    service.start()
    service.until("a mark of ours", lambda: client.exists("/spinney/nodes/oak"))
    other = subprocess.Popen(words, cwd=TESTS)
    try:
        for turn in range(kills):
            part = total * (turn + 1) // (kills + 2)
            service.until(
                "some jobs", lambda part=part: len(queue.jobs.ids(JobState.COMPLETED)) >= part, 600.0
            )
            other.kill()
            other.wait()
            service.kill_bridge() if turn % 2 else service.kill()
            service.start()
            other = subprocess.Popen(words, cwd=TESTS)
        service.until("the reports", lambda: ended(queue, *submitted), 1800.0 if LONG else 90.0)
    finally:
        other.terminate()
        assert other.wait(60) == 0
    service.stop()

    assert [queue.batches.load(each.id).state for each in submitted] == [BatchState.COMPLETED] * batches
    reported = [
        job
        for each in submitted
        for job in queue.batches.report(queue.batches.load(each.id))["successful_jobs"]
    ]
    assert sorted(reported) == sorted(queue.jobs.ids()) == sorted(queue.jobs.ids(JobState.COMPLETED))
    assert len(reported) == total
    lines = notes.read_text().splitlines() if notes.exists() else []
    begun = {line.split()[1] for line in lines if line.startswith("begin")}
    theirs = Counter(line.split()[1] for line in lines if line.startswith("end"))
    ours = {job.id: job.identifiers["primary_id"] for job in queue.jobs.list() if job.identifiers}
    assert set(theirs.values()) <= {1}
    assert begun | ours.keys() == set(reported)
    assert not theirs.keys() & ours.keys()
    assert (
        len(begun - theirs.keys() - ours.keys()) <= kills
    )  # killed between its last write there and its note
    listed = service.spinney("ingest", "find", "--json", "--limit", str(total)).splitlines()
    stored = [json.loads(line)["ark"] for line in listed]
    assert sorted(stored) == sorted(ours.values())
    assert locks(client) == []
    assert client.get_children("/spinney/nodes/oak") == client.get_children("/spinney/batches") == []


def test_who_was_silent_for_longer_than_a_session_gives_its_job_up(
    running: IngestService, its_queue: MerrittQueue, its_client: KazooClient
) -> None:
    before = len(running.jobs())
    with running.standing_still("ingest-downloading"):
        batch = running.submit(its_queue, 1)
        (job,) = running.until("a job that waits", lambda: its_queue.jobs.list(JobState.DOWNLOADING))

        os.kill(running.processes[-1].pid, signal.SIGSTOP)
        taken = running.until("the lock to be free", lambda: its_queue.jobs.acquire(JobState.DOWNLOADING))
        os.kill(running.processes[-1].pid, signal.SIGCONT)

        running.until("the job here to be cancelled", lambda: states(running, before) == ["cancelled"])
    for state in STEPS[STEPS.index(JobState.DOWNLOADING) + 1 :]:  # the other service goes on with it
        taken = its_queue.jobs.set_status(taken, state)
    its_queue.jobs.unlock(taken)
    running.until("the report", lambda: ended(its_queue, batch))
    assert (its_queue.jobs.load(job.id).state, locks(its_client)) == (JobState.COMPLETED, [])


def test_a_leader_that_is_lost_costs_nothing(tmp_path: Path) -> None:
    """An ensemble of three loses its leader while jobs are worked off."""
    with ensemble() as servers:
        addresses = ",".join(each.address for each in servers)
        client = started(addresses)
        queue = MerrittQueue(client)
        queue.initialize()
        service = IngestService(tmp_path / "oak", addresses, "oak")
        try:
            batch = service.submit(queue, 6)
            service.start()
            service.until("some jobs", lambda: len(queue.jobs.ids(JobState.COMPLETED)) >= 2)
            leader = next(each for each in servers if "Mode: leader" in each.command("srvr"))
            leader.kill()
            service.until("the report", lambda: _settled(queue, batch))

            assert queue.batches.load(batch.id).state is BatchState.COMPLETED
            assert len(queue.jobs.list(JobState.COMPLETED)) == 6
            assert len(service.spinney("ingest", "find", "--json").splitlines()) == 6
            service.stop()
            assert locks(client) == []
        finally:
            service.close()
            client.stop()
            client.close()


def _settled(queue: MerrittQueue, batch: Batch) -> bool:
    """Whether a batch has ended; False while a new leader is elected."""
    try:
        return ended(queue, batch)
    except KazooException:
        return False


def test_the_last_job_of_others_triggers_the_report_by_a_watch(
    tmp_path: Path, hosts: str, queue: MerrittQueue
) -> None:
    """Without it the batch would be reported at the next poll, in ten minutes."""
    settings = 'work = ["batches", "reports"]\n'
    service = IngestService(tmp_path / "oak", hosts, "oak", settings=settings, poll="600s")
    try:
        service.start()
        service.until("the bridge to work", lambda: "merritt:" in service.spinney("bridges"))
        batch = service.submit(queue, 2)
        jobs = service.until("the jobs", lambda: len(queue.jobs.ids()) == 2 and queue.jobs.list())
        for job in jobs:
            for state in STEPS[1:]:
                job = queue.jobs.set_status(job, state)

        service.until("the report", lambda: ended(queue, batch))
    finally:
        service.close()
