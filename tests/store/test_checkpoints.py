"""When what was committed is carried over from the log into the file: not while somebody waits, and not never."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from small_disk import small_disk
from spinney.model.errors import StoreUnavailable
from spinney.store.sql.connection.sqlite import CHECKPOINT_PAGES, LATE_CHECKPOINT_PAGES, SqliteDatabase
from spinney.store.sql.store import SqlStore

HASTY = [{"awaited": True}, {"durable": False}]
"""Transactions that somebody waits for."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "x.db")
    SqlStore(database).create()
    with database.write() as tx:
        tx.run("create table filling (bytes blob)")
    yield database
    database.close()


@pytest.mark.parametrize("how", HASTY)
def test_a_commit_that_somebody_waits_for_leaves_it_to_others(
    database: SqliteDatabase, how: dict[str, bool]
) -> None:
    before = size(database)
    fill(database, CHECKPOINT_PAGES + 100, **how)
    assert size(database) == before

    fill(database, 1)

    assert size(database) > before


@pytest.mark.parametrize("how", HASTY)
def test_the_log_does_not_grow_for_ever_where_somebody_always_waits(
    database: SqliteDatabase, how: dict[str, bool]
) -> None:
    before = size(database)

    fill(database, LATE_CHECKPOINT_PAGES + 100, **how)

    assert size(database) > before


def test_a_reader_of_a_read_only_file_system_sees_what_is_written_when_that_has_ended(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk, closing(SqliteDatabase(disk.folder / "x.db")) as database:
        SqlStore(database).create()
        database.close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
        with database.look() as tx:
            assert not tx.exists("select 1 from counters where name = 'here'")
        subprocess.run(["mount", "-o", "remount,rw", str(disk.folder)], check=True)

        with database.write() as tx:
            tx.run("insert into counters (name, value) values ('here', 1)")

        with database.look() as tx:
            assert tx.exists("select 1 from counters where name = 'here'")


def fill(database: SqliteDatabase, pages: int, **how: bool) -> None:
    with database.write(**how) as tx:
        tx.many("insert into filling (bytes) values (zeroblob(?))", [(4_000,)] * pages)


def size(database: SqliteDatabase) -> int:
    return database.path.stat().st_size


def test_a_log_that_was_removed_is_named_and_the_process_that_has_it_open_saves_its_contents(
    database: SqliteDatabase,
) -> None:
    database.path.with_name("x.db-wal").unlink()
    other = SqliteDatabase(database.path)
    with pytest.raises(
        StoreUnavailable, match=r"x\.db-wal, was removed .* end all nodes and servers by SIGTERM"
    ):
        other.data_version()

    database.close()

    with other.look() as tx:
        assert tx.value("select count(*) from filling") == 0
    other.close()
