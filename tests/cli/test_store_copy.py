"""``spinney store copy``, and ``spinney init --finish``."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from spinney.model.jobs import NodeInfo
from spinney.store.sql import open_store
from spinney.terminal.output import progress_line

from .shell import Shell, furnish


def test_a_store_is_copied_and_compared(shell: Shell) -> None:
    job = shell.ok("submit", "double", "-p", "n=1").strip()
    shell.ok("hold", "--all", "--reason", "moving", "--yes")
    head = shell.ok("audit", "head").strip()

    output = shell.ok("store", "copy", "sqlite:///spinney.db", "sqlite:///new.db")

    assert re.search(r"^jobs +1 +[0-9a-f]{16}$", output, flags=re.M)
    assert re.search(r"^both stores are identical: \d+ rows, [0-9a-f]{64}$", output, flags=re.M)
    assert "From now on use sqlite:///new.db" in output
    assert (
        f'the same folders (folders = "{shell.folder}/spinney.folders" in [spinney] of spinney.toml)'
        in output
    )
    assert "1 entry is intact" in shell.ok("audit", "verify", head, "--store", "sqlite:///new.db")
    assert shell.listed("list", "--store", "sqlite:///new.db")[0]["id"] == int(job)


def test_the_folders_are_named_as_toml_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / 'a "new"\\place\x7f\u202e'
    folder.mkdir()

    output = furnish(folder).ok("store", "copy", "sqlite:///spinney.db", "sqlite:///new.db")

    (line,) = re.findall(r"the same folders \((.*) in \[spinney\] of spinney\.toml\)", output)
    assert tomllib.loads(line) == {"folders": f"{folder}/spinney.folders"}
    assert line.isprintable()


def test_for_programs_it_is_one_document_and_the_same_each_time(shell: Shell) -> None:
    document = [
        json.loads(shell.ok("store", "copy", "sqlite:///spinney.db", f"sqlite:///{name}.db", "--json"))
        for name in ("one", "two")
    ]

    assert document[0]["digest"] == document[1]["digest"]
    assert document[0]["from"] == "sqlite:///spinney.db"
    jobs = next(each for each in document[0]["tables"] if each["table"] == "jobs")
    assert (jobs["rows"], len(jobs["digest"])) == (0, 64)


def test_what_stands_in_the_way_is_one_sentence(shell: Shell) -> None:
    assert "name another place" in shell.refused(
        1, "store", "copy", "sqlite:///spinney.db", "sqlite:///spinney.db"
    )
    assert "sqlite:///new.db" in shell.refused(2, "store", "copy", "sqlite:///spinney.db", "new.db")
    assert "there is no store" in shell.refused(1, "store", "copy", "sqlite:///absent.db", "sqlite:///new.db")
    store = open_store(f"sqlite:///{shell.folder}/spinney.db")
    store.join(
        NodeInfo(
            id=0,
            name="oak",
            boot_id="b",
            host="thor",
            pid=1,
            slots=1,
            state="active",
            beat=0,
            started_us=1,
            seen_us=1,
            version="0",
            types=(),
        ),
        now_us=1,
    )
    store.close()
    refusal = shell.refused(1, "store", "copy", "sqlite:///spinney.db", "sqlite:///new.db")
    assert "oak on thor (active); end them with SIGTERM" in refusal
    assert sorted(file.name for file in shell.folder.glob("*.db")) == ["spinney.db"]


def test_no_new_folder_root_is_made_for_a_store_that_has_jobs(shell: Shell) -> None:
    """Such as for a copy whose settings name no folders, or at the mount point of a share that is not mounted: the jobs
    would find their folders empty."""
    root = shell.folder / "spinney.folders"
    shell.ok("submit", "double", "-p", "n=1")
    root.rename(shell.folder / "elsewhere")

    refusal = shell.refused(1, "init")

    assert (
        f"the tables are up to date, but the store has jobs, and {root} is not its folder root; mount the shared folder"
        in refusal
    )
    assert not root.exists()
    assert "works with" in shell.ok("init", "--folders-only")
    assert root.is_dir()
    assert "works with" in shell.ok("init")


def test_there_is_nothing_to_finish(shell: Shell) -> None:
    assert shell.ok("init", "--finish") == "there is nothing to finish\n"
    assert json.loads(shell.ok("init", "--finish", "--json")) == {"finished": []}
    assert "works with" in shell.ok("init")


@pytest.mark.parametrize("there", [True, False])
def test_how_far_it_is_is_shown_on_a_terminal_alone(
    there: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: there)
    monkeypatch.setattr(progress_line, "INTERVAL_S", 0.0)

    progress = progress_line.ProgressLine()
    progress.show("jobs: copied 1,000 of 2,000")
    progress.end()

    assert capsys.readouterr().err == ("\rjobs: copied 1,000 of 2,000\033[K\r\033[K" if there else "")
