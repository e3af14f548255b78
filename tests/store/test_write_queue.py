"""Order among writers: nobody is overtaken twice, and the dead hold nothing."""

import mmap
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from new_store import new_store
from spinney.model.errors import StoreLocked
from spinney.model.jobs import Filter, NodeInfo, Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.connection.write_queue import WriteQueue

PATIENCE_S = 60.0

BUSY = """
import sys
from spinney.model.jobs import Submission
from spinney.store.sql import open_store
store = open_store(sys.argv[1])
print("go", flush=True)
while True:
    store.submit([Submission(type="t", params=["{}"] * 1000)], now_us=1)
"""

GREEDY = """
import mmap, sys, time
from pathlib import Path
from spinney.store.sql.connection.write_queue import WriteQueue
folder = Path(sys.argv[1])
write_queue = WriteQueue(folder)
with (folder / "turns").open("r+b") as file:
    turns = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
print("go", flush=True)
while True:
    with write_queue.passed():
        turns[0] += 1
        time.sleep(0.001)
"""

WRITER = """
import sys
from spinney.store.sql import open_store
store = open_store(sys.argv[1])
print("go", flush=True)
store.started([1], now_us=1)
"""

HOLDER = """
import sys, time
from pathlib import Path
from spinney.store.sql.connection.write_queue import WriteQueue
WriteQueue(Path(sys.argv[1])).enter()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = new_store(tmp_path / "x.db")
    store = open_store(url)
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    store.close()
    return url


def _start(code: str, argument: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", code, argument], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_a_writer_beside_a_busy_one_waits_for_one_turn_at_most(tmp_path: Path) -> None:
    (tmp_path / "turns").write_bytes(bytes(8))
    turns = _shared_count(tmp_path / "turns")
    busy = _start(GREEDY, str(tmp_path))
    mine = WriteQueue(tmp_path)
    try:
        waited = []
        for _ in range(200):
            before = turns[0]
            with mine.passed():
                waited.append(turns[0] - before)
            _until(lambda seen=turns[0]: turns[0] > seen, "the other to take a turn")
    finally:
        busy.kill()
        busy.wait()
        mine.close()

    # The turn under way, and one that began before we had asked. (Not every time: whoever is put to
    # sleep between looking and asking sees more.)
    assert sorted(waited)[150] <= 2


def _shared_count(path: Path) -> memoryview:
    """A count that another process moves."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")


def test_a_writer_that_is_killed_holds_nobody_up(url: str, tmp_path: Path) -> None:
    holder = _start(HOLDER, str(tmp_path / "x.db.run"))
    waiting = _start(WRITER, url)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.3)  # all that it does is one small transaction

    holder.send_signal(signal.SIGKILL)

    assert waiting.wait(20) == 0
    holder.wait()


def test_a_submission_cut_off_half_way_leaves_nothing_visible(url: str) -> None:
    store = open_store(url)
    for _ in range(4):
        process = _start(BUSY.replace("* 1000", "* 50_000"), url)
        _until_staged(store)
        process.kill()
        process.wait()

    seen = _jobs(store)
    assert seen % 50_000 == 0
    late_us = 10**15
    while store.sweep(now_us=late_us).more:
        pass
    assert _jobs(store) == seen
    with store.database.look() as tx:
        (rows,) = tx.one("select count(*) from jobs") or (None,)
        (staged,) = tx.one("select count(*) from staging") or (None,)
    assert (rows, staged) == (seen, 0)
    store.close()


