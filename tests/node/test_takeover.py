"""Entering under a name that somebody has, or has had."""

import asyncio
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from node_fixtures import NODE, Cluster, cluster, lines, now_us

from new_store import new_store
from spinney.model.errors import NodeRefused, UsageError
from spinney.model.jobs import NodeInfo
from spinney.model.states import State
from spinney.node import instance as instances
from spinney.node.instance import INSTANCE_VARIABLE, Instance
from spinney.node.lifecycle.recovery import read_pages
from spinney.node.lifecycle.takeover import join_cluster, startup_lock, wait_for_name
from spinney.node.local_host import LocalHost, instance_of
from spinney.node.store_thread import StoreThread
from spinney.store.sql import open_store
from waiting import until

__all__ = ["cluster"]


def test_what_a_lost_answer_left_of_a_start_does_not_stay(tmp_path: Path) -> None:
    # Given a node that joined, and did not hear of it
    store = open_store(new_store(tmp_path / "spinney.db"))
    other = join_cluster(store, replace(NODE, name="ash"), now_us()).id
    join_cluster(store, NODE, now_us())
    # When it joins once more
    node_id = join_cluster(store, NODE, now_us()).id
    # Then nothing is there that anybody could take for dead, and kill what bears its mark
    assert [node.id for node in store.nodes()] == [other, node_id]
    store.close()


def test_a_node_that_is_declared_dead_while_it_starts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a node whose machine stands still just when it has joined
    store = open_store(new_store(tmp_path / "spinney.db"))
    join = store.join

    def join_and_stand_still(node: NodeInfo, *, now_us: int) -> int:
        node_id = join(node, now_us=now_us)
        store.recover(node_id, None, now_us=now_us)
        return node_id

    monkeypatch.setattr(store, "join", join_and_stand_still)
    # When it goes on
    with pytest.raises(NodeRefused, match="start it again"):
        join_cluster(store, NODE, now_us())
    store.close()


def starting(
    db: StoreThread,
    host: object,
    *,
    replace: bool,
    lease_period_s: float = 15.0,
    clock: Callable[[], int] = now_us,
) -> Any:
    """What a node that starts on this host has when it waits for its name."""
    settings = SimpleNamespace(name=NODE.name, replace=replace, lease_period_s=lease_period_s)
    return SimpleNamespace(writer=db, host=host, settings=settings, now_us=clock)


async def test_a_start_that_waits_for_another_of_its_name_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    flock, looks, looked_again = fcntl.flock, count(), asyncio.Event()

    def counted(fd: int, operation: int) -> None:
        if next(looks) == 5:
            looked_again.set()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", counted)

    async def start() -> None:
        async with startup_lock(tmp_path, "oak"):
            pass

    # Given a start that is under way
    async with startup_lock(tmp_path, "oak"):
        # When another of the same name begins, and the first one is over
        second = asyncio.create_task(start())
        await looked_again.wait()
        waits = [*caplog.messages]
    await second
    # Then it has said once for what it waited
    assert len(waits) == 1
    assert "another start of node oak is under way" in waits[0]
    assert str(tmp_path / "start-oak.lock") in waits[0]


async def test_a_node_that_beats_just_when_its_lease_has_been_waited_out_is_alive(tmp_path: Path) -> None:
    # Given a node that is silent for its lease, as one is while another program has the file locked
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    node_id = store.join(NODE, now_us=now_us())
    clock = count(step=10.0)

    def beats_first() -> int:
        store.beat(node_id, now_us=now_us())
        return now_us()

    registered: list[str] = []

    async def register() -> None:
        registered.append("types")

    # When it beats before a starting one of its name has declared it dead
    here = LocalHost(host="elsewhere", boot_id="b", run_dir=tmp_path, folder_root=tmp_path)
    async with StoreThread("starting", lambda: open_store(url)) as db:
        context = starting(db, here, replace=False, lease_period_s=1.0, clock=beats_first)
        with pytest.raises(NodeRefused, match="is alive on h"):
            await wait_for_name(context, register, monotonic=lambda: next(clock))
    # Then it has not left, and nothing of the refused one is in the store
    assert [node.id for node in store.nodes()] == [node_id]
    assert not registered
    store.close()


