"""Commands that work in steps, killed between two of them: the same command finishes what is left, and ``doctor`` tells
of it meanwhile."""

import subprocess
import sys

import pytest

from spinney.terminal import connection

from .shell import Shell

KILLED_BEFORE_IT_SWEEPS = """
import os, signal, sys
from spinney.cli import main
from spinney.features.holds.sql import SqlHolds

SqlHolds.sweep = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main.run(sys.argv[1:]))
"""


@pytest.fixture
def held(shell: Shell) -> Shell:
    for _ in range(3):
        shell.ok("submit", "double", "-p", "n=1")
    shell.ok("hold", "--queue", "default", "--reason", "disk swap")
    return shell


def kill(shell: Shell, *words: str) -> None:
    """Run a command in a process of its own, which is killed when it has committed what comes before the sweep."""
    command = [sys.executable, "-c", KILLED_BEFORE_IT_SWEEPS, *words]
    result = subprocess.run(command, cwd=shell.folder, env=shell.environment(), check=False, timeout=60)
    assert result.returncode == -9


def states(shell: Shell) -> list[str]:
    return [job["state"] for job in shell.listed("list")]


@pytest.mark.parametrize("on", [["--queue", "default"], ["--hold", "1"]])
def test_a_release_that_was_killed_is_finished_by_the_same_command(held: Shell, on: list[str]) -> None:
    kill(held, "release", *on)
    assert states(held) == ["held"] * 3
    assert held.listed("holds") == []

    assert held.ok("release", *on) == "hold 1 on queue default is released\n"

    assert states(held) == ["pending"] * 3
    assert "there is no hold" in held.refused(1, "release", *on)


def test_doctor_tells_of_a_release_that_was_killed_and_finishes_it(
    held: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(held, "release", "--queue", "default")
    later_us = connection.now_us() + 2_000_000
    monkeypatch.setattr(connection, "now_us", lambda: later_us)

    result = held.call("doctor")
    assert (result.returncode, "sweep-unfinished" in result.stdout) == (1, True), result.stdout
    held.ok("doctor", "--repair", "--yes")

    assert states(held) == ["pending"] * 3


def test_any_other_command_that_sweeps_finishes_it(held: Shell) -> None:
    kill(held, "release", "--queue", "default")

    held.ok("hold", "--type", "tell", "--reason", "look")

    assert states(held) == ["pending"] * 3


def test_a_hold_that_was_killed_is_finished_by_the_same_command(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    words = ["hold", "--queue", "default", "--reason", "disk swap"]
    kill(shell, *words)
    assert states(shell) == ["pending"]

    assert shell.ok(*words) == "hold 1 on queue default: 1 job is held\n"
    assert states(shell) == ["held"]
