"""``top`` on a real terminal, beside a real node."""

import json
import signal
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from long_tests import long_alone
from waiting import until

from .shell import Shell
from .terminal import Terminal


@pytest.fixture
def busy(working: Shell, tmp_path: Path) -> Iterator[tuple[Shell, str]]:
    """A node with a job at work, and the job's number. The job ends with the test."""
    flag = tmp_path / "flag"
    job = working.ok("submit", "until", "-p", f"flag={flag}").strip()
    until(lambda: state(working, job) == "running")
    yield working, job
    flag.touch()
    until(lambda: state(working, job) in ("completed", "cancelled"))


def state(shell: Shell, job: str) -> str:
    return str(shown(shell, job)["state"])


def shown(shell: Shell, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shell.ok("show", job, "--json"))["job"]
    return document


def top(shell: Shell, *words: str, **how: Any) -> Terminal:
    return Terminal(shell.folder, ["-m", "spinney", "top", "--by", "ann", *words], **how)


def select(terminal: Terminal, beginning: str) -> None:
    """Go to the line that begins so, as a user does: downward until it is there."""
    terminal.wait_for(lambda t: t.selected)
    for _ in range(40):
        if terminal.selected.startswith(beginning):
            return
        before = terminal.selected
        terminal.type("\x1b[B")
        terminal.wait_for(lambda t, before=before: t.selected != before)
    raise AssertionError(terminal.text)


def test_it_shows_queues_nodes_and_what_runs_and_goes_on_looking(busy: tuple[Shell, str]) -> None:
    shell, job = busy
    with top(shell) as terminal:
        # The last line of the picture, so that it is drawn whole.
        terminal.wait_for(lambda t: "RUNNING JOB" in t.text and "q quit" in t.lines[-1])

        assert any(line.startswith("default ") for line in terminal.lines)
        assert any(line.startswith(f"{job} ") and "until" in line and "n1" in line for line in terminal.lines)
        assert "slots: n1 1/2" in terminal.text
        assert "1 running" in terminal.lines[0]

        output = shell.ok("submit", "double", "-p", "n=1", "--wait")

        assert "completed" in output
        completed = json.loads(shell.ok("list", "--count", "--json"))["completed"]
        terminal.wait_for(f"{completed} completed")


def test_a_job_is_cancelled_with_a_reason_after_a_question(busy: tuple[Shell, str]) -> None:
    shell, job = busy
    with top(shell) as terminal:
        select(terminal, job)
        terminal.type("c")
        terminal.wait_for(f"cancel job {job}?  y: yes")
        assert state(shell, job) == "running"

        terminal.type("y")
        terminal.wait_for("reason (may be empty)")
        terminal.type("wrong batxx\x7f\x7fch")
        terminal.wait_for("wrong batch")
        terminal.type("\r")

        terminal.wait_for(f"cancel job {job}: done")
        until(lambda: state(shell, job) == "cancelled")
    assert shown(shell, job)["message"] == "cancelled by ann: wrong batch"


@pytest.mark.parametrize(
    "no", ["cn", *(pytest.param(no, marks=long_alone) for no in ("cq", "cy\x1b", "c\r"))]
)
def test_whoever_does_not_confirm_changes_nothing(busy: tuple[Shell, str], no: str) -> None:
    shell, job = busy
    with top(shell) as terminal:
        select(terminal, job)

        for key in no:
            terminal.type(key)
            terminal.wait_for("reason" if key == "y" else "?  y: yes" if key == "c" else "nothing was done")

        assert not shown(shell, job)["cancelling"]
        assert terminal.process.poll() is None


def test_a_queue_is_held_and_released(busy: tuple[Shell, str]) -> None:
    shell, _ = busy
    with top(shell) as terminal:
        select(terminal, "default")
        terminal.type("hy")
        terminal.wait_for("reason:")
        terminal.type("\r")
        terminal.wait_for("enter a reason")
        terminal.type("disk is full\r")
        terminal.wait_for("on queue default by ann: disk is full")
        job = shell.ok("submit", "double", "-p", "n=1").strip()
        assert state(shell, job) == "held"

        terminal.type("uy")
        terminal.wait_for("reason (may be empty)")
        terminal.type("\r")

        terminal.wait_for("released: hold")
        until(lambda: state(shell, job) == "completed")
    assert shell.listed("holds") == []


