"""Another program has the file of the store locked for longer than a lease: nodes keep what they have. It has replaced
or removed the file: nodes and submitters end."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from node_fixtures import Cluster, cluster, lines, now_us

from spinney.host.boot import boot_id
from spinney.model.errors import StoreLocked, StoreReplaced
from spinney.model.jobs import NodeInfo
from spinney.model.states import State
from spinney.node import instance
from spinney.node.lifecycle.recovery import take_back
from spinney.node.local_host import LocalHost, instance_of
from spinney.node.store_thread import StoreThread
from spinney.store.sql import open_store
from spinney.store.sql.store import LOST_BEATS
from waiting import until

__all__ = ["cluster"]


def test_nodes_outlast_a_foreign_lock_with_what_they_run(cluster: Cluster, tmp_path: Path) -> None:
    # Given two nodes of one file, with jobs at work
    logs = {name: tmp_path / f"{name}.log" for name in ("oak", "elm")}
    nodes = [
        cluster.start(name=name, slots=2, log=log, lease_period_s=4.0).joined() for name, log in logs.items()
    ]
    go, write = cluster.file("go"), cluster.file("write")
    jobs = cluster.submit("wait_for", *[{"file": str(go), "note_in": str(cluster.file("notes"))}] * 2)
    jobs += cluster.submit("writes_data_when_told", {"file": str(write)})
    until(lambda: all(cluster.store.job(job).state == State.RUNNING for job in jobs), "all run")

    # When somebody locks it for longer than a lease, in which a stage writes: each says four times in a lease that it
    # cannot beat
    foreign = sqlite3.connect(tmp_path / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    write.touch()
    for log in logs.values():
        until(
            lambda log=log: sum("cannot beat, and it continues" in line for line in lines(log)) > 4,
            "they say so",
        )
    go.touch()
    foreign.execute("rollback")
    foreign.close()

    # Then both are there, nothing was interrupted, and work goes on
    assert [job.state for job in cluster.settled(jobs)] == [State.COMPLETED] * 3
    assert [[attempt.outcome for attempt in cluster.attempts(job)] for job in jobs] == [["ok"]] * 3
    assert [node.process.poll() for node in nodes] == [None, None]
    assert cluster.run("noop")[0].state == State.COMPLETED
    for node in nodes:
        node.term()
        assert node.wait() == 0
    assert "declared dead" not in "".join(log.read_text() for log in logs.values())


def test_a_node_that_is_told_twice_to_end_ends_while_another_program_has_the_file_locked(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node with a job at work, which cannot be handed back
    log, notes = tmp_path / "oak.log", cluster.file("notes")
    node = cluster.start(log=log).joined()
    (job,) = cluster.submit("wait_for", {"file": str(cluster.file("go")), "note_in": str(notes)})
    until(lambda: cluster.store.job(job).state == State.RUNNING, "it runs")
    foreign = sqlite3.connect(tmp_path / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    node.term()
    until(lambda: "draining" in log.read_text(), "it drains")

    # When it is told to end for the second time
    node.term()

    # Then it ends with all its processes, says why, and the next node runs the job
    assert node.wait() == 1
    assert not cluster.living()
    (why,) = [line for line in log.read_text().splitlines() if "cannot hand back its work: " in line]
    assert f"{tmp_path / 'spinney.db'} is locked by process {os.getpid()}" in why
    foreign.execute("rollback")
    foreign.close()
    cluster.file("go").touch()
    cluster.start(log=log).joined()
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_node_whose_file_is_replaced_or_removed_ends(
    cluster: Cluster, tmp_path: Path, is_replaced: bool
) -> None:
    # Given a node with a job at work, and a program that has submitted it
    log, file = tmp_path / "oak.log", tmp_path / "spinney.db"
    node = cluster.start(log=log).joined()
    (job,) = cluster.submit(
        "wait_for", {"file": str(cluster.file("go")), "note_in": str(cluster.file("notes"))}
    )
    until(lambda: cluster.store.job(job).state == State.RUNNING, "it runs")

    # When a backup takes the place of the file, or it is removed
    if is_replaced:
        shutil.copy(file, tmp_path / "backup.db")
        (tmp_path / "backup.db").replace(file)
    else:
        file.unlink()

    # Then the node ends with all that runs in it, and its log says why; the program can submit nothing more
    assert node.wait() != 0
    assert not cluster.living()
    assert f"the store's file {file} was replaced or removed" in log.read_text()
    with pytest.raises(StoreReplaced, match="start the node, server or program again"):
        cluster.submit("noop")


def test_a_node_whose_store_falls_back_to_an_older_copy_ends_and_the_next_one_runs_what_it_ran(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a backup, made while a job was running that has completed since
    log, file, go = tmp_path / "oak.log", tmp_path / "spinney.db", cluster.file("go")
    node = cluster.start(log=log).joined()
    (job,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(cluster.file("notes"))})
    until(lambda: cluster.store.job(job).state == State.RUNNING, "it runs")
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        live.backup(backup)
    go.touch()
    cluster.settled([job])
    beats = node.beats()
    until(lambda: node.beats() > beats + LOST_BEATS + 2, "the node beats")

    # When the backup takes the place of the store's content under the node
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup, closing(sqlite3.connect(file)) as live:
        backup.backup(live)

    # Then the node ends, and its log says why
    assert node.wait() == 1
    assert "the store has lost what was committed to it before" in log.read_text()
    # And nothing stays shown as running: a new node runs it again
    cluster.node()
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]


@pytest.mark.parametrize("has_written", [True, False])
def test_a_program_reads_no_more_in_a_file_that_was_replaced(tmp_path: Path, has_written: bool) -> None:
    # Given a program that has read the store, and perhaps written to it
    file = tmp_path / "spinney.db"
    store = open_store(f"sqlite:///{file}")
    store.create()
    assert store.nodes() == []
    if has_written:
        store.beat(1, now_us=1)

    # When a backup takes the place of the file
    shutil.copy(file, tmp_path / "backup.db")
    (tmp_path / "backup.db").replace(file)

    # Then it neither reads the old file nor writes to the new one
    with pytest.raises(StoreReplaced):
        store.nodes()
    with pytest.raises(StoreReplaced):
        store.beat(1, now_us=2)

    # And once it has closed the store, it opens the new one
    store.close()
    assert store.nodes() == []
    store.close()


async def test_nothing_of_a_silent_node_is_killed_before_the_store_says_that_it_is_dead(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node that was silent for a lease, a process of it, and a foreign program that has the file locked
    here = LocalHost(
        host=socket.gethostname(), boot_id=boot_id(), run_dir=cluster.run_dir, folder_root=cluster.folders
    )
    node = NodeInfo(
        id=0,
        name="oak",
        boot_id=here.boot_id,
        host=here.host,
        pid=os.getpid(),
        slots=1,
        state="active",
        beat=0,
        started_us=1,
        seen_us=1,
        version="0",
        types=(),
    )
    node = replace(node, id=cluster.store.join(node, now_us=1))
    environment = os.environ | {instance.INSTANCE_VARIABLE: str(instance_of(node))}
    foreign = sqlite3.connect(tmp_path / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    process = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE)  # noqa: ASYNC220
    with process:
        async with StoreThread("keeper", lambda: open_store(cluster.url, 0.1)) as db:
            # When another takes its work back, then it is told to wait
            with pytest.raises(StoreLocked):
                await take_back(db, here, node, now_us)
            # And when the node has beaten meanwhile, it is left alone
            foreign.close()
            assert cluster.store.beat(node.id, now_us=2)
            assert await take_back(db, here, node, now_us) == []
            assert process.poll() is None
            assert cluster.store.beat(node.id, now_us=3)
            # And when it has not, it is killed
            (silent,) = cluster.store.nodes()
            await take_back(db, here, silent, now_us)
            assert process.wait(30) < 0
            assert not cluster.store.beat(node.id, now_us=4)