async def test_a_node_is_asked_to_drain_only_when_the_application_of_its_successor_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a living node of the name, and a successor whose application the store refuses at first
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    node_id = store.join(NODE, now_us=now_us())
    steps: list[str] = []
    refusal: list[Exception] = [UsageError("no such type")]

    async def register() -> None:
        steps.append("register")
        if refusal:
            raise refusal.pop()

    def drains(pid: int, number: int) -> None:
        assert (pid, number) == (NODE.pid, signal.SIGTERM)
        steps.append("drain")
        store.update_node(node_id, state="draining", now_us=now_us())

    monkeypatch.setattr(os, "kill", drains)
    async with StoreThread("starting", lambda: open_store(url)) as db:
        context = starting(
            db, SimpleNamespace(proven_gone=lambda node: False, within_reach=lambda node: True), replace=True
        )
        # When it starts, and starts again
        with pytest.raises(UsageError):
            await wait_for_name(context, register)
        assert steps == ["register"]
        await wait_for_name(context, register)
    # Then the node worked on in between
    assert steps == ["register", "register", "drain"]
    store.close()


async def test_a_living_node_is_asked_to_drain_after_registration_also_beside_a_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two nodes of the name, one of which is proven to have ended
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    gone_id = store.join(replace(NODE, host="elsewhere"), now_us=now_us())
    living_id = store.join(NODE, now_us=now_us())
    steps: list[str] = []

    async def register() -> None:
        steps.append("register")

    def drains(pid: int, number: int) -> None:
        steps.append("drain")
        store.update_node(living_id, state="draining", now_us=now_us())

    monkeypatch.setattr(os, "kill", drains)
    async with StoreThread("starting", lambda: open_store(url)) as db:
        context = starting(
            db,
            SimpleNamespace(
                proven_gone=lambda node: node.id == gone_id,
                within_reach=lambda node: True,
                local=lambda node: False,
            ),
            replace=True,
        )
        # When a third one takes over
        await wait_for_name(context, register)
    # Then the living one is asked to drain only after that one's application is registered
    assert steps == ["register", "drain"]
    store.close()


async def test_no_node_is_asked_to_drain_while_another_of_its_name_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two living nodes of the name, one of which is on another host
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    store.join(NODE, now_us=now_us())
    far_id = store.join(replace(NODE, host="far"), now_us=now_us())
    drained: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: drained.append(pid))

    def monotonic() -> float:
        store.beat(far_id, now_us=now_us())
        return time.monotonic()

    async def register() -> None:
        raise AssertionError("a node that may not start is registered")

    async with StoreThread("starting", lambda: open_store(url)) as db:
        context = starting(
            db,
            SimpleNamespace(proven_gone=lambda node: False, within_reach=lambda node: node.host != "far"),
            replace=True,
        )
        # When one is to take over from them, it is refused
        with pytest.raises(NodeRefused, match=r"is alive on far .*, out of reach of --replace"):
            await wait_for_name(context, register, monotonic=monotonic)
    # Then the one in reach works on
    assert not drained
    store.close()


@pytest.mark.parametrize(("beats_after_s", "advised"), [(1.0, False), (6.0, True)])
async def test_a_start_is_told_how_to_declare_a_node_dead_only_when_that_one_is_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, beats_after_s: float, advised: bool
) -> None:
    # Given a node that beats after a while
    caplog.set_level(logging.INFO)
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    node_id = store.join(NODE, now_us=now_us())
    now_s = count(step=0.5)

    def monotonic() -> float:
        if (seconds := next(now_s)) >= beats_after_s:
            store.beat(node_id, now_us=now_us())
        return seconds

    async def register() -> None:
        raise AssertionError("a node that may not start is registered")

    # When another one starts under its name
    here = LocalHost(host="elsewhere", boot_id="b", run_dir=tmp_path, folder_root=tmp_path)
    async with StoreThread("starting", lambda: open_store(url)) as db:
        context = starting(db, here, replace=False)
        with pytest.raises(NodeRefused, match="is alive on h"):
            await wait_for_name(context, register, monotonic=monotonic)
    # Then it was told so if that one might have been dead
    assert ("--dead oak" in caplog.text) is advised
    store.close()


