"""An application's own tables: made beside those of a store, upgraded, and refused with a sentence that helps."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from servers import postgres_schema
from small_disk import small_disk
from spinney.errors import UsageError
from spinney.tables import TablesAway, TableSet, TablesUnusable, postgres

MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = {revision!r}, {below!r}

def upgrade():
    {does}
"""
FIRST = 'op.create_table("shelf_books", sa.Column("title", sa.Text, primary_key=True))'
SECOND = 'op.add_column("shelf_books", sa.Column("year", sa.Integer))'


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    (folder / "script.py.mako").touch()
    for revision, below, does in (("0001", None, FIRST), ("0002", "0001", SECOND)):
        file = folder / "versions" / f"{revision}_books.py"
        file.write_text(MIGRATION.format(revision=revision, below=below, does=does))
    return folder


def shelves(migrations: Path, head: str = "0002") -> TableSet:
    return TableSet(name="shelf", prefix="shelf", migrations=migrations, head=head, init="library init")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'library' / 'store.db'}"
    else:
        with postgres_schema() as place:
            yield place


def test_several_processes_make_the_tables_at_once_and_rows_are_kept(migrations: Path, url: str) -> None:
    tables = shelves(migrations)
    databases = [tables.open(url) for _ in range(4)]
    threads = [threading.Thread(target=database.init) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with databases[0].checked().write() as connection:
        connection.execute(text("insert into shelf_books (title, year) values ('Walden', 1854)"))
    with databases[1].checked().read() as connection:
        assert connection.execute(text("select title, year from shelf_books")).all() == [("Walden", 1854)]
    for database in databases:
        database.close()


def test_a_transaction_that_fails_leaves_nothing(migrations: Path, url: str) -> None:
    database = shelves(migrations).open(url)
    database.init()
    insert = text("insert into shelf_books (title) values ('Walden')")
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        assert connection.execute(insert).rowcount / 0
    with database.read() as connection:
        assert connection.scalar(text("select count(*) from shelf_books")) == 0
    database.close()


def test_a_reader_writes_nothing_on_either_database(migrations: Path, url: str) -> None:
    database = shelves(migrations).open(url)
    database.init()
    insert = text("insert into shelf_books (title) values ('Walden')")
    with database.write() as connection:
        connection.execute(insert)
        connection.execute(text("delete from shelf_books"))
    refused = pytest.raises(TablesUnusable, match=r"no transaction of read\(\) writes|read-only transaction")
    with refused, database.read() as connection:
        connection.execute(insert)
    with database.read() as connection:
        assert connection.scalar(text("select count(*) from shelf_books")) == 0
    database.close()


def test_what_is_missing_older_or_newer_is_refused_with_what_to_do(migrations: Path, url: str) -> None:
    older, newer = shelves(migrations, "0001").open(url), shelves(migrations, "0003").open(url)
    current = shelves(migrations).open(url)
    for wrong in (older, newer):
        with pytest.raises(
            TablesUnusable, match=r"with head='000[13]', but its migrations in .* end at '0002'"
        ):
            wrong.init()
    with pytest.raises(TablesUnusable, match=r"no shelf.*run 'library init'"):
        current.checked()
    current.init()
    for use in (older.checked, older.init):
        with pytest.raises(TablesUnusable, match=r"was made by a newer version of this program"):
            use()
    with pytest.raises(TablesUnusable, match=r"is older than this program; run 'library init'"):
        newer.checked()
    for database in (older, newer, current):
        database.close()


def test_the_tables_lie_beside_those_of_the_store(migrations: Path, tmp_path: Path) -> None:
    tables = shelves(migrations)
    assert tables.beside(f"sqlite:///{tmp_path}/jobs.db") == f"sqlite:///{tmp_path}/jobs.shelf.db"
    assert tables.beside("postgresql://me@host/db?schema=jobs&sslmode=require") == (
        "postgresql://me@host/db?sslmode=require&schema=shelf"
    )
    assert tables.beside("postgresql://me@host/db") == "postgresql://me@host/db?schema=shelf"


@pytest.mark.parametrize("locked", [True, False])
def test_connections_are_kept_when_the_database_only_keeps_somebody_waiting(
    migrations: Path, url: str, locked: bool
) -> None:
    database = shelves(migrations).open(url)
    database.init()
    errors = {
        "sqlite": ("database is locked", "attempt to write a readonly database"),
        "postgresql": (psycopg.errors.DeadlockDetected(), psycopg.errors.InsufficientPrivilege()),
    }
    error = errors[database.dialect][0 if locked else 1]
    original = sqlite3.OperationalError(error) if isinstance(error, str) else error
    with pytest.raises(TablesUnusable) as raised, database.read():
        raise OperationalError(None, None, original)
    assert isinstance(raised.value, TablesAway) == locked
    assert database._engine.pool.checkedin() == int(locked)
    database.close()


@pytest.mark.parametrize("is_there", [True, False], ids=["replaced", "removed"])
def test_nothing_is_written_to_a_file_that_was_replaced_or_removed(
    migrations: Path, tmp_path: Path, is_there: bool
) -> None:
    # Given a database that a process has open, and in the place of its file a copy, or nothing
    file, aside = tmp_path / "library.db", tmp_path / "aside.db"
    tables = shelves(migrations)
    database = tables.open(f"sqlite:///{file}")
    database.init()
    database.close()  # so that all is in the file itself
    with database.read():
        pass
    file.rename(aside)
    if is_there:
        shutil.copyfile(aside, file)

    # then neither a reader nor a writer continues on the file that is no longer there,
    for transaction in (database.read, database.write):
        with pytest.raises(TablesUnusable, match="replaced or removed while this process"), transaction():
            pytest.fail("it continues")

    # and both do when that is put back.
    aside.replace(file)
    with database.write() as connection:
        connection.execute(text("insert into shelf_books (title) values ('Emma')"))
    with tables.open(f"sqlite:///{file}").read() as connection:
        assert connection.execute(text("select title from shelf_books")).scalars().all() == ["Emma"]
    database.close()


def test_a_disk_without_room_to_open_the_database_is_said_to_be_full(
    migrations: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        url = f"sqlite:///{disk.folder}/shelf.db"
        tables = shelves(migrations)
        made = tables.open(url)
        made.init()
        made.close()
        disk.fill()

        opened = tables.open(url)
        with pytest.raises(TablesAway, match=r"is full, with [\d,]+ bytes free; make room"):
            opened.checked()
        opened.close()


def test_an_unknown_kind_of_database_is_refused(migrations: Path) -> None:
    with pytest.raises(UsageError, match="a shelf is named by sqlite:///file or postgresql://"):
        shelves(migrations).open("mysql://host/db")


def test_a_server_that_does_not_listen_is_away(migrations: Path) -> None:
    database = shelves(migrations).open("postgresql://me:hidden@127.0.0.1:1/db")
    with pytest.raises(TablesAway, match="cannot be reached") as away:
        database.checked()
    assert "hidden" not in str(away.value)


def test_a_server_that_gives_no_answer_is_away(migrations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: it hangs, or the network swallows what is sent."""
    with postgres_schema() as url:
        database = shelves(migrations).open(url)
        database.init()
        monkeypatch.setattr(postgres, "_ANSWER_S", 0.3)
        with pytest.raises(TablesAway, match=r"no answer within 0\.3 s"), database.write() as connection:
            connection.execute(text("insert into shelf_books (title) select 'Emma' from pg_sleep(2)"))
        monkeypatch.undo()
        with database.read() as connection:
            assert connection.execute(text("select title from shelf_books")).scalars().all() == []
        database.close()


def test_a_standby_is_said_to_be_one(migrations: Path) -> None:
    with postgres_schema() as url:
        database = shelves(migrations).open(f"{url}&options=-cdefault_transaction_read_only%3Don")
        with pytest.raises(TablesAway, match="it is a standby, or was set so; name the primary server"):
            database.init()
        database.close()


UNCLOSED = """
import gc, sys
from pathlib import Path
from spinney.tables import TableSet

tables = TableSet(name="shelf", prefix="shelf", migrations=Path(sys.argv[1]), head="0002", init="library init")
database = tables.open(f"sqlite:///{sys.argv[2]}/library.db")
database.init()
keeper = [database]
keeper.append(keeper)
gc.freeze()  # nothing is closed because somebody looks for garbage
"""


def test_whoever_never_closes_a_database_leaves_no_journal(migrations: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", UNCLOSED, str(migrations), str(tmp_path)], check=True)

    assert (tmp_path / "library.db").exists()
    assert [file.name for file in tmp_path.iterdir() if "-" in file.name] == []
