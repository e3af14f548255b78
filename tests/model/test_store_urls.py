"""The file of a store is the whole path of its URL."""

from pathlib import Path

import pytest

from spinney.config import default_folders
from spinney.model.errors import UsageError
from spinney.model.types import StageSpec, TypeSpec
from spinney.model.values.paths import run_dir
from spinney.model.values.store_urls import database_file, store_location, without_password
from spinney.store.completion_names import names
from spinney.store.sql import open_store
from spinney.store.sql.connection.postgres_connection import parsed


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


def test_a_store_of_a_relative_path_stays_where_it_is_when_the_program_changes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///jobs.db")
    store.create()
    store.beat(1, now_us=1)

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    store.beat(1, now_us=2)
    assert store.nodes() == []  # which is read on a connection of its own
    store.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_database_in_memory_is_no_store() -> None:
    with pytest.raises(UsageError, match="must be a file"):
        open_store("sqlite:///:memory:")


@pytest.mark.parametrize("url", ["postgresql:///x", "sqlite://", "sqlite:///"])
def test_other_urls_name_no_file(url: str) -> None:
    assert database_file(url) is None


def test_a_store_behind_a_link_is_one_store(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    real = tmp_path / "disk" / "jobs.db"
    links = [tmp_path / "link.db", tmp_path / "way" / "jobs.db"]
    links[0].symlink_to(real)  # there is nothing yet where it leads
    links[1].parent.symlink_to(real.parent, target_is_directory=True)
    for link in links:
        assert run_dir(f"sqlite:///{link}") == run_dir(f"sqlite:///{real}")

    stores = [open_store(f"sqlite:///{path}") for path in (links[0], real, links[1])]
    stores[0].create()
    for store in stores:
        store.beat(1, now_us=1)

    assert {store.database.run_folder for store in stores} == {run_dir(f"sqlite:///{real}")}
    for store in stores:
        store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link.db", "way"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "postgresql://me:secret@DB.example.org:5432/jobs",
            "postgres://you@db.example.org/jobs?sslmode=require",
            True,
        ),
        ("postgresql:///jobs", "postgresql://localhost/jobs", True),
        ("postgresql://db.example.org/jobs", "postgresql://db.example.org/others", False),
        ("postgresql://db.example.org/jobs", "postgresql://db.example.org:5433/jobs", False),
        ("postgresql://db:5433/jobs", "postgresql:///?host=db&port=5433&dbname=jobs", True),
        ("postgresql:///jobs?port=5433", "postgresql:///jobs?port=5434", False),
        ("postgresql:///?dbname=jobs", "postgresql:///?dbname=others", False),
        ("postgresql://[::1]/jobs", "postgresql://[::1]:5432/jobs", True),
        ("postgresql://a:1,b:2/jobs", "postgresql://a:1,b:3/jobs", False),
        ("postgresql://db/jobs", "postgresql://db/jobs?schema=spinney", True),
        ("postgresql://db/jobs?schema=a", "postgresql://db/jobs?schema=b", False),
        ("sqlite:////x/jobs.db", "sqlite:////x/y/../jobs.db", True),
        ("sqlite:////x/jobs.db", "sqlite:////x/others.db", False),
    ],
)
def test_urls_of_one_store_have_one_location(one: str, other: str, same: bool) -> None:
    assert (store_location(one) == store_location(other)) is same


def test_names_are_read_behind_a_link_from_what_is_not_taken_up_yet(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "disk" / "jobs.db")
    store = open_store(f"sqlite:///{tmp_path}/disk/jobs.db")
    store.create()
    store.register([TypeSpec(name="one", stages=(StageSpec(name="work"),))], [])

    assert names(f"sqlite:///{link}", "type") == ["one"]
    store.close()


@pytest.mark.parametrize(
    "password", ["s3cret", "s3c:ret", "s3c#ret", "s3c/ret", "s3c?ret", "s3c?r=et", "s3c@ret", "s3c%ret"]
)
def test_no_character_of_a_password_is_shown(password: str) -> None:
    url = f"postgresql://ann:{password}@db.example/jobs?schema=x&password=s3cret"

    assert without_password(url) == "postgresql://ann@db.example/jobs?schema=x"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql:///jobs?password=s3c@ret&user=ann", "postgresql:///jobs?user=ann"),
        ("postgresql://h/jobs?sslpassword=s3c@ret", "postgresql://h/jobs"),
        ("postgresql://h:5433/jobs?user=me@corp", "postgresql://h:5433/jobs?user=me%40corp"),
        ("postgresql://h:1,i:2/jobs?user=me@corp", "postgresql://h:1,i:2/jobs?user=me%40corp"),
        ("postgresql://[::1]:5433/jobs?user=me@corp", "postgresql://[::1]:5433/jobs?user=me%40corp"),
        ("postgresql://ann:s3cret@h?application_name=a@b", "postgresql://ann@h?application_name=a%40b"),
    ],
)
def test_an_at_sign_in_the_query_belongs_to_its_value(url: str, shown: str) -> None:
    assert without_password(url) == shown
    parsed(url)


@pytest.mark.parametrize("password", ["s3c#ret", "s3c/ret", "s3c?ret", "s3c?r=et", "s3c@ret", "s3c%ret"])
def test_a_password_with_unescaped_characters_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(
        UsageError, match="write # / \\? @ % of the password as %23 %2F %3F %40 %25"
    ) as refusal:
        parsed(f"postgresql://ann:{password}@db.example/jobs")

    assert "s3c" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "conninfo"),
    [
        ("postgresql:///jobs", "postgresql:///jobs"),
        ("postgresql:///jobs?host=/var/run/x&schema=y", "postgresql:///jobs?host=%2Fvar%2Frun%2Fx"),
        ("postgresql://ann:s3c%40ret@h/jobs", "postgresql://ann:s3c%40ret@h/jobs"),
        ("postgresql:///jobs?user=me@corp", "postgresql:///jobs?user=me%40corp"),
        ("postgresql://h/jobs?application_name=a@b", "postgresql://h/jobs?application_name=a%40b"),
        ("postgresql://h/jobs?sslcert=/home/a@b/c", "postgresql://h/jobs?sslcert=%2Fhome%2Fa%40b%2Fc"),
        ("postgresql://h/jobs?password=p@ss", "postgresql://h/jobs?password=p%40ss"),
    ],
)
def test_a_url_reaches_the_driver_without_its_schema(url: str, conninfo: str) -> None:
    assert parsed(url)[0] == conninfo
    assert without_password(url).startswith("postgresql://")
