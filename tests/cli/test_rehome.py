"""``spinney init --local-folders``, ``rehome`` and ``files``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.words import THREE, Clock, Node, Site
from spinney.folders import folders
from spinney.model.homes import FolderRoot
from spinney.terminal.connection import now_us, open_local_store
from spinney.terminal.exit_codes import Exit

from .shell import Shell
from .test_confirmation import Typed


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def site(bare: Shell) -> Iterator[Site]:
    """A store with local folders. Jobs 1 to 3 have begun on thor, whose node has left; odin's is there."""
    bare.ok("init", "--local-folders")
    with open_local_store(f"sqlite:///{bare.folder}/spinney.db") as store:
        clock = Clock()
        clock.now_us = now_us()
        made = Site(store, clock)
        made.knows(THREE)
        thor = _node(made, "thor")
        made.submit("three", n=3)
        for lease in made.claim(thor):
            made.pass_(lease)
        made.recover(thor)
        yield made


def _node(site: Site, host: str) -> Node:
    root = FolderRoot(mark=f"mark-{host}", path=f"/disk/{host}")
    return site.node(f"on-{host}", root=root, host=host, boot_id=host, types=("three",))


def test_a_store_is_made_with_local_folders_once(bare: Shell) -> None:
    output = bare.ok("init", "--local-folders")
    assert "local: each node creates its own" in output
    assert not (bare.folder / "spinney.folders").exists()
    assert json.loads(bare.ok("init", "--json"))["folders"].startswith("local")
    assert bare.ok("init", "--local-folders") == output
    assert bare.ok("doctor").strip()


def test_a_store_with_shared_folders_stays_so(bare: Shell) -> None:
    bare.ok("init")
    output = bare.refused(1, "init", "--local-folders")
    assert "has shared folders, and that stays so" in output
    assert "shared, so that all its nodes see them" in bare.refused(1, "rehome", "1", "--yes")


def test_a_host_that_is_gone_is_let_go_of(bare: Shell, site: Site) -> None:
    odin = _node(site, "odin")
    assert site.claim(odin) == []
    (cause,) = bare.listed("explain", "1")
    assert (cause["cause"], cause["command"]) == ("home", "spinney rehome 1")
    question = bare.refused(2, "rehome", "--host", "thor")
    assert (
        "Give up all job folders on host thor? 3 jobs ready for it would continue elsewhere at once"
        in question
    )
    output = bare.ok("rehome", "--host", "thor", "--yes", "--reason", "its disk is gone", "--by", "ann")
    assert output == "host thor (/disk/thor) is given up; 3 jobs ready for it may continue elsewhere\n"
    assert [lease.stage for lease in site.claim(odin)] == ["second"] * 3
    (entry,) = bare.listed("audit", "list", "--verb", "rehome")
    assert (entry["by"], entry["reason"]) == ("ann", "its disk is gone")
    assert "no host 'thor' has job folders" in bare.refused(1, "rehome", "--host", "thor", "--yes")


def test_single_jobs_are_let_go_of_and_the_others_stay(bare: Shell, site: Site) -> None:
    odin = _node(site, "odin")
    result = bare.call("rehome", "1", "77", "3", "--yes", "--json")
    assert result.returncode == 1
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"job": n, "host": "thor", "path": "/disk/thor"} for n in (1, 3)
    ]
    assert "there is no job 77" in result.stderr
    assert [lease.job_id for lease in site.claim(odin)] == [1, 3]
    assert "is running on host odin" in bare.refused(1, "rehome", "1", "--yes")


def test_what_cannot_be_meant_is_refused(bare: Shell, site: Site) -> None:
    assert "name either jobs, or a host" in bare.refused(2, "rehome", "--yes")
    assert "name either jobs, or a host" in bare.refused(2, "rehome", "1", "--host", "thor", "--yes")
    assert "did you mean 'thor'" in bare.refused(1, "rehome", "--host", "thro", "--yes")
    _node(site, "thor")
    assert "nodes run on host thor (/disk/thor): on-thor" in bare.refused(
        1, "rehome", "--host", "thor", "--yes"
    )


def test_files_of_a_job_are_listed_and_printed(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    root = shell.folder / "spinney.folders"
    assert shell.ok("files", "1") == "job 1 has no files\n"
    folder = folders.make(root, 1)
    (folder / "in").mkdir()
    (folder / "in" / "a").write_bytes(b"\x00\xff" * 100_000)
    (folder / "b").symlink_to("/etc/passwd")
    assert [line.split() for line in shell.ok("files", "1").splitlines()[1:]] == [
        ["(link", "or", "special", "file)", "b"],
        ["200,000", "in/a"],
    ]
    assert shell.listed("files", "1") == [
        {"path": "b", "kind": "other", "size": len("/etc/passwd")},
        {"path": "in/a", "kind": "file", "size": 200_000},
    ]
    done = shell.start("files", "1", "in/a")
    out = done.stdout.buffer.read()  # type: ignore[union-attr]
    done.communicate()
    assert out == b"\x00\xff" * 100_000
    assert "is not there; 'spinney files 1' lists" in shell.refused(1, "files", "1", "in/c")
    assert "through a link" in shell.refused(1, "files", "1", "b")
    assert "no job 7" in shell.refused(1, "files", "7")


def test_no_is_an_answer(bare: Shell, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    odin = _node(site, "odin")
    monkeypatch.setattr(sys, "stdin", Typed("n\n"))

    result = bare.call("rehome", "--host", "thor")

    assert result.stderr.endswith("nothing was done\n")
    assert result.returncode == Exit.REFUSED
    assert site.claim(odin) == []
