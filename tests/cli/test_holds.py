"""``hold``, ``holds`` and ``release``, as users type them."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from spinney.model.errors import UsageError
from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.values.times import parse_time
from spinney.terminal.connection import open_local_store
from waiting import until

from .shell import Shell


def shown_job(shell: Shell, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shell.ok("show", job, "--json"))
    return document


def submit(shell: Shell, *words: str) -> str:
    return shell.ok("submit", *(words or ("double", "-p", "n=1"))).split()[0]


@pytest.mark.parametrize(
    ("words", "on"),
    [
        (["--queue", "default"], "queue default"),
        (["--type", "double"], "type double"),
        (["--collection", "c"], "collection c"),
        (["--submitter", "eve"], "submitter eve"),
        (["--tree", "1"], "tree 1"),
        (["--all"], "everything"),
    ],
)
def test_a_hold_is_laid_listed_and_released(shell: Shell, words: list[str], on: str) -> None:
    submit(shell, "double", "-p", "n=1", "--collection", "c", "--submitter", "eve")

    laid = shell.ok("hold", *words, "--reason", "disk swap", "--by", "ann")

    assert laid == f"hold 1 on {on}: 1 job is held\n"
    (listed,) = shell.listed("holds")
    assert (listed["id"], listed["by"], listed["reason"], listed["automatic"]) == (
        1,
        "ann",
        "disk swap",
        False,
    )
    table = shell.ok("holds")
    assert on in table
    assert "disk swap" in table
    assert shell.ok("release", *words) == f"hold 1 on {on} is released\n"
    assert shell.listed("holds") == []
    assert shown_job(shell, "1")["job"]["state"] == "pending"


def test_holds_as_a_whole_are_documents_for_programs(shell: Shell) -> None:
    laid = [
        json.loads(shell.ok("hold", *words, "--reason", "disk swap", "--json"))
        for words in (["--queue", "default"], ["--all"])
    ]

    assert [hold["id"] for hold in laid] == [1, 2]
    assert laid == shell.listed("holds")
    assert [hold["id"] for hold in shell.listed("release", "--hold", "2", "--hold", "1")] == [2, 1]
    assert shell.listed("holds") == []


def test_a_held_job_shows_why_and_all_that_cover_it(shell: Shell) -> None:
    submit(shell)
    shell.ok("hold", "--type", "double", "--reason", "disk swap", "--by", "ann")
    shell.ok("hold", "--all", "--reason", "the network is down", "--by", "bob")

    shown, plain = shown_job(shell, "1"), shell.ok("show", "1")

    assert (shown["job"]["state"], shown["job"]["waits_for"]) == ("held", "hold")
    assert shown["job"]["message"] == "hold 1 on type double by ann: disk swap"
    assert [h["id"] for h in shown["holds"]] == [1, 2]
    assert "hold 1 on type double by ann: disk swap" in plain
    assert "hold 2 on everything by bob: the network is down" in plain
    assert "disk swap" in shell.ok("explain", "1")


def test_what_is_submitted_under_a_hold_is_accepted_and_said_to_be_held(shell: Shell) -> None:
    shell.ok("hold", "--type", "double", "--reason", "disk swap")

    result = shell.call("submit", "double", "-p", "n=1")

    assert (result.returncode, result.stdout) == (0, "1\n")
    sentence = "and will not start before the hold ends; 'spinney explain"
    assert result.stderr == f"spinney: job 1 is held, {sentence} 1' tells why\n"
    assert shown_job(shell, "1")["job"]["state"] == "held"

    lines = shell.folder / "jobs.jsonl"
    lines.write_text('{"n": 2}\n{"n": 3}\n')
    assert shell.call("submit", "double", "--jobs", str(lines)).stderr == (
        f"spinney: all 2 jobs are held, {sentence} 2' tells why\n"
    )
    lines.write_text('{"type": "double", "params": {"n": 4}}\n{"type": "tell", "params": {"text": "5"}}\n')
    assert shell.call("submit", "--jobs", str(lines)).stderr == (
        f"spinney: 1 of the 2 jobs is held, {sentence} JOB' tells why\n"
    )


def test_single_jobs_are_held_and_released_by_their_numbers(shell: Shell) -> None:
    for _ in range(3):
        submit(shell)

    output = shell.ok("hold", "1", "2", "--reason", "look at these")

    assert output.splitlines() == ["hold 1 on job 1: it is held", "hold 2 on job 2: it is held"]
    assert [shown_job(shell, n)["job"]["state"] for n in "123"] == ["held", "held", "pending"]
    assert shell.ok("release", "2") == "job 2 is released\n"
    assert [h["name"] for h in shell.listed("holds")] == ["1"]


def test_release_of_a_job_under_a_wider_hold_says_what_would_help(shell: Shell) -> None:
    submit(shell)
    shell.ok("hold", "--type", "double", "--reason", "disk swap", "--by", "ann")

    sentence = shell.refused(1, "release", "1")
    assert "hold 1 on type double by ann: disk swap" in sentence
    assert "spinney release --hold 1" in sentence
    shell.ok("hold", "1", "--reason", "look at it")
    assert shell.ok("release", "1") == (
        "job 1 is released, but stays under hold 1 on type double by ann: disk swap\n"
    )
    assert shell.ok("release", "--hold", "1") == "hold 1 on type double is released\n"
    assert shown_job(shell, "1")["job"]["state"] == "pending"


def test_a_hold_ends_at_the_time_that_was_said(shell: Shell) -> None:
    shell.ok("hold", "--all", "--reason", "backup", "--until", "2h")
    shell.ok("hold", "--queue", "default", "--reason", "backup", "--until", "2099-01-31T08:00+01:00")

    spanned, dated = shell.listed("holds")

    assert abs(spanned["until_us"] / 1e6 - time.time() - 7200) < 60
    assert dated["until_us"] == 4_073_526_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("7d", 604_800), ("1970-01-02T00:00+00:00", 86_390)]
)
def test_times_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_time(text, 10_000_000, ahead=True) == 10_000_000 + seconds * 1_000_000


@pytest.mark.parametrize("text", ["", "soon", "5", "2h later", "2030-13-01", "-1h", "1e9d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write how long"):
        parse_time(text, 0, ahead=True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["hold", "--reason", "x"], "exactly one of"),
        (["hold", "--all", "--queue", "q", "--reason", "x"], "exactly one of"),
        (["hold", "--all"], "a hold needs a reason"),
        (["hold", "--all", "--reason", "two\nlines"], "cannot be a reason"),
        (["hold", "--all", "--reason", "x", "--until", "soon"], "write how long"),
        (["hold", "--all", "--reason", "x", "--until", "1999-01-01"], "before it begins"),
        (["hold", "--type", "duble", "--reason", "x"], "did you mean 'double'"),
        (["hold", "--queue", "defalt", "--reason", "x"], "did you mean 'default'"),
        (["hold", "--collection", "a b", "--reason", "x"], "cannot name a collection"),
        (["release"], "name the jobs to release"),
        (["release", "1", "--hold", "1"], "not several of these"),
        (["release", "--hold", "1", "--queue", "q"], "not several of these"),
    ],
)
def test_what_cannot_be_meant_is_refused(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell.refused(2, *words)
    assert shell.listed("holds") == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["hold", "7", "--reason", "x"], "there is no job 7"),
        (["hold", "--tree", "7", "--reason", "x"], "there is no job 7"),
        (["release", "7"], "there is no job 7"),
        (["release", "--hold", "7"], "there is no hold 7"),
        (["release", "--all"], "there is no hold on everything"),
        (["release", "--type", "double"], "'spinney release --state held' with a filter"),
    ],
)
def test_what_is_not_there_is_refused(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell.refused(1, *words)


def test_each_of_release_is_described_as_releasing(shell: Shell) -> None:
    assert "--each Release each held job that matches" in " ".join(shell.ok("release", "--help").split())


def test_odd_reasons_are_shown_without_harm(shell: Shell) -> None:
    submit(shell)

    assert "cannot be a reason" in shell.refused(2, "hold", "--all", "--reason", "\x1b[31mred")
    shell.ok("hold", "--submitter", "Zoë [bold]", "--reason", "[red]naïve[/red] 100 %")
    assert "[red]naïve[/red] 100 %" in shell.ok("holds")
    assert "Zoë [bold]" in shell.ok("holds")


def test_of_several_jobs_those_that_can_are_held_and_released(shell: Shell) -> None:
    submit(shell)
    submit(shell)

    held = shell.call("hold", "77", "1", "2", "2", "--reason", "look")
    released = shell.call("release", "77", "1", "2", "2", "--reason", "seen")

    gone = "spinney: there is no job 77; check its number in the list of jobs\n"
    assert (held.returncode, held.stdout, held.stderr) == (
        1,
        "hold 1 on job 1: it is held\nhold 2 on job 2: it is held\n",
        gone,
    )
    assert (released.returncode, released.stdout, released.stderr) == (
        1,
        "job 1 is released\njob 2 is released\n",
        gone,
    )


def test_of_several_holds_those_that_are_there_are_released(shell: Shell) -> None:
    for reason in ("a", "b"):
        shell.ok("hold", "--all", "--reason", reason)

    result = shell.call("release", "--hold", "1", "--hold", "77", "--hold", "2")

    assert (result.returncode, shell.listed("holds")) == (1, [])
    assert result.stderr.startswith("spinney: there is no hold 77")


def test_why_a_single_job_was_released_is_in_the_audit(shell: Shell) -> None:
    submit(shell)
    shell.ok("hold", "1", "--reason", "look")
    shell.ok("release", "1", "--reason", "it was the disk", "--by", "ann")

    last = shell.listed("audit", "list")[-1]

    assert (last["verb"], last["by"], last["reason"]) == ("release", "ann", "it was the disk")


def test_many_jobs_named_by_number_are_not_touched_unasked(shell: Shell) -> None:
    many = [str(n) for n in range(1, 1_002)]

    for words in (["hold", *many, "--reason", "x"], ["release", *many]):
        assert "--yes" in shell.refused(2, *words)


@pytest.mark.parametrize("on", [["--all"], ["1"], ["--each", "--type", "double"]])
@pytest.mark.parametrize(
    ("until", "says"), [("999999999999w", "after the year 9999"), ("1999-01-01", "before it begins")]
)
def test_an_end_that_cannot_be_is_refused_whatever_is_held(
    shell: Shell, on: list[str], until: str, says: str
) -> None:
    submit(shell)

    assert says in shell.refused(2, "hold", *on, "--reason", "x", "--until", until)
    assert shell.listed("holds") == []


def test_no_reason_or_name_moves_the_cursor_of_a_terminal(shell: Shell) -> None:
    submit(shell)
    evil = "ev\x1b[31ml"

    assert "cannot be a reason" in shell.refused(2, "hold", "--each", "--type", "double", "--reason", evil)
    assert "cannot be a user's name" in shell.refused(2, "hold", "--all", "--reason", "x", "--by", evil)
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.holds.lay(Scope.EVERYTHING, "", "x", Actor(by=evil, call="c"), now_us=time.time_ns() // 1000)
        while store.holds.sweep(now_us=time.time_ns() // 1000):
            pass
    assert "ev\\x1b[31ml" in shell.refused(1, "release", "1")


def test_none_in_force_is_said(shell: Shell) -> None:
    assert "there are no holds" in shell.ok("holds")
    assert shell.ok("holds", "--json") == ""


def test_released_holds_are_not_taken_for_holds_in_force(shell: Shell) -> None:
    shell.ok("hold", "--type", "double", "--reason", "disk swap")

    assert shell.ok("holds", "--released") == "all jobs of the holds that were released go on\n"


def test_a_hold_that_was_killed_midway_works_and_can_be_asked_for_again(shell: Shell) -> None:
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.submit([Submission(type="double", params=['{"n": 1}'] * 30_000, collection="c")], now_us=1)
    words = [sys.executable, "-m", "spinney", "hold", "--collection", "c", "--reason", "disk swap"]
    process = subprocess.Popen(words, cwd=shell.folder, stdout=subprocess.PIPE, env=shell.environment())
    until(lambda: shell.listed("holds"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL

    # Whatever it had come to, all of it is covered, and once more finishes the same hold
    assert [h["id"] for h in shown_job(shell, "30000")["holds"]] == [1]
    assert shell.ok("hold", "--collection", "c", "--reason", "disk swap") == (
        "hold 1 on collection c: 30,000 jobs are held\n"
    )


def test_under_a_hold_a_node_runs_nothing_and_after_it_everything(working: Shell) -> None:
    working.ok("hold", "--type", "double", "--reason", "disk swap")
    job = submit(working)
    other = submit(working, "tell", "-p", "text=hello")

    until(lambda: shown_job(working, other)["job"]["state"] == "completed")
    assert shown_job(working, job)["job"]["state"] == "held"

    working.ok("release", "--type", "double")
    assert "completed" in working.ok("wait", job)


@pytest.mark.parametrize(
    "on",
    [
        ["--queue", "default"],
        ["--type", "double"],
        ["--collection", "c"],
        ["--submitter", "eve"],
        ["--tree", "1"],
        ["--all"],
    ],
)
def test_a_dry_run_of_a_wide_hold_and_of_its_release_changes_nothing(shell: Shell, on: list[str]) -> None:
    submit(shell, "double", "-p", "n=1", "--collection", "c", "--submitter", "eve")
    words = ["hold", *on, "--reason", "disk swap"]

    output = shell.ok(*words, "--dry-run")
    as_json = json.loads(shell.ok(*words, "--dry-run", "--json"))

    assert (output.endswith("1 job would be held\n"), as_json) == (True, {"jobs": 1, "later": 0})
    assert (shell.listed("holds"), shown_job(shell, "1")["job"]["state"]) == ([], "pending")
    shell.ok(*words)
    for release in (["--hold", "1"], on):
        output = shell.ok("release", *release, "--dry-run")
        assert output == "after the release of hold 1, 1 job would continue\n"
    assert shown_job(shell, "1")["job"]["state"] == "held"
    shell.ok("release", *on)
    assert "there is no hold" in shell.refused(1, "release", *on, "--dry-run")
