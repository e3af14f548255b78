"""The write-ahead log of a file: each durable commit is synced after the writer has left the queue, and ids that a
power failure may have taken are not given again."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from new_store import new_store
from spinney.model.errors import StoreUnavailable
from spinney.model.jobs import Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.sqlite import LOST_IDS_MAX
from spinney.store.sql.connection.write_queue import WriteQueue

SUBMITTER = """
import sys
from spinney.model.jobs import Submission
from spinney.store.sql import open_store
store = open_store(sys.argv[1])
print(*store.submit([Submission(type="t", params=["{}"])], now_us=1).ids, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = new_store(tmp_path / "x.db")
    with closing(open_store(url)) as store:
        store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    return url


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with closing(open_store(url)) as store:
        yield store


def submit(store: SqlStore) -> int:
    [job_id] = store.submit([Submission(type="t", params=["{}"])], now_us=1).ids
    return job_id


def test_others_see_a_submission_and_may_write_before_it_is_synced(
    url: str, store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(store)  # which opens the connection
    during: list[tuple[int, Path]] = []
    sync = os.fdatasync

    def synced(descriptor: int) -> None:
        log = Path(f"/proc/self/fd/{descriptor}").readlink()
        with closing(WriteQueue(tmp_path / "x.db.run")) as write_queue, write_queue.passed():
            pass
        with closing(open_store(url)) as other, other.database.look() as tx:
            during.append((tx.value("select count(*) from jobs"), log))
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", synced)
    submit(store)

    assert during == [(2, tmp_path / "x.db-wal")]


def test_what_need_not_be_durable_is_not_synced(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)

    with store.database.write(durable=False) as tx:
        tx.run("update counters set value = value where name = 'job'")
    assert not synced

    submit(store)
    assert len(synced) == 1


def test_a_disk_that_does_not_sync_is_an_error(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StoreUnavailable, match=r"does not answer \(Input/output error\)"):
        submit(store)

    monkeypatch.undo()
    submit(store)


@pytest.mark.parametrize(("power", "skipped"), [("lost", LOST_IDS_MAX), ("kept", 0)])
def test_ids_of_jobs_that_a_power_failure_may_have_taken_are_skipped_once(
    url: str, tmp_path: Path, power: str, skipped: int
) -> None:
    first = _submit_and_die(url)
    if power == "lost":
        (tmp_path / "x.db.run" / "boot").write_text("an earlier one")

    for n in range(1, 4):
        with closing(open_store(url)) as store:
            assert submit(store) == first + skipped + n


def test_no_id_is_skipped_where_all_had_left_before_the_machine_stopped(url: str, tmp_path: Path) -> None:
    with closing(open_store(url)) as store:
        first = submit(store)
    (tmp_path / "x.db.run" / "boot").write_text("an earlier one")

    with closing(open_store(url)) as store:
        assert submit(store) == first + 1


def _submit_and_die(url: str) -> int:
    """Submit a job in a process that is killed with its connections open, and return the id."""
    command = [sys.executable, "-c", SUBMITTER, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        job_id = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    return job_id
