"""A disk that is full while a stage writes."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from small_disk import BLOCK, SmallDisk, small_disk
from spinney import Defer, Warn
from spinney.apps.receivers import history, uploads
from spinney.apps.receivers.application import BAD_LIST, room_awaited
from spinney.apps.receivers.history import OldJob
from spinney.errors import UsageError

ROOM = "make room, and it continues by itself"


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    with small_disk(tmp_path / "disk", 1) as made:
        yield made


def test_given_a_full_disk_when_an_upload_is_unpacked_then_it_waits_and_uses_no_attempt(
    disk: SmallDisk, tmp_path: Path
) -> None:
    source = tmp_path / "raw"
    source.write_bytes(bytes(1 << 20))
    disk.fill(but=1 << 16)
    job: Any = SimpleNamespace(folder=disk.folder, check_cancelled=lambda: None)

    with pytest.raises(Defer, match=ROOM):
        uploads.copy(job, source)


def test_given_a_full_disk_when_a_database_is_written_then_the_stage_waits(disk: SmallDisk) -> None:
    database = sqlite3.connect(disk.folder / "db.sqlite")
    database.execute("create table hits (line)")
    disk.fill()

    with pytest.raises(Defer, match=ROOM), room_awaited():
        database.executemany("insert into hits values (?)", [("x" * 9_999,)] * 999)  # more than the cache
    database.close()


def test_given_a_full_disk_when_jobs_are_exported_then_a_sentence_says_so(disk: SmallDisk) -> None:
    disk.fill()

    with pytest.raises(UsageError, match=r"cannot be written: .*; make room, and name a new file"):
        history.export_jobs(disk.folder / "x.sqlite", [OldJob(1, None, 1, 1.0, 1.0, "x", 1)])


def test_given_another_error_then_it_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), room_awaited():
        (tmp_path / "nothing").read_bytes()
    with pytest.raises(sqlite3.OperationalError), room_awaited():
        sqlite3.connect(":memory:").execute("select * from nothing")


def test_given_a_full_disk_when_a_file_is_put_aside_then_the_next_attempt_lists_it_all_the_same(
    disk: SmallDisk,
) -> None:
    # Given a list of the refused archives that ends just before the end of a block, and no room for another block
    made = disk.folder / "made"
    (made / "raw").mkdir(parents=True)
    (made / "raw" / "notes.txt").write_text("x")
    refused = b'["a.zip","is no archive"]\n'
    (made / uploads.ASIDE).write_bytes(b" " * (BLOCK - len(refused) - 9) + refused)
    disk.fill()
    products = SimpleNamespace(add=lambda *_: None)
    job: Any = SimpleNamespace(folder=disk.folder, products=products)
    with pytest.raises(Defer, match=ROOM):
        uploads.check_files(job)
    # When there is room again
    disk.empty()
    # Then both are listed
    with pytest.raises(Warn, match="2 files put aside"):
        uploads.check_files(job)
    assert (disk.folder / BAD_LIST).read_text().splitlines() == [
        "a.zip\tis no archive",
        "notes.txt\tits name is not that of a raw file of a receiver",
    ]
