"""The database goes away under nodes at work: restarts, crashes, ended backends, a network that is cut, no connection
to be had, a full disk. What the history says afterwards is what counts."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from node_fixtures import Cluster, Node, lines

from long_tests import long_alone
from private_server import Network, PrivateServer, server_with_store_schema
from spinney.model.errors import StoreUnavailable
from spinney.model.states import SETTLED, State
from waiting import until

T = TypeVar("T")
LEASE_S = 8.0
"""The guard lets a node live for 6.4 s without its database."""
LOST = "a connection was lost in a commit"
"""What a node says that does not know whether its records are in."""
NO_CONNECTION = "no connection to spare"


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    made = PrivateServer()
    yield made
    made.stop("immediate")


@pytest.fixture
def place(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], Cluster]]:
    """Makes a house whose store is behind a port of the test's choice. Its nodes have a role that owns nothing."""
    if not server.running:
        server.start()
    with server.connect() as connection, contextlib.suppress(psycopg.errors.DuplicateObject):
        connection.execute("create role worker login")
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    with contextlib.ExitStack() as stack:
        schema = stack.enter_context(server_with_store_schema(server))

        def made(port: int) -> Cluster:
            cluster = Cluster(tmp_path, server.url(schema=schema))
            stack.callback(cluster.close)
            cluster.store.grant(["worker"])
            cluster.url = server.url(user="worker", schema=schema, port=port)
            return cluster

        yield made


@pytest.fixture
def cluster(place: Callable[[int], Cluster], server: PrivateServer) -> Cluster:
    return place(server.port)


@pytest.fixture
def network(server: PrivateServer) -> Iterator[Network]:
    made = Network(server.port)
    yield made
    made.close()


