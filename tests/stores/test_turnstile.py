"""Order among writers: nobody is overtaken twice, and the dead hold nothing."""

import mmap
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.model.errors import StoreUnusable
from spinney.model.jobs import Filter, Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.stores.sql import SqlStore, open_store
from spinney.stores.sql.turnstile import Turnstile

BUSY = """
import sys
from spinney.model.jobs import Submission
from spinney.stores.sql import open_store
store = open_store(sys.argv[1])
print("go", flush=True)
while True:
    store.submit([Submission(type="t", params=["{}"] * 1000)], now_us=1)
"""

GREEDY = """
import mmap, sys, time
from pathlib import Path
from spinney.stores.sql.turnstile import Turnstile
folder = Path(sys.argv[1])
turnstile = Turnstile(folder)
with (folder / "turns").open("r+b") as file:
    turns = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
print("go", flush=True)
while True:
    with turnstile.passed():
        turns[0] += 1
        time.sleep(0.001)
"""

HOLDER = """
import sys, time
from pathlib import Path
from spinney.stores.sql.turnstile import Turnstile
Turnstile(Path(sys.argv[1])).enter()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/x.db"
    store = open_store(url)
    store.create()
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
    mine = Turnstile(tmp_path)
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
    waiting = subprocess.Popen(
        [sys.executable, "-c", f"from spinney.stores.sql import open_store; open_store({url!r}).started([1], now_us=1)"]
    )
    assert _stays(waiting)

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


def test_a_foreign_writer_is_named_in_the_refusal(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinney.stores.sql.sqlite._BUSY_S", 0.1)
    foreign = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    foreign.execute("begin immediate")
    store = open_store(url)

    with pytest.raises(StoreUnusable, match="does not take its turn"):
        store.submit([Submission(type="t")], now_us=1)

    foreign.execute("rollback")
    assert store.submit([Submission(type="t")], now_us=1).ids
    store.close()


def _jobs(store: SqlStore) -> int:
    return sum(store.counts(Filter()).values())


def _stays(process: subprocess.Popen[bytes]) -> bool:
    """Whether it is still there after the time in which it would have ended if nothing held it."""
    try:
        process.wait(1.5)
    except subprocess.TimeoutExpired:
        return True
    return False


def _until_staged(store: SqlStore) -> None:
    def staged() -> bool:
        with store.database.look() as tx:
            return tx.one("select 1 from staging") is not None

    _until(staged, "a submission to be seen under way")


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        os.sched_yield()