@pytest.fixture
def foreign(url: str, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another program that has the database of ``url`` locked."""
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    connection.execute("begin exclusive")
    yield connection
    connection.close()


def impatient(tmp_path: Path) -> SqlStore:
    return SqlStore(SqliteDatabase(tmp_path / "x.db", patience_s=0.1))


def patient(tmp_path: Path, on_wait: Callable[[str], None]) -> SqlStore:
    """A store that waits for a locked file for ``PATIENCE_S``, and calls ``on_wait`` after its first vain try."""
    database = SqliteDatabase(tmp_path / "x.db", patience_s=PATIENCE_S, on_wait=on_wait)
    database.tell_after_s = 0.0
    return SqlStore(database)


def node(name: str) -> NodeInfo:
    return NodeInfo(
        id=0,
        name=name,
        boot_id="b",
        host="h",
        pid=1,
        slots=1,
        state="active",
        beat=0,
        started_us=1,
        seen_us=1,
        version="0",
        types=(),
    )


def test_a_foreign_writer_is_named_in_the_refusal(foreign: sqlite3.Connection, tmp_path: Path) -> None:
    store = impatient(tmp_path)

    with pytest.raises(StoreLocked, match=rf"locked by process {os.getpid()} \(.*\) and has been for 0.1 s"):
        store.submit([Submission(type="t")], now_us=1)

    foreign.execute("rollback")
    assert store.submit([Submission(type="t")], now_us=1).ids
    store.close()


def test_who_waits_for_a_foreign_writer_hears_of_it_once_and_goes_on(
    foreign: sqlite3.Connection, tmp_path: Path
) -> None:
    heard: list[str] = []

    def hear(sentence: str) -> None:
        heard.append(sentence)
        foreign.execute("rollback")

    store = patient(tmp_path, hear)

    assert store.submit([Submission(type="t")], now_us=1).ids
    (sentence,) = heard
    assert f"locked by process {os.getpid()}" in sentence
    store.close()


def test_a_store_whose_readers_are_locked_out_is_waited_for_and_told(url: str, tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    foreign.execute("pragma locking_mode = exclusive")
    foreign.execute("begin immediate")
    store = impatient(tmp_path)

    with pytest.raises(StoreLocked, match=f"locked by process {os.getpid()}"):
        store.nodes()

    foreign.close()
    assert store.nodes() == []
    store.close()


def test_who_cannot_beat_keeps_all_but_other_beats_out_until_it_has_beaten(
    foreign: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    # Given two nodes that cannot beat because of a foreign program
    foreign.execute("rollback")
    oak, elm = impatient(tmp_path), impatient(tmp_path)
    ids = [store.join(node(name), now_us=1) for store, name in ((oak, "oak"), (elm, "elm"))]
    assert all(store.beat(id_, now_us=1) for store, id_ in zip((oak, elm), ids, strict=True))
    foreign.execute("begin exclusive")
    for store, id_ in zip((oak, elm), ids, strict=True):
        with pytest.raises(StoreLocked):
            store.beat(id_, now_us=2)
        assert store.keep_out(id_)

    # When that lets go, then nobody writes, and so finds them dead, before both have beaten
    foreign.execute("rollback")
    keeper = impatient(tmp_path)
    with pytest.raises(
        StoreLocked, match=rf"by the node of process {os.getpid()} \(.*\), which is to beat first"
    ):
        keeper.recover(ids[1], None, now_us=3)
    assert oak.beat(ids[0], now_us=3)
    with pytest.raises(StoreLocked):
        keeper.recover(ids[1], None, now_us=3)
    assert elm.beat(ids[1], now_us=3)
    assert keeper.submit([Submission(type="t")], now_us=4).ids

    # And one that has been found dead meanwhile hears so
    keeper.recover(ids[1], None, now_us=5)
    assert not elm.keep_out(ids[1])
    for store in (oak, elm, keeper):
        store.close()


def test_many_who_wait_for_a_locked_file_do_not_hold_each_other_up(
    foreign: sqlite3.Connection, tmp_path: Path
) -> None:
    waiting: list[str] = []

    def wait() -> None:
        store = patient(tmp_path, waiting.append)
        store.submit([Submission(type="t")], now_us=1)
        store.close()

    # Given as many as many nodes and servers are
    waiters = [threading.Thread(target=wait) for _ in range(60)]
    for waiter in waiters:
        waiter.start()
    _until(lambda: len(waiting) == len(waiters), "all to wait")

    # When another wants to pass, as who keeps others out must, then he does not stand behind all their waits
    write_queue = WriteQueue(tmp_path / "x.db.run")
    began_s = time.monotonic()
    write_queue.enter()
    passed_s = time.monotonic() - began_s
    write_queue.leave()
    write_queue.close()
    assert passed_s < PATIENCE_S / 4  # who waited in the queue would keep it for all his patience
    foreign.execute("rollback")
    for waiter in waiters:
        waiter.join()
    store = impatient(tmp_path)
    assert _jobs(store) == len(waiters)
    store.close()


def test_an_upgrade_that_waits_for_a_locked_file_holds_nobody_up(
    foreign: sqlite3.Connection, tmp_path: Path
) -> None:
    waiting: list[str] = []
    store = patient(tmp_path, waiting.append)
    write_queue = WriteQueue(tmp_path / "x.db.run")
    upgrade = threading.Thread(target=store.create)
    upgrade.start()
    _until(lambda: waiting, "it to wait")

    began_s = time.monotonic()
    with write_queue.passed():
        passed_s = time.monotonic() - began_s
    write_queue.close()

    assert passed_s < PATIENCE_S / 4
    assert upgrade.is_alive()
    foreign.execute("rollback")
    upgrade.join(30)
    assert not upgrade.is_alive()
    assert store.submit([Submission(type="t")], now_us=1).ids
    store.close()


def _jobs(store: SqlStore) -> int:
    return sum(store.counts(Filter()).values())


def _until_staged(store: SqlStore) -> None:
    def staged() -> bool:
        with store.database.look() as tx:
            return tx.one("select 1 from staging") is not None

    _until(staged, "a submission to be seen under way")


def _until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        os.sched_yield()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for another user")
def test_what_root_makes_beside_a_file_of_another_user_belongs_to_that_user(tmp_path: Path) -> None:
    """Given a restored file, without its run-time directory, on which root gives the first command."""
    url = new_store(tmp_path / "x.db")
    shutil.rmtree(tmp_path / "x.db.run", ignore_errors=True)
    os.chown(tmp_path / "x.db", 65534, 65534)
    store = open_store(url)
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])

    places = [*tmp_path.iterdir(), *(tmp_path / "x.db.run").iterdir()]
    assert {"x.db-wal", "x.db.run", "next.lock", "write.lock", "beats.lock"} <= {
        place.name for place in places
    }
    assert [place for place in places if place.stat().st_uid != 65534] == []
    store.close()
