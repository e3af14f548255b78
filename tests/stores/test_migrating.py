"""Making a store: the migrations lead to the schema that the code has in mind."""

import sqlite3
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from spinney.model.errors import StoreUnusable
from spinney.stores.sql import open_store
from spinney.stores.sql.schema import metadata


def test_the_migrations_lead_to_the_schema(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").create()

    with create_engine(f"sqlite:///{tmp_path}/x.db").connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)

    assert [d for d in differences if "alembic_version" not in str(d)] == []


def test_making_a_store_again_changes_nothing(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    store.create()
    before = store.facts()

    store.create()

    assert store.facts() == before


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
        (b"", "holds no Spinney"),
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
