"""Writers that are killed, connections that are lost: everything or nothing, and whoever asks is told."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import Create, Delete, SetData, Transaction

from bridges.merritt.conftest import LONG_SESSION_S, started
from bridges.merritt.trees import locks, new_batch, new_job, tree
from bridges.merritt.verbs import VERBS
from long_tests import LONG
from spinney.bridges.merritt import JobState, MerrittCommitUncertain, MerrittQueue
from spinney.bridges.merritt.nodes import existing
from waiting import until
from zookeeper_servers import ensemble, standalone

TESTS = Path(__file__).parents[2]


def shape(client: KazooClient) -> dict[str, bytes]:
    """Return the tree without what differs from run to run: times and locks."""
    nodes = {
        path: data
        for path, data in tree(client).items()
        if not path.endswith("/lock") and "/locks/" not in path
    }
    return {path: data.partition(b'"last_modified"')[0] for path, data in nodes.items()}


@pytest.mark.parametrize("name", VERBS)
def test_each_change_is_one_write(client: KazooClient, queue: MerrittQueue, name: str) -> None:
    """Which is why there is nothing between two writes."""
    prepare, verb, transactions = VERBS[name]
    prepare(client, queue)
    written: list[Any] = []
    call = client._call

    def recorded(request: Any, answer: Any) -> Any:
        if isinstance(request, Transaction | Create | SetData | Delete):
            written.append(request)
        return call(request, answer)

    client._call = recorded
    verb(queue)
    client._call = call

    assert [type(each) for each in written] == [Transaction] * transactions


@pytest.fixture(scope="module")
def victims() -> Iterator[Callable[..., int]]:
    """Returns what runs a verb in a process that dies at its write, and returns the exit code."""
    command = [sys.executable, "-m", "bridges.merritt.verbs"]
    with subprocess.Popen(
        command, cwd=TESTS, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as made:
        orders, codes = made.stdin, made.stdout
        assert orders is not None
        assert codes is not None

        def die(*words: str) -> int:
            print(*words, sep="\t", file=orders, flush=True)
            return int(codes.readline())

        yield die
        orders.close()  # which ends it


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", VERBS)
def test_a_writer_that_is_killed_leaves_nothing_half_done(
    hosts: str,
    client: KazooClient,
    queue: MerrittQueue,
    victims: Callable[..., int],
    name: str,
    when: str,
) -> None:
    prepare, verb, _ = VERBS[name]
    prepare(client, queue)
    before = shape(client)

    assert victims(hosts, name, when) == -9

    if when == "before":
        assert shape(client) == before
    left = locks(client)
    until(lambda: not existing(client, left))  # the session of the killed writer has ended
    pending = {f"{batch.path}/states" for batch in queue.batches.list()}
    assert [finding for finding in queue.check() if finding.path not in pending] == []
    if when == "after" and name not in ("acquire job", "acquire request", "storage lock"):
        assert shape(client) != before
    if when == "before":
        verb(queue)  # and who comes next does it


def test_a_batch_whose_consumer_died_is_taken_again_after_a_repair(
    client: KazooClient, queue: MerrittQueue
) -> None:
    new_batch(queue)
    batch = queue.batches.acquire_pending()
    assert batch is not None
    client.delete(batch.lock_path)  # as when its session ends
    assert queue.batches.acquire_pending() is None
    (finding,) = queue.check()
    assert (finding.path, finding.severity) == (batch.states_path, "WARN")

    (kept,) = queue.repair(dry_run=False)
    assert "younger than an hour" in kept.action
    assert client.exists(batch.states_path)

    (done,) = queue.repair(dry_run=False, also_recent=True)

    assert done.done
    again = queue.batches.acquire_pending()
    assert again is not None
    assert again.id == batch.id


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Let answers to transactions be lost, after they were committed or instead of it."""
    commit = TransactionRequest.commit

    def lose(committed: bool) -> None:
        def without_answer(request: TransactionRequest) -> None:
            if committed:
                commit(request)
            raise ConnectionLoss

        monkeypatch.setattr(TransactionRequest, "commit", without_answer)

    return lose


@pytest.mark.parametrize("committed", [True, False])
def test_where_the_answer_is_lost_the_queue_tells(
    queue: MerrittQueue, losing: Callable[[bool], None], committed: bool
) -> None:
    job = new_job(queue)
    losing(committed)
    if committed:
        batch = new_batch(queue, "bid-lost")
        assert batch.uuid == "bid-lost"
        taken = queue.jobs.acquire(JobState.PENDING)
        assert taken is not None
        assert queue.jobs.set_status(taken, JobState.ESTIMATING).state is JobState.ESTIMATING
        assert queue.locks.lock_storage("ark:/1/2") is not None
    else:
        for verb in (
            lambda: new_batch(queue, "bid-lost"),
            lambda: queue.jobs.acquire(JobState.PENDING),
            lambda: queue.jobs.hold(job),
            lambda: queue.locks.lock_storage("ark:/1/2"),
        ):
            with pytest.raises(MerrittCommitUncertain, match="Read it again"):
                verb()