def begun(cluster: Cluster, type_: str = "wait_for") -> tuple[int, Path]:
    """A job that runs until a file is there."""
    go, notes = cluster.file("go"), cluster.file("notes")
    (job_id,) = cluster.submit(type_, {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    return job_id, go


def outcomes(cluster: Cluster, job_id: int) -> list[str]:
    return [str(attempt.outcome) for attempt in cluster.attempts(job_id)]


def settled(cluster: Cluster, ids: list[int], deadline_s: float = 40.0) -> None:
    """All completed, by one attempt each that passed; whatever else there was was interrupted, not failed."""
    give_up = time.monotonic() + deadline_s
    while True:
        try:
            jobs = cluster.settled(ids, deadline_s=5.0)
            break
        except (StoreUnavailable, AssertionError):
            if time.monotonic() > give_up:
                raise
    assert {job.state for job in jobs} == {State.COMPLETED}
    for job_id in ids:
        recorded = outcomes(cluster, job_id)
        assert recorded.count("ok") == 1, recorded
        assert set(recorded) <= {"ok", "lost"}, recorded
    assert sum(node.leases for node in cluster.store.nodes()) == 0, "every lease is accounted for"


def stopped(node: Node) -> str:
    assert node.process.poll() is None, "it has lived through it"
    return node.stop()


@pytest.mark.parametrize("how", [pytest.param("fast", marks=long_alone), "immediate"])
def test_a_restart_of_the_server_interrupts_nothing_and_loses_nothing(
    cluster: Cluster, server: PrivateServer, how: str
) -> None:
    # Given a job that runs and will ask for things, and many small ones; with the usual lease, for a busy machine may
    # take its time between the last beat and the end of what stops the server
    log_file = cluster.file("node.log")
    node = cluster.node(lease_period_s=15.0, log=log_file)
    long, go = begun(cluster, "asks_when_told")
    ids = cluster.submit("nap", *[{"seconds": 0.005}] * 100)
    until(lambda: cluster.counts().get("completed", 0) > 10, "they go on")
    # When the server is away, and the node has noticed it, while what runs ends
    server.stop(how)
    go.touch()
    until(lambda: len(lines(cluster.file("notes"))) > 1, "it asks")
    until(lambda: "degraded: " in log_file.read_text(), "it notices")
    server.start()
    # Then nothing ran twice, and the log says once what was and how long
    settled(cluster, [long, *ids])
    assert outcomes(cluster, long) == ["ok"]
    assert cluster.store.get_data(long) == {"seen": 1, "list": ["a"]}
    assert {tuple(outcomes(cluster, job_id)) for job_id in ids} == {("ok",)}
    until(lambda: "was cut off" in (cluster.store.nodes()[0].trouble or ""), "others are told")
    stopped(node)
    log = log_file.read_text()
    assert log.count("degraded: ") == 1
    assert log.count("no longer degraded, after ") == 1
    assert "Traceback" not in log


@long_alone
def test_backends_that_are_ended_again_and_again_cost_time_alone(
    cluster: Cluster, server: PrivateServer
) -> None:
    nodes = [cluster.node(name=name, lease_period_s=LEASE_S) for name in ("oak", "elm")]
    log = cluster.file("log")
    ids = cluster.submit("stages", *[{"log": str(log), "seconds": 0.0}] * 150)
    ids += cluster.submit("talks", *[{}] * 20)
    ended = 0
    with server.connect() as connection:
        for _ in range(12):
            time.sleep(0.1)
            ended += connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                "and backend_type = 'client backend' and application_name = ''"
            ).rowcount
    assert ended > 20

    until(lambda: _over(cluster) == len(ids), "all have settled")
    assert cluster.counts() == {"completed": len(ids)}
    for job_id in ids:
        per_stage = [(a.stage, a.outcome) for a in cluster.attempts(job_id)]
        passed = [stage for stage, outcome in per_stage if outcome == "ok"]
        assert len(passed) == len(set(passed)), per_stage
        assert {outcome for _, outcome in per_stage} <= {"ok", "lost"}, per_stage
    for node in nodes:
        assert "Traceback" not in stopped(node)


def test_what_was_committed_without_an_answer_is_done_once_and_no_lease_is_forgotten(
    place: Callable[[int], Cluster], network: Network
) -> None:
    # Given a node on the far side of a network that loses one answer to a commit in four
    cluster = place(network.port)
    log = cluster.file("node.log")
    node = cluster.node(lease_period_s=LEASE_S, log=log)
    ids = cluster.submit("stages", *[{"log": str(cluster.file("log")), "seconds": 0.0}] * 40)
    ids += cluster.submit("noop", *[{"n": n} for n in range(40)])
    asking = cluster.submit("talks", *[{}] * 5)
    network.lose_answers(4)
    # Many of those that are lost are the heartbeat's: until one of the records is among them, there is more to record
    while LOST not in log.read_text():
        ids.extend(cluster.submit("noop", *[{"n": n} for n in range(10)]))
        until(
            lambda: LOST in log.read_text() or _over(cluster) == len(ids) + len(asking),
            "one is lost, or all over",
        )
    network.lose_answers(0)

    # When all is done, then each stage passed once, no lease is left over, and nobody was called late
    until(lambda: _over(cluster) == len(ids) + len(asking), "all have settled")
    assert cluster.counts() == {"completed": len(ids) + len(asking)}
    # Of what is asked for, that which would be there twice interrupts its attempt instead
    assert {str(a.outcome) for job_id in asking for a in cluster.attempts(job_id)} <= {"ok", "lost"}
    for job_id in ids:
        stages = [a.stage for a in cluster.attempts(job_id) if a.outcome == "ok"]
        assert len(stages) == len(set(stages)), stages
        assert {a.outcome for a in cluster.attempts(job_id)} == {"ok"}
    until(lambda: sum(n.leases for n in cluster.store.nodes()) == 0, "every lease is accounted for")
    stopped(node)
    assert "refused late record" not in log.read_text()


@long_alone
def test_a_network_that_swallows_everything_for_a_while_interrupts_nothing(
    place: Callable[[int], Cluster], network: Network
) -> None:
    cluster = place(network.port)
    log = cluster.file("node.log")
    node = cluster.node(lease_period_s=LEASE_S, log=log)
    long, go = begun(cluster)
    ids = cluster.submit("nap", *[{"seconds": 0.005}] * 50)

    network.cut()
    go.touch()
    until(lambda: "degraded: " in log.read_text(), "a call has taken longer than it may")
    network.mend()

    settled(cluster, [long, *ids])
    assert outcomes(cluster, long) == ["ok"]
    until(lambda: "no longer degraded" in log.read_text(), "every call of the node has got through")
    stopped(node)


@long_alone
def test_beyond_the_lease_everything_is_ended_and_runs_again(cluster: Cluster, server: PrivateServer) -> None:
    """Nobody who is cut off can know that nobody else has taken his work: so the guard ends it in time."""
    node = cluster.node(lease_period_s=2.0)
    long, go = begun(cluster)
    server.stop()
    assert node.wait() == 1
    until(lambda: not cluster.living(), "nothing of it is left")
    go.touch()
    server.start()
    until(lambda: _quietly(cluster.store.nodes), "the store answers")
    again = cluster.node(lease_period_s=2.0)
    settled(cluster, [long])
    assert outcomes(cluster, long) == ["lost", "ok"]
    stopped(again)


@long_alone
def test_a_node_waits_until_there_is_a_connection_to_be_had(cluster: Cluster, server: PrivateServer) -> None:
    cluster.store.close()
    server.stop()
    server.start(max_connections="20", superuser_reserved_connections="3")
    try:
        logs = {name: cluster.file(f"{name}.log") for name in ("oak", "elm")}
        node = cluster.node(lease_period_s=LEASE_S, log=logs["oak"])
        long, go = begun(cluster)
        # When its connections end, and others have taken all there are
        others: list[psycopg.Connection[tuple[object, ...]]] = []
        with server.connect() as connection:
            stop = threading.Event()
            taker = threading.Thread(target=_take_all, args=(server, others, stop))
            taker.start()
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'worker'"
            )
            until(lambda: NO_CONNECTION in logs["oak"].read_text(), "it gets none")
            stop.set()
            taker.join()
            go.touch()
            # ... and a second node comes
            late = cluster.start(name="elm", lease_period_s=LEASE_S, log=logs["elm"])
            until(lambda: NO_CONNECTION in logs["elm"].read_text(), "that gets none either")
            assert late.process.poll() is None
        for other in others:
            other.close()
        # Then both go on as soon as there is room
        late.joined()
        settled(cluster, [long])
        assert outcomes(cluster, long) == ["ok"]
        stopped(node)
        stopped(late)
    finally:
        cluster.store.close()
        server.stop()
        server.start()


