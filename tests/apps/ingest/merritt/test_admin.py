"""The commands of operators, as they are typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from bridges.merritt.trees import CONFIGURATION, new_batch, new_job, tree
from cli.shell import Shell
from spinney.bridges import merritt_connection
from spinney.bridges.merritt import AccessState, BatchState, JobState, MerrittQueue

from .service import IngestService

Merritt = Callable[..., str]


@pytest.fixture
def merritt(hosts: str, tmp_path: Path) -> Merritt:
    """Run a command of ``spinney merritt`` and return what it prints."""

    def run(*words: str, code: int = 0, servers: str = hosts) -> str:
        result = Shell(tmp_path).call("merritt", *words, MERRITT_ZOOKEEPER=servers)
        assert result.returncode == code, (words, result.stdout, result.stderr)
        assert "Traceback" not in result.stderr
        return result.stdout + result.stderr

    return run


def test_jobs_are_listed_shown_held_released_requeued_and_deleted(
    queue: MerrittQueue, merritt: Merritt
) -> None:
    batch = new_batch(queue, "bid-1")
    first, second = (queue.jobs.create(batch.id, CONFIGURATION) for _ in range(2))
    listed = [json.loads(line) for line in merritt("ls", "--batch", batch.id, "--json").splitlines()]
    assert [(row["id"], row["state"]) for row in listed] == [(first.id, "Pending"), (second.id, "Pending")]
    assert json.loads(merritt("show", first.id))["configuration"] == CONFIGURATION

    assert "is Held" in merritt("hold", first.id)
    assert first.id in merritt("ls", "--state", "Held")
    assert "is Pending" in merritt("release", first.id)
    assert "only what is Held" in merritt("release", first.id, code=1)
    assert "only a failed job" in merritt("requeue", first.id, code=1)
    assert "only what is Completed or Deleted" in merritt("delete", first.id, code=1)

    for job_id in (first.id, second.id):
        queue.jobs.fail(queue.jobs.load(job_id), "broken")
    merritt("requeue", first.id, "--state", "Downloading")
    assert queue.jobs.load(first.id).state is JobState.DOWNLOADING
    assert "is Deleted" not in merritt("delete", second.id, "--failed")
    assert queue.jobs.ids() == [first.id]

    queue.jobs.lock(queue.jobs.load(first.id))  # its service hangs, and its session lasts
    assert "If that hangs, --break-locks deletes the lock." in merritt("fail", first.id, code=1)
    assert "is Failed" in merritt("fail", first.id, "--break-locks", "--reason", "host is gone")
    assert queue.jobs.load(first.id).message == "host is gone"


def test_batches_are_held_released_requeued_and_deleted(queue: MerrittQueue, merritt: Merritt) -> None:
    batch = new_batch(queue, "bid-7f")
    assert "lock the queue ingest" in merritt("hold", "bid-7f")
    assert queue.batches.acquire_pending() is None
    merritt("release", batch.id)
    taken = queue.batches.acquire_pending()
    assert taken is not None
    jobs = [queue.jobs.create(batch.id, CONFIGURATION) for _ in range(3)]
    for job in jobs:
        queue.jobs.fail(job, "broken")
    queue.batches.finish_reporting(
        queue.batches.set_status(taken, BatchState.REPORTING), [job.id for job in jobs], []
    )

    assert "UpdateReporting" in merritt("requeue", "bid-7f")

    assert [job.retry_count for job in queue.jobs.list(JobState.ESTIMATING)] == [1, 1, 1]
    assert json.loads(merritt("show", "bid-7f"))["jobs"]["batch-processing"] == [job.id for job in jobs]
    assert "bid-7f" in merritt("ls", "batches", "--state", "UpdateReporting")
    merritt("hold", batch.id, code=1)
    new_batch(queue, "bid-8")
    merritt("hold", "bid-8")
    merritt("delete", "bid-8", "--failed")
    assert queue.batches.find_by_uuid("bid-8") is None


def test_a_batch_is_requeued_although_some_of_its_jobs_cannot_be(
    client: KazooClient, queue: MerrittQueue, merritt: Merritt
) -> None:
    batch = new_batch(queue, "bid-7f")
    taken = queue.batches.acquire_pending()
    assert taken is not None
    locked, unreadable, sound = (queue.jobs.create(batch.id, CONFIGURATION) for _ in range(3))
    for job in (locked, unreadable, sound):
        queue.jobs.fail(job, "broken")
    reporting = queue.batches.set_status(taken, BatchState.REPORTING)
    queue.batches.finish_reporting(reporting, [locked.id, unreadable.id, sound.id], [])
    queue.jobs.lock(queue.jobs.load(locked.id))
    client.set(f"{unreadable.path}/configuration", b"{")

    refused = merritt("requeue", "bid-7f", code=1)

    assert "2 of 3 jobs" in refused
    assert (locked.id in refused, unreadable.id in refused, sound.id in refused) == (True, True, False)
    assert queue.jobs.ids(JobState.ESTIMATING) == [sound.id]
    assert queue.batches.load(batch.id).state is BatchState.UPDATE_REPORTING


def test_access_requests_are_shown_requeued_and_deleted(
    client: KazooClient, queue: MerrittQueue, merritt: Merritt
) -> None:
    request = queue.access.create("large", {"token": "t-1"})
    request = queue.access.set_status(request, AccessState.PROCESSING)
    queue.access.set_status(request, AccessState.FAILED, message="too large")
    name = f"large/{request.id}"
    assert json.loads(merritt("show", name))["token"] == {"token": "t-1"}
    assert "too large" in merritt("show", name)
    refusal = " ".join(merritt("hold", name, code=2).split())
    assert (
        f"{name} is an access request, which cannot be Held; 'spinney merritt lock queue accessLarge'"
        in refusal
    )
    assert "only what is Held" in merritt("release", name, code=1)
    assert "is Processing" in merritt("requeue", name)
    assert "--break-locks is for jobs" in merritt("fail", name, "--break-locks", code=2)
    assert "is Failed" in merritt("fail", name)
    merritt("delete", name, "--failed")
    assert tree(client) == {}

    request = queue.access.set_status(queue.access.create("small", {}), AccessState.PROCESSING)
    queue.access.set_status(request, AccessState.COMPLETED)
    assert "add --yes to confirm it" in merritt("cleanup", code=2)
    assert merritt("cleanup", "--yes") == "0 batches and 1 access request deleted\n"
    assert tree(client) == {}


def test_faults_are_checked_and_repaired_after_a_dry_run(
    client: KazooClient, queue: MerrittQueue, merritt: Merritt
) -> None:
    assert "nothing is wrong" in merritt("check")
    job = new_job(queue)
    client.create(f"/jobs/states/failed/05-{job.id}")
    client.create("/locks/storage/ark_1_2")
    client.set(f"{job.path}/configuration", b'{"note":"' + b"x" * 20_000 + b'"}')
    before = tree(client)

    rows = [json.loads(line) for line in merritt("check", "--json", code=1).splitlines()]
    assert [(row["kind"], row["path"], row["severity"]) for row in rows] == [
        ("duplicate", f"/jobs/states/failed/05-{job.id}", "WARN"),
        ("old lock", "/locks/storage/ark_1_2", "FAIL"),
        ("large", f"{job.path}/configuration", "WARN"),
    ]
    assert "Would delete" in merritt("repair", "--also-recent", "--break-locks", "--dry-run")
    assert tree(client) == before
    merritt("repair", "--also-recent", "--break-locks")
    assert [json.loads(line)["kind"] for line in merritt("check", "--json", code=1).splitlines()] == ["large"]


def test_locks_of_queues_and_collections(queue: MerrittQueue, merritt: Merritt) -> None:
    for words in (("queue", "accessLarge"), ("collection", "maps")):
        assert "locked" in merritt("lock", *words)
        assert "already locked" in merritt("lock", *words)
        assert words[1] in merritt("ls", "locks")
        assert "unlocked" in merritt("unlock", *words)
    merritt("lock", "queue", "medium", code=2)
    merritt("lock", "shelf", "maps", code=2)


def test_wrong_hosts_names_and_rights_are_said(
    client: KazooClient, queue: MerrittQueue, merritt: Merritt, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(merritt_connection, "CONNECT_S", 0.5)
        assert "no ZooKeeper server" in merritt("ls", servers="127.0.0.1:1", code=1)
    assert "is missing" in merritt("show", "jid0000000009", code=1)
    assert "there is no batch" in merritt("show", "bid-none", code=2)
    assert "is no state" in merritt("ls", "--state", "Lost", code=2)
    for kind, states in (("batches", BatchState), ("access", AccessState)):
        refusal = " ".join(merritt("ls", kind, "--state", "Faild", code=2).split())
        assert f"'Faild' is no state; use one of {', '.join(states)}" in refusal
    assert "locks have no state" in merritt("ls", "locks", "--state", "Failed", code=2)
    job = new_job(queue)
    client.set_acls(job.path, [make_digest_acl("someone", "else", all=True)])
    client.set_acls("/locks/collections", [make_digest_acl("someone", "else", all=True)])

    assert "no right to create" in merritt("hold", job.id, code=1)
    assert "NoAuthError" in merritt("ls", "locks", code=1)
    assert queue.jobs.load(job.id) == job


def test_a_consumer_does_not_start_without_the_folder_of_batches(merritt: Merritt, tmp_path: Path) -> None:
    settings = tmp_path / "merritt.toml"
    assert "has no 'queue'" in merritt("run", code=2)
    refusal = " ".join(merritt("run", "--settings", "other.toml", code=2).split())
    assert "other.toml cannot be read (No such file or directory)" in refusal
    settings.write_text('queue = "nowhere"\n')
    assert "no folder that can be written" in merritt("run", code=2)


def test_a_consumer_that_takes_no_batches_starts_without_the_ingest_settings(
    merritt: Merritt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a consumer that only does access requests, and a wrong file of ingest settings,
    (tmp_path / "merritt.toml").write_text('work = ["access"]\n')
    (tmp_path / "ingest.toml").write_text("no settings")
    monkeypatch.setattr(merritt_connection, "CONNECT_S", 0.5)
    # when it is started, then it gets as far as the connection.
    assert "no ZooKeeper server" in merritt("run", servers="127.0.0.1:1", code=1)


@pytest.mark.parametrize("work", ["batches", "jobs"])
def test_a_consumer_does_not_start_where_payloads_of_batches_could_not_be_fetched(
    service: IngestService, work: str
) -> None:
    with (service.place / "merritt.toml").open("a") as settings:
        settings.write(f'work = ["{work}"]\n')
    place = service.place / "ingest.toml"
    place.write_text("".join(line for line in place.read_text().splitlines(True) if "file_roots" not in line))
    printed = service.spinney("merritt", "run", code=2)
    assert f"{service.queue} is below none of the file_roots" in " ".join(printed.split())


def test_the_check_of_the_bridge_compares_both_sides(
    service: IngestService, client: KazooClient, queue: MerrittQueue
) -> None:
    words = ("bridge", "check", "merritt", "--name", service.name)
    assert "both sides agree" in service.spinney(*words)

    client.create(f"/spinney/nodes/{service.name}/jid0000000007", b'{"claim": "0.1"}', makepath=True)

    assert "jid0000000007" in service.spinney(*words, code=1)
