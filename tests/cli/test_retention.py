"""``spinney keep``: the rules, and a walk now."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from contract.everything import STANDS, filled
from spinney.folders import folders
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import open_store

from .shell import Shell


def test_without_rules_everything_is_kept(shell: Shell) -> None:
    assert shell.ok("keep") == "everything is kept for ever; 'spinney keep TYPE STATE 30d' sets how long\n"
    assert shell.listed("keep") == []


def test_a_rule_is_set_shown_and_taken_back(shell: Shell) -> None:
    output = shell.ok("keep", "double", "completed", "30d", "--by", "ann", "--reason", "disk")
    assert output == "completed jobs of double are kept for 30 days\n"
    assert (
        shell.ok("keep", "*", "failed", "forever", "--by", "ann")
        == "failed jobs of all types are kept for ever\n"
    )

    table = shell.ok("keep")
    assert [line.split() for line in table.splitlines()] == [
        ["TYPE", "STATE", "KEPT", "FOR", "BY"],
        ["*", "failed", "ever", "ann"],
        ["double", "completed", "30", "days", "ann"],
    ]
    assert shell.listed("keep") == [
        {"type": "*", "state": "failed", "keep_s": None, "by": "ann", "in_force": True},
        {"type": "double", "state": "completed", "keep_s": 2_592_000.0, "by": "ann", "in_force": True},
    ]

    assert shell.ok("keep", "double", "completed", "declared") == (
        "completed jobs of double are kept as the type says\n"
    )
    assert (
        shell.ok("keep", "double", "completed", "declared")
        == "nothing was set for completed jobs of double\n"
    )
    assert [rule["type"] for rule in shell.listed("keep")] == ["*"]


def test_what_an_operator_sets_over_a_type_is_told(bare: Shell) -> None:
    url = f"sqlite:///{bare.folder}/spinney.db"
    _declares(url)

    output = bare.ok("keep", "*", "completed", "1h30m", "--by", "ann")

    assert output == (
        "completed jobs of all types are kept for 90 minutes\n"
        "  instead of for ever, as the type archive says\n"
    )
    assert "overruled" in bare.ok("keep")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["doubel", "completed", "30d"], "did you mean 'double'?"),
        (["double", "complete", "30d"], "did you mean 'completed'?"),
        (["double", "running", "30d"], "name the state in which they settled"),
        (
            ["double", "completed", "30"],
            "TIME: '30' is no length of time; write numbers with w, d, h, m or s, as in 30d, 12h or 1h30m\n",
        ),
        (["double", "completed", "-3d"], "No such option"),
        (["double", "completed", "99999999w"], "kept for 0 to"),
        (["double", "completed"], "a time: spinney keep resize completed 30d"),
        (["double"], "a time: spinney keep resize completed 30d"),
    ],
)
def test_what_cannot_be_meant_is_refused(untouched: Shell, words: list[str], sentence: str) -> None:
    assert sentence in untouched.refused(2, "keep", *words)


def test_a_sweep_removes_rows_and_folders_now(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    made = filled(f"sqlite:///{tmp_path}/spinney.db")
    root = tmp_path / "spinney.folders"
    folders.write_token(root, "token")
    for job in made.jobs.values():
        (folders.make(root, job) / "file").write_text("x")
    shell.ok("keep", "one", "completed", "0s", "--by", "ann")

    output = shell.ok("keep", "--sweep", "--by", "ann")

    gone = [made["completed"]]
    assert STANDS["completed"] == "completed"
    assert output == f"{len(gone)} job removed\n"
    assert not any(folders.path(root, job).exists() for job in gone)
    assert {
        json.loads(line)["id"] for line in shell.ok("list", "--json", "--limit", "1000").splitlines()
    } == (set(made.jobs.values()) - set(gone))
    assert all(folders.path(root, job).exists() for job in set(made.jobs.values()) - set(gone))
    assert shell.listed("keep", "--sweep") == [{"removed": 0}]


def test_given_a_leader_whose_clock_has_jumped_then_the_list_says_so_until_an_operator_sweeps(
    tmp_path: Path,
) -> None:
    shell, url = Shell(tmp_path), f"sqlite:///{tmp_path}/spinney.db"
    _declares(url)
    folders.write_token(tmp_path / "spinney.folders", "token")
    now_us = time.time_ns() // 1000
    with closing(open_store(url)) as store:
        store.retention.observe_clock(now_us=now_us)
        assert "clock" not in shell.run("keep").stderr
        store.retention.observe_clock(now_us=now_us + 31 * 86_400_000_000)

        assert "nodes remove no jobs: the clock of the leader" in shell.run("keep").stderr
        shell.ok("keep", "--sweep", "--by", "ann")

        assert "clock" not in shell.run("keep").stderr
        clock = store.retention.clock()
        assert clock is not None
        assert now_us <= clock.trusted_us < now_us + 3_600_000_000, "the time of this host"


def _declares(url: str) -> None:
    store = open_store(url)
    store.create()
    store.register([TypeSpec(name="archive", stages=(StageSpec(name="pack"),), keep={"completed": None})], [])
    store.close()
