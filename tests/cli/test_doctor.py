"""``spinney doctor``: reads unless told to repair; says what is wrong, in words; exit codes for scripts."""

import json
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from contract.everything import filled
from spinney.folders import folders
from spinney.host import boot
from spinney.model.jobs import NodeInfo
from spinney.node.instance import Instance
from spinney.store.sql import open_store

from .shell import Shell


def damage(shell: Shell, *statements: str) -> None:
    with closing(sqlite3.connect(shell.folder / "spinney.db", isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount


def lost(shell: Shell, n: int = 1) -> None:
    """Jobs that stand nowhere."""
    for i in range(n):
        shell.ok("submit", "double", "-p", f"n={i}")
    damage(shell, "delete from ready")


def listed(shell: Shell, code: int, *words: str) -> list[dict[str, object]]:
    result = shell.call("doctor", "--json", *words)
    assert result.returncode == code, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_healthy_store_says_so_and_ends_with_0(shell: Shell) -> None:
    assert shell.ok("doctor") == "healthy: nothing is wrong\n"
    assert listed(shell, 0) == []
    shell.ok("submit", "double", "-p", "n=1")
    assert shell.ok("doctor", "--deep") == "healthy: nothing is wrong\n"


def test_a_store_that_is_missing_is_not_examined(bare: Shell) -> None:
    result = bare.call("doctor")

    assert (result.returncode, result.stdout) == (1, "")
    assert "there is no store at" in result.stderr


def test_a_store_with_something_of_everything_has_only_silent_nodes(bare: Shell) -> None:
    filled(f"sqlite:///{bare.folder}/spinney.db")
    bare.ok("init", "--folders-only")

    assert {v["rule"] for v in listed(bare, 1)} == {"node-silent"}


def test_violations_are_told_by_rule_with_what_a_repair_would_do(shell: Shell) -> None:
    lost(shell, 25)
    folders.make(shell.folder / "spinney.folders", 77)

    result = shell.call("doctor")

    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "pending-nowhere:",
        "  job 1 is pending, but is neither in ready nor leased, so that nobody can claim it",
        "    --repair places it afresh",
    ]
    assert lines[41] == "  … and 5 more of these"
    assert lines[42] == "folder-orphan:"
    assert lines[43].startswith("  there is a folder of job 77, but no such job")
    assert lines[44].startswith("    --repair sets it aside in ")
    assert lines[-1] == "26 violations found; 26 can be repaired (--repair)"
    assert shell.call("doctor").stdout == result.stdout, "nothing was changed"


def test_json_is_one_object_a_line(shell: Shell) -> None:
    lost(shell)

    assert listed(shell, 1) == [
        {
            "rule": "pending-nowhere",
            "subject": "job 1",
            "sentence": "job 1 is pending, but is neither in ready nor leased, so that nobody can claim it",
            "repair": "places it afresh",
            "facts": {"id": 1},
        }
    ]


def test_a_repair_is_asked_for_done_and_audited(shell: Shell) -> None:
    lost(shell, 2)
    orphan = folders.make(shell.folder / "spinney.folders", 77)

    refusal = shell.refused(2, "doctor", "--repair")
    assert "Repair 3 violations? There is no terminal to confirm this at; add --yes to confirm it" in refusal
    assert shell.call("doctor").returncode == 1

    output = shell.ok("doctor", "--repair", "--yes", "--by", "ann")

    assert output.splitlines() == [
        "repaired job 1: pending-nowhere",
        "repaired job 2: pending-nowhere",
        "repaired folder 00/00/00/000000000077: folder-orphan",
        "healthy: nothing is wrong",
    ]
    assert not orphan.exists()
    assert shell.ok("doctor") == "healthy: nothing is wrong\n"
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        entries = [entry for entry, _ in store.audit.entries()]
    assert [(e.by, e.verb) for e in entries] == [("ann", "repair")] * 3
    assert len({e.call for e in entries}) == 1


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 1)])
def test_at_a_terminal_it_asks(shell: Shell, answer: bool, code: int) -> None:
    lost(shell)

    with (
        mock.patch("sys.stdin.isatty", return_value=True, create=True),
        mock.patch("typer.confirm", return_value=answer) as confirm,
    ):
        result = shell.call("doctor", "--repair")

    assert result.returncode == code
    assert confirm.call_args.args == ("Repair 1 violation?",)
    assert shell.call("doctor").returncode == code


def test_what_cannot_be_repaired_is_told_again_and_ends_with_1(shell: Shell) -> None:
    lost(shell)
    damage(shell, "update jobs set key = 'k'", "insert into keys values (0, 'k', 99, 1)")

    result = shell.call("doctor", "--repair", "--yes")

    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "repaired job 1: pending-nowhere"
    assert lines[1].startswith("cannot repair job 1: key-not-taken: the key 'k' of job 1 is taken by job 99")
    assert lines[2] == "key-not-taken:"
    treated = listed(shell, 1, "--repair", "--yes")
    assert [t.get("repaired") for t in treated] == [False, None]
    assert "is taken by job 99" in str(treated[0]["error"])


