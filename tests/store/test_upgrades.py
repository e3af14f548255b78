"""Making a store: the migrations lead to the schema that the code has in mind."""

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from spinney.model.errors import StoreUnusable
from spinney.store.sql import open_store
from spinney.store.sql.connection import sqlite_file
from spinney.store.sql.migrations import new_store
from spinney.store.sql.schema import metadata


def test_the_migrations_lead_to_the_schema(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").create()

    with create_engine(f"sqlite:///{tmp_path}/x.db").connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)

    assert [d for d in differences if "alembic_version" not in str(d)] == []


def test_a_new_file_is_made_as_all_revisions_make_it(tmp_path: Path) -> None:
    """When this fails, a revision was added: run python -m spinney.store.sql.migrations.new_store."""
    open_store(f"sqlite:///{tmp_path}/x.db").create()

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        script = new_store.script_of(connection)

    assert script == new_store.generate(tmp_path / "revisions.db")


def test_a_new_file_is_made_without_what_alters_schemas(tmp_path: Path) -> None:
    """That would double what ``spinney init`` takes."""
    code = "import sys; from spinney.cli.main import run; run(['init']); print(*sys.modules)"

    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    assert not {"sqlalchemy", "alembic"} & set(result.stdout.split())
    assert (tmp_path / "spinney.db").exists()


def test_making_a_store_again_changes_nothing(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    store.create()
    before = store.facts()

    store.create()

    assert store.facts() == before


@pytest.mark.parametrize(
    ("lose", "missing"),
    [
        ("alter table progress rename column message to lost", "progress.message"),
        ("drop table progress", "progress.job_id"),
    ],
)
def test_a_store_that_lacks_a_column_of_its_schema_is_refused(
    tmp_path: Path, lose: str, missing: str
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    store.create()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(lose)

    with pytest.raises(StoreUnusable) as refusal:
        store.create()

    assert f"does not match this version of Spinney (no such column: {missing})" in str(refusal.value)
    assert "made by a Spinney from before the release of 0.1.0, make a new store" in str(refusal.value)


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    store.create()
    store.nodes()

    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*") if p.is_file()}

    assert {"x.db", "x.db-wal", "x.db-shm", "next.lock", "write.lock"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "x.db.run").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no store"),
        (b"", "is no Spinney store"),
        (b"certainly no database" * 100, "is no database or is damaged"),
    ],
    ids=["no file", "empty file", "other file"],
)
def test_what_is_no_store_is_refused_with_the_mend(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StoreUnusable, match=says):
        open_store(f"sqlite:///{path}").nodes()

    assert (path.read_bytes() if path.exists() else None) == content


def test_another_schema_is_refused(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").create()
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("update alembic_version set version_num = '9999'")
    connection.execute("update meta set value = '9999' where name = 'works_with'")
    connection.commit()
    connection.close()

    with pytest.raises(StoreUnusable, match="schema 9999, this Spinney needs"):
        open_store(f"sqlite:///{tmp_path}/x.db").nodes()


def test_a_database_of_something_else_is_not_taken_over(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("create table jobs (id integer)")
    connection.commit()
    connection.close()

    with pytest.raises(StoreUnusable):
        open_store(f"sqlite:///{tmp_path}/x.db").create()


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that a mocked list of mounts says is a share, with a disk mounted within it."""
    made = tmp_path / "share"
    (made / "disk").mkdir(parents=True)

    shown = {"/": "ext4", str(made): "nfs4", str(made / "disk"): "xfs"}
    monkeypatch.setattr(sqlite_file, "mounts", lambda: list(shown.items()))
    return made


def test_the_mounts_of_this_machine_are_those_that_another_library_finds() -> None:
    mounts = [(mount.mountpoint, mount.fstype) for mount in psutil.disk_partitions(all=True)]

    assert mounts
    assert sqlite_file.mounts() == mounts


def test_a_blank_in_a_folder_name_of_the_mounts_is_read_as_one() -> None:
    assert sqlite_file._unescaped(rb"/mnt/my\040disk\134") == "/mnt/my disk\\"


@pytest.mark.parametrize("place", ["x.db", "deeper/x.db", "disk/../x.db"])
def test_a_store_on_a_mocked_network_mount_is_refused_by_its_kind_and_nothing_is_made(
    share: Path, place: str
) -> None:
    _refused(share / place, share)


def test_a_store_behind_a_link_to_a_mocked_network_mount_is_refused(share: Path) -> None:
    link = share.with_name("link")
    link.symlink_to(share)

    _refused(link / "x.db", share)


@pytest.mark.parametrize("place", ["share/disk/x.db", "shared/x.db"])
def test_a_store_within_or_beside_a_mocked_network_mount_is_made(share: Path, place: str) -> None:
    path = share.parent / place

    open_store(f"sqlite:///{path}").create()

    assert path.exists()


def _refused(path: Path, mount: Path) -> None:
    before = sorted(mount.parent.rglob("*"))

    with pytest.raises(StoreUnusable) as refusal:
        open_store(f"sqlite:///{path}").create()

    assert str(refusal.value) == (
        f"{path} lies on a network file system (nfs4 at {mount}), where SQLite loses data; "
        f"put the store on a local disk"
    )
    assert sorted(mount.parent.rglob("*")) == before
