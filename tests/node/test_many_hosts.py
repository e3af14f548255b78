"""Nodes of several hosts on one database: frozen and thawed, with one name, replaced. Real processes, PostgreSQL."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from node_fixtures import Cluster, lines, now_us

from long_tests import long_alone
from servers import postgres_schema
from spinney.host.boot import boot_id
from spinney.model.jobs import NodeInfo
from spinney.model.states import State
from spinney.node import instance as instances
from spinney.node.instance import Instance
from spinney.node.local_host import LocalHost
from spinney.store.sql import open_store
from waiting import until

SHORT = {"lease_period_s": 1.5, "beat_s": 0.1}
STRANGER = NodeInfo(
    id=0,
    name="elm",
    boot_id="b",
    host="far",
    pid=4_194_303,
    slots=2,
    state="active",
    beat=0,
    started_us=5,
    seen_us=0,
    version="1",
    types=(),
    lease_s=1.5,
)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with postgres_schema() as url:
        # Only now: the private server has its own lock in the user's run-time directory.
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = Cluster(tmp_path, url)
        yield made
        made.close()


@contextmanager
def beating(cluster: Cluster, node_id: int) -> Iterator[threading.Event]:
    """A heart for a node that is no process here; until it is told to be silent."""
    silent = threading.Event()

    def beat() -> None:
        store = open_store(cluster.url)
        while not silent.wait(0.05):
            store.beat(node_id, now_us=now_us())
        store.close()

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        yield silent
    finally:
        silent.set()
        heart.join()


# --- frozen and thawed ------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["supervisor", pytest.param("guard", marks=long_alone)])
def test_a_node_that_was_frozen_past_its_lease_finds_it_gone(cluster: Cluster, first: str) -> None:
    """Whichever of its processes the kernel lets go on first."""
    # Given a node of another host with two attempts at work
    elm = cluster.node(name="elm", host="far", slots=2, **SHORT)
    go, notes = cluster.file("go"), cluster.file("notes")
    ids = cluster.submit("wait_for", *({"file": str(go), "note_in": str(notes)} for _ in range(2)))
    until(lambda: len(lines(notes)) == 2, "both run")
    until(
        lambda: {job.state for job in map(cluster.store.job, ids)} == {State.RUNNING},
        "both are shown as running",
    )
    oak = cluster.node(
        name="oak", slots=2, lease_period_s=15.0, beat_s=0.1
    )  # the lease of elm decides, not its own
    # When it stands still for longer than its lease
    guard, supervisor, *workers = elm.pause()
    until(lambda: len(lines(notes)) == 4, "the other runs them")
    assert [n.name for n in cluster.store.nodes()] == ["oak"]
    # And goes on just when its attempts could end
    go.touch()
    order = [*workers, supervisor, guard] if first == "supervisor" else [guard, supervisor, *workers]
    for pid in order:
        if pid == guard and first == "supervisor":
            until(lambda: not _runs(supervisor), "the supervisor ends by itself")
        os.kill(pid, signal.SIGCONT)
    _, log = elm.process.communicate(timeout=20)
    # Then it stops them, ends, and says so
    assert elm.process.returncode == 1
    until(lambda: not any(map(_runs, workers)), "its attempts are stopped")
    # Whoever wakes first says it: the guard, the heart that comes too late, or the supervisor, which names them.
    told_it = "declared this one dead" in log
    assert told_it or "has not beaten in time" in log or "has not renewed its lease in time" in log
    if told_it:
        for job_id in ids:
            assert f"job={job_id} fence=" in log, log
    # And nothing of it counts
    jobs = cluster.settled(ids)
    assert {(job.state, job.node) for job in jobs} == {(State.COMPLETED, "oak")}
    for job_id in ids:
        history = cluster.attempts(job_id)
        assert [(a.outcome, a.node) for a in history] == [("lost", "elm"), ("ok", "oak")]
        assert history[0].fence < history[1].fence
    oak.stop()


@long_alone
def test_a_node_that_was_frozen_for_less_than_its_lease_goes_on(cluster: Cluster) -> None:
    elm = cluster.node(name="elm", host="far", slots=1, lease_period_s=10.0, beat_s=0.1)
    go, notes = cluster.file("go"), cluster.file("notes")
    ids = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    stopped = elm.pause()
    (frozen,) = cluster.store.nodes()
    cluster.node(name="oak", slots=1, **SHORT | {"lease_period_s": 10.0})
    go.touch()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert [(job.state, job.node) for job in cluster.settled(ids)] == [(State.COMPLETED, "elm")]
    until(lambda: next(n.beat for n in cluster.store.nodes() if n.name == "elm") > frozen.beat, "it beats")
    elm.stop()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# --- one name ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [pytest.param({}, marks=long_alone), {"replace": True}], ids=["plain", "replace"]
)
def test_a_name_that_beats_on_another_host_is_refused_and_taken_over_when_it_is_silent(
    cluster: Cluster, how: dict[str, bool]
) -> None:
    node_id = cluster.store.join(STRANGER, now_us=now_us())
    with beating(cluster, node_id) as silent:
        refused = cluster.start(name="elm", **SHORT, **how)
        _, log = refused.process.communicate(timeout=30)
        assert refused.process.returncode == 1
        assert "alive on far" in log
        assert ("out of reach of --replace" in log) is bool(how)
        assert "Traceback" not in log
        silent.set()
    elm = cluster.node(name="elm", **SHORT, **how)
    assert [n.pid for n in cluster.store.nodes()] == [elm.pid]
    assert cluster.run("noop")[0].node == "elm"


def test_a_process_that_has_not_the_lock_open_is_not_told_to_drain(tmp_path: Path) -> None:
    """In another container the guard's number is somebody else's."""
    here = LocalHost(host=socket.gethostname(), boot_id=boot_id(), run_dir=tmp_path, folder_root=tmp_path)
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        local = replace(STRANGER, host=here.host, boot_id=here.boot_id)
        held = instances.hold(tmp_path, Instance(name="elm", pid=bystander.pid, started_us=5))
        assert not here.within_reach(replace(local, pid=bystander.pid))
        own = instances.hold(tmp_path, Instance(name="elm", pid=os.getpid(), started_us=5))
        ours = replace(local, pid=os.getpid())
        assert here.within_reach(ours)
        assert not here.within_reach(replace(ours, host="far"))
        os.close(own)
        assert not here.within_reach(ours)
        os.close(held)
    finally:
        bystander.communicate(b"\n", timeout=10)


@long_alone
def test_replace_leaves_no_gap(cluster: Cluster) -> None:
    # Given a node with work for some seconds
    old = cluster.node(name="elm", slots=2)
    cluster.run("nap", {})
    ids = cluster.submit("nap", *({"seconds": 0.02} for _ in range(250)))
    # When another takes over meanwhile
    new = cluster.start(name="elm", slots=2, replace=True)
    jobs = cluster.settled(ids)
    new.joined()
    assert old.wait() == 0
    # Then both had a part in it, and between two starts there was never more than a moment
    starts = sorted((cluster.attempts(job.id)[0].started_us, job.id) for job in jobs)
    assert {job.state for job in jobs} == {State.COMPLETED}
    assert {len(cluster.attempts(i)) for i in ids} == {1}
    gap_s = max(b - a for (a, _), (b, _) in pairwise(starts)) / 1e6
    assert gap_s < 0.5, gap_s
    new.stop()