@long_alone
def test_a_full_disk_of_the_server_costs_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=120m", "none", disk], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    server = PrivateServer(disk, wal_segment_mb=1)
    try:
        server.start(min_wal_size="2MB", max_wal_size="4MB", wal_recycle="off")
        cluster = Cluster(tmp_path, server.url(schema="away"))
        try:
            _fill_and_empty(cluster, server, disk)
        finally:
            cluster.close()
    finally:
        server.stop("immediate")
        subprocess.run(["umount", "-l", disk], check=True)


def _fill_and_empty(cluster: Cluster, server: PrivateServer, disk: Path) -> None:
    log = cluster.file("node.log")
    node = cluster.node(lease_period_s=30.0, log=log)
    long, go = begun(cluster)
    ids = cluster.submit("nap", *[{"seconds": 0.005}] * 300)
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as out:
        while True:
            out.write(b"\0" * 65536)
    go.touch()
    until(lambda: not server.running or _refuses_to_grow(server), "the disk is full for the server")
    until(lambda: "degraded: " in log.read_text(), "the node has noticed it")
    assert node.process.poll() is None
    filler.unlink()
    if not server.running:  # PostgreSQL ends itself when its log cannot be written
        server.start(min_wal_size="2MB", max_wal_size="4MB", wal_recycle="off")
    settled(cluster, [long, *ids])
    assert outcomes(cluster, long) == ["ok"]
    stopped(node)


def _refuses_to_grow(server: PrivateServer) -> bool:
    try:
        with server.connect() as connection:
            connection.execute("create table if not exists junk (t text)")
            connection.execute(
                "insert into junk select repeat(md5(n::text), 20) from generate_series(1, 20000) n"
            )
    except psycopg.errors.DiskFull:
        return True
    except psycopg.Error:
        return not server.running
    return False


def _take_all(
    server: PrivateServer, taken: list["psycopg.Connection[tuple[object, ...]]"], stop: threading.Event
) -> None:
    while not stop.is_set():
        try:
            taken.append(server.connect())
        except psycopg.OperationalError:
            time.sleep(0.002)


def _over(cluster: Cluster) -> int:
    counts = _quietly(cluster.counts) or {}
    return sum(counts.get(state, 0) for state in SETTLED)


def _quietly(look: Callable[[], T]) -> T | None:
    try:
        return look()
    except Exception:  # noqa: BLE001 - the database is away
        return None
