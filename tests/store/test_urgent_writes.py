"""Heartbeats of nodes do not wait behind other writers."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from new_store import new_store, new_store_on_server
from spinney.commands.control import Control
from spinney.features.external.service import External
from spinney.model.errors import Refused
from spinney.model.jobs import NodeInfo
from spinney.model.rights.actor import Actor
from spinney.model.types import Isolation, StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.postgres_connection import parsed

ENTER = """
import sys
from pathlib import Path
from spinney.store.sql.connection.write_queue import WriteQueue
queue = WriteQueue(Path(sys.argv[1]))
print("enters", flush=True)
queue.enter()
print("entered", flush=True)
sys.stdin.read()
"""


def _joined(url: str) -> tuple[SqlStore, int]:
    store = open_store(url)
    node = NodeInfo(
        id=0,
        name="oak",
        boot_id="",
        host="",
        pid=0,
        slots=1,
        state="active",
        beat=0,
        started_us=1,
        seen_us=1,
        version="",
        types=(),
    )
    return store, store.join(node, now_us=1)


def _process(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ENTER, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "enters\n"
    return process


def test_a_beat_passes_a_writer_that_keeps_its_turn_on_a_server() -> None:
    url = new_store_on_server()
    store, node_id = _joined(url)
    conninfo, schema = parsed(url)
    with psycopg.connect(conninfo) as writer:
        writer.execute(f"update \"{schema}\".counters set value = value + 1 where name = 'turn'")
        before = store.signature()

        assert store.beat(node_id, now_us=2)

        assert [node.beat for node in store.nodes()] == [1]
        assert store.signature() == before, "no node looks for work because another beats"
        writer.rollback()
    store.update_node(node_id, state="left", now_us=3)
    assert not store.beat(node_id, now_us=4)
    store.close()


@pytest.mark.parametrize("mark", ["expire", "declare_dead"])
def test_a_beat_that_commits_meanwhile_keeps_a_node_from_being_marked_as_left_on_a_server(mark: str) -> None:
    """The beat has changed the row and has not committed when the other transaction has read it."""
    url = new_store_on_server()
    store, node_id = _joined(url)
    conninfo, schema = parsed(url)
    late_us = 2 + 120_000_000

    def mark_as_left() -> bool:
        with closing(open_store(url)) as another:
            if mark == "expire":
                return another.external_workers.expire(node_id, 0, now_us=late_us)
            try:
                another.doctor.declare_dead("oak", Actor(by="ann", call="c"), now_us=late_us)
            except Refused:
                return False
            return True

    with (
        psycopg.connect(conninfo) as beat,
        psycopg.connect(conninfo, autocommit=True) as observer,
        ThreadPoolExecutor(1) as pool,
    ):
        beat.execute(f'update "{schema}".nodes set beat = beat + 1, seen_us = {late_us}')
        marked = pool.submit(mark_as_left)
        blocked = "select 1 from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
        while not marked.done() and not observer.execute(blocked, (beat.info.backend_pid,)).fetchone():
            pass
        beat.commit()

        assert not marked.result(timeout=60)
    assert [(node.state, node.beat) for node in store.nodes()] == [("active", 1)]
    store.close()


def test_a_beat_passes_the_queue_of_writers_of_a_file(tmp_path: Path) -> None:
    url = new_store(tmp_path / "x.db")
    store, node_id = _joined(url)
    # Given a writer at work, and one that is stopped while it is the next
    at_work = _process(tmp_path / "x.db.run")
    assert at_work.stdout is not None
    assert at_work.stdout.readline() == "entered\n"
    waiting = _process(tmp_path / "x.db.run")
    _until_it_waits(waiting.pid)  # and so has the lock 'next'
    waiting.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, waiting.pid, os.WSTOPPED)  # until then it would take the lock that it waits for
    beaten: list[bool] = []
    beating = threading.Thread(target=lambda: beaten.append(store.beat(node_id, now_us=2)))
    beating.start()
    try:
        # When the first leaves, then the beat goes ahead of the one that is next
        at_work.kill()
        beating.join(60)
        assert beaten == [True]
    finally:
        for process in (at_work, waiting):
            process.kill()
            process.communicate()
        beating.join()
    assert [node.beat for node in store.nodes()] == [1]
    store.close()


def test_external_workers_wait_for_their_turn(tmp_path: Path) -> None:
    url = new_store(tmp_path / "x.db")
    store = open_store(url)
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s", isolation=Isolation.EXTERNAL),))], [])
    external = Control(store=store, clock=lambda: 2, wake_nodes=lambda: None, by="ann").part(External)
    worker = external.join("w", [("t", "s")])
    at_work, following = _process(tmp_path / "x.db.run"), _process(tmp_path / "x.db.run")
    _until_it_waits(following.pid)
    beating = threading.Thread(target=lambda: external.heartbeat(worker.key, seen=0, fences=[]))
    beating.start()
    try:
        place = _until_it_waits(os.getpid())
    finally:
        for process in (at_work, following):
            process.kill()
            process.communicate()
        beating.join()
    assert place.endswith(f":{(tmp_path / 'x.db.run' / 'next.lock').stat().st_ino}")
    assert [node.beat for node in store.nodes()] == [1]
    store.close()


def _until_it_waits(pid: int) -> str:
    """Return for which file a process waits that wants to write, as ``device:inode``."""
    waits = ["->", "FLOCK", "ADVISORY", "WRITE", str(pid)]
    while True:
        for line in Path("/proc/locks").read_text().splitlines():
            if line.split()[1:6] == waits:
                return line.split()[6]
