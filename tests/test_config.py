"""Where things are: argument, environment, spinney.toml, default."""

import re
from pathlib import Path

import pytest

from spinney.config import Settings, settings
from spinney.model.errors import UsageError

DB = "sqlite:///{}"


def read(folder: Path, toml: str = "", *, store: str | None = None, env: str | None = None) -> Settings:
    if toml:
        (folder / "spinney.toml").write_text(toml)
    return settings(store, environment={"SPINNEY_STORE": env} if env else {}, directory=folder)


def test_the_nearest_word_wins(tmp_path: Path) -> None:
    toml = '[spinney]\nstore = "sqlite:///toml.db"\napp = "jobs:app"\n'
    assert read(tmp_path).store == "sqlite:///spinney.db"
    assert read(tmp_path, toml).store == "sqlite:///toml.db"
    assert read(tmp_path, toml).app == "jobs:app"
    assert read(tmp_path, toml, env="sqlite:///env.db").store == "sqlite:///env.db"
    assert read(tmp_path, toml, env="sqlite:///env.db", store="sqlite:///arg.db").store == "sqlite:///arg.db"


def test_folders_lie_beside_the_database_unless_said(tmp_path: Path) -> None:
    assert read(tmp_path).folders == tmp_path / "spinney.folders"
    assert read(tmp_path, store="sqlite:////var/lib/x/jobs.db").folders == Path("/var/lib/x/jobs.folders")
    assert read(tmp_path, '[spinney]\nfolders = "work"').folders == tmp_path / "work"


def test_the_run_dir_lies_beside_the_database_file() -> None:
    here = Path.cwd()
    assert read(here, store="sqlite:////var/x/jobs.db").run_dir == Path("/var/x/jobs.db.run")
    assert read(here, store="sqlite:///jobs.db").run_dir == here / "jobs.db.run"


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('[spinny]\nstore = "x"', r"no table 'spinny' \(did you mean 'spinney'\?\)"),
        (
            '[spinney]\nstroe = "x"',
            r"no key 'stroe' \(did you mean 'store'\?\); use one of: app, folders, store",
        ),
        ("[spinney]\nstore = 5", "store must be text in quotes, not 5"),
        ('spinney = "x"', "spinney must be a table"),
        ("[spinney", "is not valid TOML"),
        ('[spinney]\nstore = "jobs.db"', "'jobs.db' is no URL of a store; write it as sqlite:///jobs.db"),
        (
            '[spinney]\nstore = "postgresql://host/db"',
            r'write folders = ".*below \[spinney\] in spinney.toml',
        ),
        (
            'folders = "/srv"',
            r"folders belongs to no table; write it below one of \[spinney\], \[node\], \[server\]",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(tmp_path: Path, toml: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read(tmp_path, toml)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "is an empty text; write it as sqlite:///spinney.db, or leave it out"),
        ("sqlite://jobs.db", "'sqlite://jobs.db' is no URL of a store; write it as sqlite:///jobs.db or "),
        ("sqlite://", "write it as sqlite:///spinney.db or postgresql://user@host/database"),
        (
            "mysql://ann:secret@host/db",
            "'mysql://ann@host/db' is no URL of a store; write it as sqlite:///spinney.db",
        ),
    ],
)
def test_what_names_no_store_is_told_with_what_would(tmp_path: Path, url: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read(tmp_path, store=url)


@pytest.mark.parametrize("named", ["host=db.example password=s3cret", "ann:s3cret@db.example/jobs"])
def test_no_password_of_what_names_no_store_is_shown(tmp_path: Path, named: str) -> None:
    with pytest.raises(UsageError, match="write it as postgresql://user@host/database") as refusal:
        read(tmp_path, store=named)

    assert "s3cret" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "spinney.toml").mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path)