def test_a_new_job_whose_answer_is_lost_is_not_repeated(
    queue: MerrittQueue, losing: Callable[[bool], None]
) -> None:
    batch = new_batch(queue)
    losing(True)
    with pytest.raises(MerrittCommitUncertain, match="jid0000000001"):
        queue.jobs.create(batch.id, {})
    assert queue.jobs.ids() == ["jid0000000001"]


_WORKER = """
import random, sys, time
from kazoo.client import KazooClient
from spinney.bridges.merritt import BatchState, JobState, MerrittQueue
from spinney.bridges.merritt.states import STEPS, next_states
client = KazooClient(sys.argv[1], timeout=0.5)
client.start()
queue = MerrittQueue(client)
while True:
    job = queue.jobs.acquire(random.choice(STEPS[:-1]))
    if job is not None:
        after = JobState.ESTIMATING if job.state is JobState.PENDING else next_states(job.state)[0]
        job = queue.jobs.set_parts(job, inventory={"mode": job.state})
        queue.jobs.set_status(job, after, priority=random.randrange(100), unlock=True)
        continue
    batch = queue.batches.acquire_for_reporting()
    if batch is not None:
        queue.batches.finish_reporting(batch, [], queue.batches.jobs(batch)["batch-completed"])
    elif all(batch.state is BatchState.COMPLETED for batch in queue.batches.list()):
        break
    else:
        time.sleep(0.03)
"""


def test_workers_that_are_killed_at_any_time_bring_all_jobs_to_their_end(
    hosts: str, client: KazooClient, queue: MerrittQueue
) -> None:
    """And never is a job without its lists, in two of them, or done twice."""
    jobs, kills = (200, 60) if LONG else (8, 4)
    for number in range(2):
        new_batch(queue, f"bid-{number}")
        batch = queue.batches.acquire_pending()
        assert batch is not None
        for _ in range(jobs):
            queue.jobs.create(batch.id, {})
        queue.batches.unlock(batch)

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", _WORKER, hosts], stderr=subprocess.PIPE)

    draw = random.Random(7)
    workers = [start() for _ in range(3)]
    try:
        for kill in range(kills):
            time.sleep(0.4 + draw.random() / 2)
            workers[kill % 3].kill()
            workers[kill % 3].communicate()
            assert queue.check() == []
            workers[kill % 3] = start()
        for worker in workers:
            _, errors = worker.communicate(timeout=3600 if LONG else 90)
            assert worker.returncode == 0, errors.decode()
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()

    assert queue.check() == []
    assert queue.jobs.counts()[JobState.COMPLETED] == 2 * jobs
    for batch in queue.batches.list():
        assert len(queue.batches.report(batch)["successful_jobs"]) == jobs
    assert len(queue.batches.delete_completed()) == 2
    assert tree(client) == {}


def test_a_lock_outlives_a_server_that_starts_again() -> None:
    with standalone() as server:
        # Named twice, so that a connection attempt may last half a session: a server that is just starting can accept a
        # connection and leave its request unanswered.
        client = started(f"{server.address},{server.address}", LONG_SESSION_S)
        queue = MerrittQueue(client)
        queue.initialize()
        new_job(queue)
        job = queue.jobs.acquire(JobState.PENDING)
        assert job is not None
        before = tree(client)

        server.kill()
        server.start()
        server.wait_until_serving()

        until(lambda: client.connected)
        assert tree(client) == before
        assert queue.jobs.set_status(job, JobState.ESTIMATING).lock == job.lock
        client.stop()
        client.close()


def test_sessions_and_locks_outlive_the_leader_of_three() -> None:
    with ensemble() as servers:
        hosts = ",".join(server.address for server in servers)
        client, other = started(hosts, LONG_SESSION_S), started(hosts, LONG_SESSION_S)
        queue = MerrittQueue(client)
        queue.initialize()
        jobs = [new_job(queue).id for _ in range(5)]
        job = queue.jobs.acquire(JobState.PENDING)
        assert job is not None
        session = client.client_id

        leader = next(server for server in servers if "Mode: leader" in server.command("srvr"))
        leader.kill()
        until(lambda: any("Mode: leader" in server.command("srvr") for server in servers))
        until(lambda: client.connected and other.connected)

        assert client.client_id == session
        moved = client.retry(queue.jobs.set_status, job, JobState.ESTIMATING)
        assert moved.lock == job.lock
        others = MerrittQueue(other)
        other.sync("/jobs")
        assert [others.jobs.acquire(JobState.PENDING) for _ in range(5)][-1] is None
        assert others.jobs.ids() == jobs
        jobs.append(others.jobs.create(job.bid, {}).id)
        leader.start()
        leader.wait_until_serving()
        alone = started(leader.address, LONG_SESSION_S)
        alone.sync("/jobs")
        assert MerrittQueue(alone).jobs.ids() == jobs
        for each in (client, other, alone):
            each.stop()
            each.close()
