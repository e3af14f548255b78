"""A question that is answered with no: nothing was done, and the command ends with 1."""

import io
import sqlite3
import sys
from contextlib import closing

import pytest

from contract.everything import copied
from long_tests import long_alone
from own_commands import own_commands
from spinney.features.bulk import cli as bulk
from spinney.terminal.exit_codes import Exit

from .shell import Shell

ASKING = {
    "retry": ["--state", "failed"],
    "rerun": ["--state", "completed"],
    "run-now": ["--state", "scheduled"],
    "cancel": ["--state", "pending"],
    "move": ["--state", "pending", "--to", "default"],
    "priority": ["--state", "pending", "--to", "1"],
    "delete": ["--state", "completed"],
    "hold": ["--state", "pending", "--reason", "it is down"],
    "release": ["--state", "held"],
    "unlock": ["LOCK", "--reason", "it is gone"],
    "doctor": ["--repair"],
    "doctor --dead": ["--repair", "--dead", "NODE"],
}


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("case", ASKING)
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("n\n", id="n", marks=long_alone),
        pytest.param("no\n", id="no", marks=long_alone),
        pytest.param("\n", id="Enter"),
    ],
)
def test_no_is_an_answer(bare: Shell, monkeypatch: pytest.MonkeyPatch, case: str, answer: str) -> None:
    copied(bare.folder / "spinney.db")
    bare.ok("init", "--folders-only")
    monkeypatch.setattr(bulk, "CONFIRM_ABOVE", 0)
    with closing(sqlite3.connect(bare.folder / "spinney.db", isolation_level=None)) as database:
        (lock,) = database.execute("select name from locks").fetchone()
        (node,) = database.execute("select name from nodes where state <> 'left'").fetchone()
        if case == "doctor":
            database.execute("delete from ready")
    before = bare.ok("list", "--json"), bare.ok("audit", "--json"), bare.ok("locks", "--json")
    words = [{"LOCK": lock, "NODE": node}.get(word, word) for word in ASKING[case]]
    monkeypatch.setattr(sys, "stdin", Typed(answer))

    result = bare.call(case.partition(" ")[0], *words)

    assert "[y/N]" in result.stderr
    assert result.stderr.endswith("nothing was done\n")
    assert result.returncode == Exit.REFUSED
    assert (bare.ok("list", "--json"), bare.ok("audit", "--json"), bare.ok("locks", "--json")) == before


def test_every_command_that_asks_is_tried() -> None:
    commands = own_commands()
    asking = {name for name, command in commands.items() if any("--yes" in p.opts for p in command.params)}

    # What rehome lets go of is there only where folders are local: test_rehoming.
    assert asking == {case.partition(" ")[0] for case in ASKING} | {"rehome"}
