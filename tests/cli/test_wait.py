"""What people see while they wait."""

import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from spinney.commands.job_queries import ListJobs, ShowJob
from spinney.features.explain.commands import ExplainJob
from spinney.features.explain.explanation import Explanation
from spinney.features.holds.commands import ListHoldsOn
from spinney.features.submission import wait_cli as wait
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.model.values.lists import All, Page
from spinney.terminal.connection import open_commands

from .shell import Shell


def test_a_summary_counts_what_has_ended_and_what_is_open() -> None:
    counts = {"completed": 61, "failed": 1, "running": 2, "pending": 1141, "deleted": 5, "held": 0}

    assert wait.summary(counts) == "62 of 1,205 settled: 61 completed, 1 failed; 2 running, 1,141 pending"
    assert wait.summary({"pending": 1}) == "0 of 1 settled; 1 pending"


def test_the_live_picture_has_a_bar_the_counts_and_what_runs(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    with open_commands(f"sqlite:///{shell.folder}/spinney.db") as performer:
        job = replace(
            performer.do(ShowJob(job=1)), state=State.RUNNING, progress=0.5, progress_message="half\x1b[2J"
        )
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, legacy_windows=False)

    with Live(console=console, auto_refresh=False, transient=False) as live:
        wait._Live(live).update({"running": 1, "completed": 3}, [job], [], last=False)
        live.refresh()

    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert any(line.rstrip().endswith("3 of 4 settled: 3 completed; 1 running") for line in lines)
    assert "1 double double 50% half\\x1b[2J" in out.getvalue()


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (False, "1 double pending: no node is running"),
        (True, "1 double held: hold 1 on job 1 by ann: not yet"),
    ],
)
def test_what_does_not_go_on_by_itself_is_told_to_who_waits(shell: Shell, hold: bool, said: str) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    if hold:
        shell.ok("hold", "1", "--reason", "not yet", "--by", "ann")

    waits = shell.start("wait", "1")
    try:
        assert waits.stdout is not None
        lines_printed = [waits.stdout.readline(), waits.stdout.readline()]
    finally:
        waits.kill()
        waits.communicate()

    assert lines_printed[0].startswith("0 of 1 settled; 1 ")
    assert lines_printed[1].strip().startswith(said), lines_printed


class _Tree:
    """Does the commands of a wait for job 1, which waits for job 2."""

    def __init__(self, shell: Shell, waits_for: str, *, automatic: bool) -> None:
        with open_commands(f"sqlite:///{shell.folder}/spinney.db") as performer:
            job = performer.do(ShowJob(job=1))
        self.top = replace(job, state=State.WAITING, waits_for=waits_for)
        self._held = replace(job, id=2, state=State.HELD)
        self._automatic = automatic

    def do(self, command: object) -> object:
        match command:
            case ListJobs():
                return Page(items=[self._held] if command.state == [State.HELD] else [], next=None)
            case ListHoldsOn():
                hold = Hold(
                    id=3,
                    scope=Scope.TYPE,
                    name="double",
                    reason="five in a row",
                    by="circuit breaker",
                    since_us=0,
                    automatic=self._automatic,
                )
                return All(items=[hold])
            case ExplainJob():
                return Explanation(
                    job_id=2,
                    cause="hold",
                    sentence="it is held by hold 3",
                    command="spinney release --hold 3",
                )
        raise AssertionError(command)


@pytest.mark.parametrize(
    ("waits_for", "automatic", "open_", "ends"),
    [
        ("children", True, {"waiting": 1, "held": 1}, True),
        ("children", True, {"waiting": 1, "held": 1, "pending": 1}, False),
        ("children", False, {"waiting": 1, "held": 1}, False),
        ("lock", True, {"waiting": 1, "held": 1}, False),
    ],
)
def test_the_wait_ends_when_a_circuit_breaker_holds_all_that_is_open(
    shell: Shell, waits_for: str, automatic: bool, open_: dict[str, int], ends: bool
) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    tree = _Tree(shell, waits_for, automatic=automatic)

    held = wait._Stuck(tree).held_for_good([tree.top], open_)  # type: ignore[arg-type]

    assert (held is not None) is ends
    if held is not None:
        assert "circuit breaker holds job 2. it is held by hold 3; spinney release --hold 3" in held


@pytest.mark.parametrize("number", [wait.COUNTED_TREES, wait.COUNTED_TREES + 1])
def test_the_wait_for_few_and_for_many_ends_when_a_circuit_breaker_holds_them(
    shell: Shell, number: int
) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(number)), "double")
    shell.ok("cancel", "1")
    shell.ok("hold", "--type", "double", "--reason", "five in a row")
    with sqlite3.connect(shell.folder / "spinney.db") as database:
        assert database.execute("update holds set automatic = 1").rowcount == 1
        database.execute("update counters set value = value + 1 where name = 'registry'")
    database.close()

    waits = shell.run("wait", *map(str, range(1, number + 1)))

    assert waits.returncode == 1
    assert "the wait ends: a circuit breaker holds job 2." in waits.stderr


def test_nothing_is_waited_for_twice(shell: Shell, tmp_path: Path) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(wait.COUNTED_TREES + 1))
    shell.submit_lines(lines, "double")
    shell.ok("cancel", "1", "2")
    with open_commands(f"sqlite:///{shell.folder}/spinney.db") as performer:
        line = wait._Line(performer, range(1, wait.COUNTED_TREES + 2))

        assert not line.look()
        assert line.counts() == {"cancelled": 2, "open": wait.COUNTED_TREES - 1}
        assert not line.look()
        assert line.counts() == {"cancelled": 2, "open": wait.COUNTED_TREES - 1}


def test_what_was_waited_for_is_told_as_json_and_the_waiting_on_stderr(shell: Shell) -> None:
    shell.submit_lines("".join(f'{{"n": {n}}}\n' for n in range(30)), "double")
    shell.ok("cancel", *map(str, range(1, 31)))

    few = shell.call("wait", "2", "1", "--json")
    many = shell.call("wait", *map(str, range(1, 31)), "--json")

    assert (few.returncode, many.returncode) == (1, 1)
    assert [(job["id"], job["state"]) for job in map(json.loads, few.stdout.splitlines())] == [
        (1, "cancelled"),
        (2, "cancelled"),
    ]
    assert [json.loads(line)["id"] for line in many.stdout.splitlines()] == [*range(1, 31)]
    assert "2 of 2 settled" in few.stderr