def test_what_keeps_every_rule_from_looking_is_said_once(shell: Shell) -> None:
    file = shell.folder / "spinney.db"
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + b"damaged!" * ((len(whole) - 8192) // 8))

    result = shell.call("doctor")

    assert result.returncode == 1
    assert (
        result.stdout.count(
            "is no database or is damaged; see in the kernel's log whether its disk has failed"
        )
        == 1
    ), result.stdout


def test_nothing_to_repair_is_not_asked_about(shell: Shell) -> None:
    assert shell.ok("doctor", "--repair") == "healthy: nothing is wrong\n"
    _join(shell, "oak")
    assert shell.call("doctor", "--repair").returncode == 1, "a silent node is a person's to judge"


def test_only_some_rules(shell: Shell) -> None:
    lost(shell)
    folders.make(shell.folder / "spinney.folders", 77)

    assert [v["rule"] for v in listed(shell, 1, "--only", "pending-nowhere")] == ["pending-nowhere"]
    assert listed(shell, 0, "--only", "overdue", "--only", "folder-root") == []
    shell.ok("doctor", "--only", "pending-nowhere", "--repair", "--yes")
    assert [v["rule"] for v in listed(shell, 1)] == ["folder-orphan"]
    assert "no rule 'overdu' (did you mean 'overdue'?)" in shell.refused(2, "doctor", "--only", "overdu")


def test_the_rules_are_listed(shell: Shell) -> None:
    rules = listed(shell, 0, "--rules")

    assert {
        "rule": "pending-nowhere",
        "about": "A pending job is in ready, or is leased.",
        "repairs": True,
        "deep": False,
    } in rules
    assert {r["rule"] for r in rules} >= {"folder-orphan", "stuck-for-needs", "node-silent"}
    assert "The job of each folder exists." in shell.ok("doctor", "--rules")


def test_a_folder_root_of_another_store_is_told(shell: Shell) -> None:
    (shell.folder / "spinney.folders" / folders.TOKEN).write_text("another\n")

    (violation,) = listed(shell, 1)

    assert (violation["rule"], violation["repair"]) == ("folder-root", None)


# --- dead nodes -------------------------------------------------------------------------------


def _join(shell: Shell, name: str, ago_s: float = 120, host: str = "elsewhere", boot_id: str = "b") -> int:
    """Let a node join that has sent its only heartbeat so long ago; return when, in microseconds since 1970."""
    seen_us = time.time_ns() // 1000 - round(ago_s * 1e6)
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        store.join(
            NodeInfo(
                id=0,
                name=name,
                boot_id=boot_id,
                host=host,
                pid=1,
                slots=1,
                state="active",
                beat=0,
                started_us=seen_us,
                seen_us=seen_us,
                version="0",
                types=(),
                lease_s=15.0,
            ),
            now_us=seen_us,
        )
    return seen_us


def test_a_node_is_declared_dead_only_with_a_word_of_consent(shell: Shell) -> None:
    _join(shell, "oak")
    assert "spinney doctor --repair --dead oak" in shell.call("doctor").stdout

    assert "--dead goes with --repair" in shell.refused(2, "doctor", "--dead", "oak")
    assert "no terminal to confirm this at; add --yes" in shell.refused(
        2, "doctor", "--repair", "--dead", "oak"
    )
    assert "did you mean 'oak'" in shell.refused(1, "doctor", "--repair", "--dead", "oakk", "--yes")

    output = shell.ok("doctor", "--repair", "--dead", "oak", "--yes")

    assert output == "node oak is marked as dead; 0 jobs taken back\nhealthy: nothing is wrong\n"


def test_a_node_that_beats_is_not_declared_dead(shell: Shell) -> None:
    _join(shell, "oak", ago_s=5)

    refusal = shell.refused(1, "doctor", "--repair", "--dead", "oak", "--yes")

    assert "so it is not dead; stop it there" in refusal


def test_a_node_that_is_proven_to_have_ended_is_declared_dead_at_once(shell: Shell) -> None:
    """It ran on this host, and no process holds its lock."""
    started_us = _join(shell, "oak", ago_s=1, host=socket.gethostname(), boot_id=boot.boot_id())
    instance = Instance(name="oak", pid=1, started_us=started_us)
    instance.lock_path(shell.folder / "spinney.db.run").touch()

    assert "node oak is marked as dead" in shell.ok("doctor", "--repair", "--dead", "oak", "--yes")


def test_a_node_that_beats_by_a_clock_that_is_behind_is_not_declared_dead(shell: Shell) -> None:
    """By the clock of this host it has been silent for an hour, and everything else about it looks dead, too."""
    _join(shell, "oak", ago_s=3600)
    over = threading.Event()

    def beat() -> None:
        with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
            while not over.wait(0.1):
                store.beat(1, now_us=time.time_ns() // 1000 - 3_600_000_000)

    node = threading.Thread(target=beat)
    node.start()
    try:
        refusal = shell.refused(1, "doctor", "--repair", "--dead", "oak", "--yes")
    finally:
        over.set()
        node.join()

    assert "node oak on elsewhere has just sent a heartbeat, so it is not dead" in refusal
    assert shell.listed("nodes")[0]["state"] == "dead"  # by the clocks of the hosts


def test_while_a_node_works_the_store_is_healthy(working: Shell) -> None:
    jobs = [working.ok("submit", "double", "-p", f"n={n}").strip() for n in range(5)]
    assert working.ok("doctor") == "healthy: nothing is wrong\n"
    for job in jobs:
        working.ok("wait", job)
    assert working.ok("doctor") == "healthy: nothing is wrong\n"


def test_without_a_store_it_says_how_to_make_one(bare: Shell, tmp_path: Path) -> None:
    assert "spinney init" in bare.refused(1, "doctor")
