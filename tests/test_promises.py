"""``docs/promises.md`` says what is so: every test that it names exists, and its examples do what it says of them."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from snippets import run_python, snippets
from spinney import Fail
from spinney.define.job import Assignment
from spinney.testing import StageHarness

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"
TEXT = PAGE.read_text()
NAMED = sorted(set(re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", TEXT)))


def test_every_test_that_it_names_exists() -> None:
    for file, name in NAMED:
        source = (ROOT / file).read_text()

        assert not name or re.search(rf"^(async )?def {name}\(", source, flags=re.M), (file, name)


def test_it_tells_all_nine_promises_each_with_tests_and_with_what_breaks_it() -> None:
    section = TEXT.partition("## The nine\n")[2].partition("\n## ")[0]
    promises = re.split(r"^### \d\. ", section, flags=re.M)[1:]

    assert len(promises) == 9
    assert all(
        "Shown by: tests/" in promise and "Broken nevertheless by: " in promise for promise in promises
    )


# --- its examples -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    """The names that the page's code makes, as one module."""
    names: dict[str, Any] = {"__name__": "promises"}
    for snippet in snippets(PAGE):
        run_python(PAGE, snippet, names)
    return names


class Attempt(StageHarness):
    """One attempt of a job, with a fence of the test's choice."""

    def __init__(self, folder: Path, fence: int) -> None:
        super().__init__(folder=folder)
        self._fence = fence

    def _assignment(self, type_: str, stage: str, params: str) -> Assignment:
        return super()._assignment(type_, stage, params)._replace(fence=self._fence)


def test_a_second_run_of_the_draft_and_rename_leaves_one_whole_file(
    examples: dict[str, Any], tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("quiet")
    for fence in (1, 2):
        ran = Attempt(tmp_path / "root", fence).run(examples["shout"], text=text)

    assert (ran.folder / "loud.txt").read_text() == "QUIET"
    assert [file.name for file in ran.folder.iterdir()] == ["loud.txt"]


def test_what_is_written_with_a_key_is_written_once(examples: dict[str, Any], tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with sqlite3.connect(ledger) as db:
        db.execute("create table payments (key text primary key, amount integer)")
    for fence in (1, 2):
        Attempt(tmp_path / "root", fence).run(examples["pay"], ledger=ledger, amount=5)

    assert sqlite3.connect(ledger).execute("select sum(amount) from payments").fetchone() == (5,)


def test_the_place_refuses_a_late_attempt(examples: dict[str, Any], tmp_path: Path) -> None:
    site = tmp_path / "site"
    with sqlite3.connect(site) as db:
        db.execute("create table pages (name text primary key, body text, fence integer)")
        db.execute("insert into pages values ('front', '', 0)")
    new = Attempt(tmp_path / "root", 2).run(examples["publish"], site=site, page="new")
    late = Attempt(tmp_path / "root", 1).run(examples["publish"], site=site, page="late")

    assert new.outcome == "ok"
    assert isinstance(late.signal, Fail)
    assert sqlite3.connect(site).execute("select body, fence from pages").fetchone() == ("new", 2)


def test_the_same_key_is_the_same_subjob(examples: dict[str, Any], tmp_path: Path) -> None:
    harness = Attempt(tmp_path / "root", 1)
    for _ in range(2):
        ran = harness.run(examples["split"], parts=["a", "b"])

    assert [spawned.key for spawned in ran.spawned] == ["a", "b"]