def test_all_that_failed_for_a_cause_is_retried(working: Shell, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    jobs = [working.ok("submit", "fragile", "-p", f"flag={flag}").strip() for _ in range(3)]
    until(lambda: [state(working, job) for job in jobs] == ["failed"] * 3)
    flag.touch()
    (cause,) = working.listed("failures")
    with top(working) as terminal:
        terminal.wait_for(cause["fingerprint"][:8])
        select(terminal, cause["fingerprint"][:8])

        terminal.type("ry")
        terminal.wait_for("reason")
        terminal.type("the flag is up\r")

        terminal.wait_for("3 done")
    until(lambda: [state(working, job) for job in jobs] == ["completed"] * 3)
    (entry,) = [e for e in working.listed("audit") if e["verb"] == "retry" and e["count"] == 3]
    assert (entry["by"], entry["reason"]) == ("ann", "the flag is up")


def test_other_jobs_are_listed_and_explained_and_what_the_store_refuses_is_told(shell: Shell) -> None:
    shell.ok("submit", "double", "-p", "n=1")
    with top(shell) as terminal:
        terminal.wait_for("RUNNING JOB")
        terminal.type("\t")
        terminal.wait_for("PENDING JOB")
        select(terminal, "1 ")

        terminal.type("ry")
        terminal.wait_for("reason")
        terminal.type("\r")

        terminal.wait_for("retry job 1: job 1 is pending")

        terminal.type("e")

        terminal.wait_for("no node")


@pytest.mark.parametrize(
    ("leave", "code"),
    [("q", 0), ("\x03", 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)],
    ids=["q", "Ctrl-C", "SIGTERM", "SIGHUP"],
)
def test_however_it_ends_the_terminal_is_as_it_was(
    shell: Shell, leave: str | signal.Signals, code: int
) -> None:
    with top(shell) as terminal:
        terminal.wait_for("q quit")
        assert terminal.modes != terminal.modes_before
        assert not terminal.modes[3] & (termios.ECHO | termios.ICANON)
        assert b"\x1b[?1049h" in terminal.raw

        if isinstance(leave, str):
            terminal.type(leave)
        else:
            terminal.process.send_signal(leave)

        assert terminal.end() == code
        assert terminal.modes == terminal.modes_before
        assert terminal.raw.endswith(b"\x1b[?25h\x1b[?1049l"), (
            "the cursor is seen, and the screen that was before"
        )


def test_an_error_gives_the_terminal_back_first(tmp_path: Path) -> None:
    broken = (
        "from spinney.terminal.output.screen import Screen\n"
        "with Screen() as screen:\n"
        "    screen.draw('here')\n"
        "    screen.wait(60)\n"
        "    raise ValueError('no')"
    )
    with Terminal(tmp_path, ["-c", broken]) as terminal:
        terminal.wait_for("here")
        terminal.type("x")

        assert terminal.end() == 1
        assert terminal.modes == terminal.modes_before
        before, _, after = terminal.raw.partition(b"\x1b[?1049l")
        assert b"Traceback" in after
        assert b"Traceback" not in before


def test_its_keys_are_told_and_it_follows_the_size_of_the_terminal(shell: Shell) -> None:
    with top(shell, "--every", "3600", lines=30) as terminal:
        terminal.wait_for(lambda t: "q quit" in t.lines[29])
        terminal.type("?")
        terminal.wait_for("Any key goes back")
        terminal.type(" ")
        terminal.wait_for(lambda t: "q quit" in t.lines[29])

        terminal.resize(80, 12)

        terminal.wait_for(lambda t: len(t.lines) == 12 and "q quit" in t.lines[11])


@pytest.mark.parametrize("words", [["top"], ["top", "--every", "1"]])
def test_without_a_terminal_it_names_the_command_that_needs_none(untouched: Shell, words: list[str]) -> None:
    output = untouched.refused(2, *words)

    assert "needs a terminal" in output
    assert "spinney stats" in output


def test_a_terminal_that_cannot_be_drawn_on_is_refused(shell: Shell) -> None:
    with top(shell, TERM="dumb") as terminal:
        assert terminal.end() == 2
        assert "cannot draw on a terminal of the type 'dumb'" in " ".join(terminal.text.split())


def test_where_there_is_no_store_the_terminal_is_left_alone(bare: Shell) -> None:
    with top(bare) as terminal:
        assert terminal.end() == 1
        assert "spinneyinit" in "".join(terminal.text.split())  # lines are broken at any character
        assert b"\x1b[?1049h" not in terminal.raw
