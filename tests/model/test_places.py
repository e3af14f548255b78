"""The file of a store is the whole path of its URL."""

from pathlib import Path

import pytest

from spinney.config import default_folders
from spinney.model.errors import UsageError
from spinney.model.places import database_file, run_dir
from spinney.stores.sql import open_store


def test_a_question_mark_or_hash_belongs_to_the_name() -> None:
    assert database_file("sqlite:////x/q?1.db") == Path("/x/q?1.db")
    assert database_file("sqlite:///a#b?c.db") == Path("a#b?c.db")
    assert default_folders("sqlite:////x/q?1.db") != default_folders("sqlite:////x/q?2.db")
    assert run_dir("sqlite:////x/q?1.db") == Path("/x/q?1.db.run")


def test_such_stores_are_different_files(tmp_path: Path) -> None:
    for name in ("q?1.db", "q?2.db", "q#3.db"):
        store = open_store(f"sqlite:///{tmp_path}/{name}")
        store.create()
        store.close()

    assert {p.name for p in tmp_path.glob("q*.db")} == {"q?1.db", "q?2.db", "q#3.db"}
    assert not (tmp_path / "q").exists()


def test_a_database_in_memory_is_no_store() -> None:
    with pytest.raises(UsageError, match="must be a file"):
        open_store("sqlite:///:memory:")


@pytest.mark.parametrize("url", ["postgresql:///x", "sqlite://", "sqlite:///"])
def test_other_urls_name_no_file(url: str) -> None:
    assert database_file(url) is None
