"""Databases that are not there, not ours, or go away; and that no error tells a password."""

import socket
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import text

from servers import postgres_schema, postgres_url
from small_disk import small_disk
from spinney.apps.ingest.inventory import TABLES, File, open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.inventory.schema import metadata
from spinney.model.errors import SpinneyError, UsageError
from spinney.tables import TablesAway, TablesUnusable

from .words import ARK, entry

SECRET = "s3cr3t/p@ss"
MADE_BY_WHO_DIES = """
import os, sys
from spinney.apps.ingest.inventory import open_inventory

inventory = open_inventory(sys.argv[1])
inventory.init()
os._exit(0)
"""


def test_the_tables_are_those_that_the_code_knows(bare_url: str) -> None:
    with open_inventory(bare_url) as inventory:
        inventory.init()
        inventory.init()

        with inventory._database.read() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": "inv_version"})
            assert compare_metadata(context, metadata) == []


def test_one_of_an_older_version_is_told_to_be_and_brought_up_to_date(bare_url: str) -> None:
    scripts = ScriptDirectory(str(TABLES.migrations))
    with open_inventory(bare_url) as inventory:
        if bare_url.startswith("sqlite"):
            file = Path(bare_url.removeprefix("sqlite:///"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        with inventory._database.write() as connection:
            inventory._database._backend.lock_for_setup(connection)
            context = MigrationContext.configure(
                connection,
                opts={
                    "version_table": "inv_version",
                    "fn": lambda heads, _: scripts._upgrade_revs("0001", heads),
                },
            )
            with Operations.context(context):
                context.run_migrations()
            connection.execute(text("alter table inv_files drop column modified"))

        with pytest.raises(TablesUnusable, match=r"is older than this program; run 'spinney ingest init'"):
            inventory.find(ark="x")
        inventory.init()
        inventory.record(entry(files=[File(path="a", size_bytes=1, modified="1999")]))

        assert [file.modified for file in inventory.files(ARK, 1)] == ["1999"]


def test_what_has_not_been_made_is_told_with_the_mend(bare_url: str) -> None:
    with (
        open_inventory(bare_url) as inventory,
        pytest.raises(TablesUnusable, match=r"run 'spinney ingest init'"),
    ):
        inventory.find(ark="x")


def test_an_empty_file_is_no_inventory_yet(tmp_path: Path) -> None:
    (tmp_path / "inventory.db").touch()

    with open_inventory(f"sqlite:///{tmp_path}/inventory.db") as inventory:
        with pytest.raises(TablesUnusable, match=r"run 'spinney ingest init'"):
            inventory.find(ark="x")
        inventory.init()
        assert inventory.find(ark="x") == []


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Abraham, " * 500)

    with (
        open_inventory(f"sqlite:///{file}") as inventory,
        pytest.raises(TablesUnusable, match="is no database"),
    ):
        inventory.init()

    assert file.read_text() == "Dear Abraham, " * 500


def test_tables_of_others_in_the_same_database_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    with sqlite3.connect(file) as other:
        other.execute("create table alembic_version (version_num text)")
        other.execute("insert into alembic_version values ('theirs')")

    with open_inventory(f"sqlite:///{file}") as inventory:
        inventory.init()
        inventory.record(entry())

    with sqlite3.connect(file) as other:
        assert other.execute("select version_num from alembic_version").fetchall() == [("theirs",)]


def test_a_newer_inventory_is_refused(url: str) -> None:
    with open_inventory(url) as inventory:
        before = set_version(inventory, "9999")
        try:
            with pytest.raises(TablesUnusable, match="newer version"):
                inventory.init()
            with pytest.raises(TablesUnusable, match="newer version"):
                inventory.find()
        finally:
            set_version(inventory, before)
        assert inventory.find() == []


def set_version(inventory: Inventory, version: str) -> str:
    with inventory._database.write() as connection:
        before = connection.execute(text("select version_num from inv_version")).scalar_one()
        connection.execute(text("update inv_version set version_num = :version"), {"version": version})
    return str(before)


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "a%b?c#d" / "inventory.db"

    with open_inventory(f"sqlite:///{file}") as inventory:
        inventory.init()
        inventory.record(entry())

    assert file.stat().st_mode & 0o777 == 0o600
    assert [child.name for child in file.parent.iterdir()] == ["inventory.db"]


def test_sqlite_syncs_each_commit(tmp_path: Path) -> None:
    with open_inventory(f"sqlite:///{tmp_path}/inventory.db") as inventory:
        inventory.init()
        with inventory._database.write() as connection:
            assert connection.exec_driver_sql("pragma synchronous").scalar() == 2
            assert connection.exec_driver_sql("pragma journal_mode").scalar() == "wal"


def test_a_file_that_could_not_be_written_when_it_was_opened_is_written_as_soon_as_it_can_be(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 5) as disk:
        url = f"sqlite:///{disk.folder}/inventory.db"
        # Whoever dies leaves the files beside the database, with which it can be opened on a read-only disk.
        subprocess.run([sys.executable, "-c", MADE_BY_WHO_DIES, url], check=True)
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        with open_inventory(url) as inventory:
            with pytest.raises(TablesUnusable, match="check its owner, rights and disk"):
                inventory.number("m", "k")
            subprocess.run(["mount", "-o", "remount,rw", disk.folder], check=True)
            assert inventory.number("m", "k") == 1


@pytest.mark.parametrize(
    "url", ["mysql://u:s3cr3t@h/d", "sqlite://", "sqlite:///:memory:", "inventory.db", ""]
)
def test_what_is_no_url_of_an_inventory_is_told(url: str) -> None:
    with pytest.raises(UsageError) as wrong:
        open_inventory(url)

    assert "s3cr3t" not in str(wrong.value)


def test_a_connection_that_the_server_ends_is_made_anew() -> None:
    with postgres_schema() as url, open_inventory(url) as inventory:
        inventory.init()
        inventory.record(entry())
        with inventory._database.read() as connection:
            ours = connection.exec_driver_sql("select pg_backend_pid()").scalar()
        with psycopg.connect(postgres_url(), autocommit=True) as other:
            # Returns when it has gone.
            assert other.execute("select pg_terminate_backend(%s, 60000)", (ours,)).fetchone() == (True,)

        inventory.record(entry(version=2))

        assert len(inventory.object(entry().ark).versions) == 2


# --- secrets ----------------------------------------------------------------------------------


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize(
    "form",
    [
        "postgresql://ann:s3cr3t@127.0.0.1:{port}/archive",
        "postgresql://ann@127.0.0.1:{port}/archive?password=s3cr3t",
        "postgresql:///archive?host=127.0.0.1&port={port}&user=ann&password=s3cr3t&sslpassword=s3cr3t",
        "postgresql://ann:s3cr3t%2Fp%40ss@127.0.0.1:{port}/archive?schema=other",
    ],
)
def test_no_error_and_no_repr_tells_a_password(form: str, silent_port: int) -> None:
    inventory = open_inventory(form.format(port=silent_port))

    with pytest.raises(TablesAway) as away:
        inventory.find(ark="x")

    trace = "".join(traceback.format_exception(away.value))
    assert "s3cr3t" not in trace
    assert "127.0.0.1" in str(away.value)
    assert str(silent_port) in str(away.value)
    assert "cannot be reached" in str(away.value)
    assert "s3cr3t" not in repr(inventory) + repr(inventory._database) + repr(inventory._database._engine)
    assert "s3cr3t" not in repr(inventory._database._backend)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1/archive",
        "postgresql://ann:s3cr3t@p@ss@127.0.0.1/archive",
        "postgresql://ann:s3cr3t#p@127.0.0.1:x/archive",
        "postgresql://ann:s3cr3t%zz@127.0.0.1/archive",
        "postgresql://ann:x@127.0.0.1/archive?pasword=s3cr3t",
        "postgresql://ann:x@127.0.0.1/archive?schema=s3cr3t-",
        "postgresql://ann:[s3cr3t@127.0.0.1/archive",
    ],
)
def test_a_password_that_spoils_its_url_is_not_told(url: str) -> None:
    with pytest.raises(SpinneyError) as wrong, open_inventory(url) as inventory:
        inventory.find(ark="x")

    trace = "".join(traceback.format_exception(wrong.value))
    assert "s3cr3t" not in trace.replace(url, "")
    assert "p@ss" not in str(wrong.value)