def test_a_node_of_another_name_takes_back_at_once_what_is_proven_gone(cluster: Cluster) -> None:
    one = cluster.node(name="one", lease_period_s=600)
    go, notes = cluster.file("go"), cluster.file("notes")
    (job_id,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    cluster.node(name="two", lease_period_s=600)
    go.touch()
    one.kill()
    (job,) = cluster.settled([job_id])
    assert job.node == "two" or len(cluster.attempts(job_id)) == 1


def test_without_proof_the_lease_is_waited_out(cluster: Cluster) -> None:
    # Given a node of another boot that beats no more
    stranger = replace(NODE, boot_id="another boot", slots=2, lease_s=1.0)
    cluster.store.join(stranger, now_us=now_us())
    # When a node starts under its name, with a longer lease of its own
    began = time.monotonic()
    cluster.node(name="oak", lease_period_s=600)
    # Then it has waited for the lease of the other, not for its own
    assert time.monotonic() - began >= 1.0
    assert [n.pid for n in cluster.store.nodes()] == [cluster.nodes[0].pid]
    # And has said for what it waited
    assert (
        "waiting until it sends a heartbeat, or has been silent for its lease of 1 s"
        in cluster.nodes[0].stop()
    )


def test_a_second_node_of_a_living_name_is_refused_unless_it_is_to_replace_that(cluster: Cluster) -> None:
    # Given a node with two slots, both at work
    old = cluster.node(slots=2)
    go, notes = cluster.file("go"), cluster.file("notes")
    ids = cluster.submit("wait_for", *({"file": str(go), "note_in": str(notes)} for _ in range(2)))
    until(lambda: len(lines(notes)) == 2, "both run")
    types = set(cluster.store.types())
    # When another comes under its name, it is told how to go about it
    second = cluster.start(app="schedule_app:app")
    _, log = second.process.communicate(timeout=30)
    assert second.process.returncode == 1
    assert "--replace" in log
    assert "Traceback" not in log
    # And its application is not in the store, where jobs would wait for what no node runs
    assert set(cluster.store.types()) == types
    assert not cluster.store.schedules.all()
    # And when one takes over from it, the old one drains while the new one claims
    new = cluster.node(slots=2, replace=True, poll_s=0.05)
    assert {n.state for n in cluster.store.nodes()} == {"draining", "active"}
    # Then it starts nothing beyond the slots of their name
    later = cluster.submit("noop", *({} for _ in range(5)))
    beats = new.beats()
    until(lambda: new.beats() > beats + 1, "the new one has polled between two of its heartbeats")
    assert {cluster.store.job(i).state for i in later} == {State.PENDING}
    # And goes on as soon as the old one has ended its work
    go.touch()
    assert {j.state for j in cluster.settled(ids + later)} == {State.COMPLETED}
    assert {len(cluster.attempts(i)) for i in ids} == {1}
    assert old.wait() == 0
    assert new.process.poll() is None


def test_a_successor_kills_what_a_predecessor_left(cluster: Cluster, tmp_path: Path) -> None:
    """Guard, supervisor and workers killed at one blow leave a program that bears their mark."""
    stray_of = Instance(name="oak", pid=1, started_us=2)
    stray = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(3600)"], env={INSTANCE_VARIABLE: str(stray_of)}
    )
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(3600)"], env={INSTANCE_VARIABLE: "oak.1.3"}
    )
    try:
        until(lambda: instances._marked(f"{INSTANCE_VARIABLE}={stray_of}".encode()), "the stray has started")
        assert instances.kill_by_instance(stray_of) == 1
        assert stray.wait(5) == -signal.SIGKILL
        assert bystander.poll() is None
    finally:
        for process in (stray, bystander):
            process.kill()
            process.wait()


def test_a_lock_proves_that_its_holder_and_all_its_children_are_gone(tmp_path: Path) -> None:
    own = Instance(name="oak", pid=os.getpid(), started_us=1)
    fd = instances.hold(tmp_path, own)
    with pytest.raises(NodeRefused):
        instances.hold(tmp_path, own)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[fd])
    os.close(fd)
    assert not instances.is_gone(tmp_path, own)
    child.communicate(b"\n", timeout=10)
    assert instances.is_gone(tmp_path, own)


def test_several_may_clear_up_after_one_node_at_the_same_time(tmp_path: Path) -> None:
    def clear(own: Instance) -> None:
        together.wait()
        read_pages(instances.pages_dir(tmp_path, own))
        instances.clear(tmp_path, own)

    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        for started_us in range(500):
            own = Instance(name="oak", pid=1, started_us=started_us)
            folder = instances.pages_dir(tmp_path, own)
            folder.mkdir()
            for page in "abc":
                (folder / page).write_bytes(b"")
            for cleared in [pool.submit(clear, own) for _ in range(3)]:
                cleared.result()
            assert not folder.exists()


def test_a_missing_lock_file_proves_nothing(tmp_path: Path) -> None:
    assert not instances.is_gone(tmp_path, Instance(name="oak", pid=1, started_us=1))


def test_only_a_node_of_this_very_boot_can_be_proven_gone(tmp_path: Path) -> None:
    here = LocalHost(host="h", boot_id="b", run_dir=tmp_path, folder_root=tmp_path)
    os.close(instances.hold(tmp_path, instance_of(NODE)))
    assert here.proven_gone(NODE)
    assert not here.proven_gone(replace(NODE, boot_id="c"))
    assert not here.proven_gone(replace(NODE, host="i"))


def test_a_run_time_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "run"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(UsageError, match="0700"):
        instances.prepare_run_dir(shared)
