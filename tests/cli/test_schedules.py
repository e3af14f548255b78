"""``spinney schedule``: made, looked at, paused, dropped, run."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.model.jobs import Filter
from spinney.terminal.connection import open_local_store

from .shell import Shell


def schedule_document(shell: Shell, name: str = "nightly") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shell.ok("schedule", "show", name, "--json"))
    return document


def add(shell: Shell, *words: str, name: str = "nightly") -> str:
    return shell.ok("schedule", "add", name, "double", "-p", "n=1", *words)


def test_a_schedule_is_made_with_everything_that_can_be_said(shell: Shell) -> None:
    output = add(
        shell,
        "--cron",
        "30 2 * * mon",
        "--zone",
        "Europe/Berlin",
        "-p",
        "name=7",
        "--overlap",
        "queue",
        "--catch-up",
        "all",
        "--queue",
        "slow",
        "--priority",
        "3",
        "--collection",
        "pets",
        "--submitter",
        "bob",
        "--share",
        "mine",
        "--by",
        "ann",
    )

    assert output.startswith("schedule nightly comes next at ")
    assert "02:30:00+0" in output
    schedule = schedule_document(shell)["schedule"]
    assert {k: v for k, v in schedule.items() if k not in ("next_us", "anchor_us")} == {
        "name": "nightly",
        "type": "double",
        "cron": "30 2 * * mon",
        "every_s": None,
        "zone": "Europe/Berlin",
        "params": {"n": 1, "name": "7"},
        "overlap": "queue",
        "catch_up": "all",
        "paused": False,
        "by": "ann",
        "options": {
            "queue": "slow",
            "priority": 3,
            "collection": "pets",
            "submitter": "bob",
            "share": "mine",
        },
        "last_job_id": None,
        "queued": 0,
        "declared": False,
    }


def test_parameters_come_from_a_file_too(shell: Shell) -> None:
    (shell.folder / "params.json").write_text('{"n": 5, "name": "x"}')
    shell.ok(
        "schedule",
        "add",
        "nightly",
        "double",
        "--every",
        "1h30m",
        "--params-file",
        "params.json",
        "-p",
        "n=6",
    )
    assert schedule_document(shell)["schedule"]["params"] == {"n": 6, "name": "x"}
    assert schedule_document(shell)["schedule"]["every_s"] == 5400


def test_schedules_are_listed(shell: Shell) -> None:
    assert shell.listed("schedule", "list") == []
    add(shell, "--every", "15m", "--paused", name="b")
    add(shell, "--cron", "@daily", "--zone", "Asia/Kolkata", name="a")

    assert [s["name"] for s in shell.listed("schedule", "list")] == ["a", "b"]
    headings, first, second = shell.ok("schedule", "list").splitlines()
    assert headings.split() == ["NAME", "TYPE", "WHEN", "NEXT", "STATE", "LAST", "JOB", "BY"]
    assert first.split()[:4] == ["a", "double", "@daily", "Asia/Kolkata"]
    assert "00:00:00+05:30" in first
    assert "active" in first
    # No time, which may pass while it is paused.
    assert second.split()[:6] == ["b", "double", "every", "15", "minutes", "paused"]


def test_one_is_shown_with_its_next_times_by_its_own_clock_and_in_utc(shell: Shell) -> None:
    add(shell, "--cron", "30 6 * * *", "--zone", "Asia/Kolkata", "--queue", "slow")

    shown = shell.ok("schedule", "show", "nightly")

    coming = [line for line in shown.splitlines() if "06:30:00+05:30" in line]
    assert len(coming) == 5
    assert all(line.endswith("01:00:00 UTC") for line in coming)
    assert "parameter: n = 1" in shown
    assert "queue: slow" in shown
    assert len(schedule_document(shell)["coming_us"]) == 5


def test_times_of_a_schedule_in_utc_are_shown_once(shell: Shell) -> None:
    add(shell, "--cron", "30 6 * * *")

    coming = [line for line in shell.ok("schedule", "show", "nightly").splitlines() if "06:30:00" in line]

    assert len(coming) == 5
    assert all(line.count("06:30:00") == 1 for line in coming)


def test_what_became_of_its_times_is_shown(shell: Shell) -> None:
    add(shell, "--every", "1h")
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        for hour in (1, 2):
            first_us = schedule_document(shell)["schedule"]["next_us"]
            assert store.schedules.tick(now_us=first_us + 1), hour

    runs = schedule_document(shell)["runs"]
    assert [r["outcome"] for r in runs] == ["skipped", "submitted"]
    shown = shell.ok("schedule", "show", "nightly", "--limit", "1")
    assert "the previous job 1 was still open" in shown
    assert "submitted" not in shown
    assert "last job: 1" in shown
    assert "1" in shell.ok("schedule", "list").splitlines()[1]


def test_pause_resume_and_drop(shell: Shell) -> None:
    add(shell, "--every", "1h", "--reason", "trial")
    paused = shell.ok("schedule", "pause", "nightly", "--reason", "move")
    assert "is paused; 'spinney schedule resume nightly'" in paused
    document = schedule_document(shell)
    assert document["schedule"]["paused"]
    next_time = datetime.fromtimestamp(document["coming_us"][0] / 1e6, UTC).isoformat(" ")
    assert f"comes next, when resumed\n  {next_time}" in shell.ok("schedule", "show", "nightly")
    assert "comes next at" in shell.ok("schedule", "resume", "nightly")
    assert not schedule_document(shell)["schedule"]["paused"]
    assert shell.ok("schedule", "drop", "nightly", "--by", "ann") == "schedule nightly is dropped\n"
    assert shell.listed("schedule", "list") == []
    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        entries = [entry for entry, _ in store.audit.entries()]
    assert [(e.verb, e.reason) for e in entries] == [
        ("schedule add", "trial"),
        ("schedule pause", "move"),
        ("schedule resume", None),
        ("schedule drop", None),
    ]
    assert entries[-1].by == "ann"


def test_one_job_is_made_now(shell: Shell) -> None:
    add(shell, "--every", "1h")

    job = shell.ok("schedule", "run", "nightly", "--by", "ann").strip()

    shown = json.loads(shell.ok("show", job, "--json"))
    assert shown["job"]["submitter"] == "ann"
    assert shown["data"]["schedule"]["manual"] is True
    assert f"job {job} of schedule 'nightly' is still open" in shell.refused(1, "schedule", "run", "nightly")


def test_programs_are_told_what_became_of_it(shell: Shell) -> None:
    add(shell, "--every", "1h")

    assert json.loads(shell.ok("schedule", "pause", "nightly", "--json"))["paused"] is True
    assert json.loads(shell.ok("schedule", "resume", "nightly", "--json"))["paused"] is False
    assert json.loads(shell.ok("schedule", "run", "nightly", "--json")) == {"schedule": "nightly", "job": 1}
    assert json.loads(shell.ok("schedule", "drop", "nightly", "--json")) == {
        "deleted": "nightly",
        "declared": False,
    }


def test_one_that_is_there_is_replaced_only_when_asked(shell: Shell) -> None:
    add(shell, "--every", "1h")
    assert "(--replace)" in shell.refused(
        1, "schedule", "add", "nightly", "double", "-p", "n=2", "--every", "2h"
    )
    add(shell, "--every", "2h", "--replace")
    assert schedule_document(shell)["schedule"]["every_s"] == 7200


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "drop", "run"])
def test_a_mistyped_name_is_told_with_the_nearest(shell: Shell, verb: str) -> None:
    add(shell, "--every", "1h")
    assert "no schedule 'nighly' (did you mean 'nightly'?)" in shell.refused(1, "schedule", verb, "nighly")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "double", "-p", "n=1"], "either a cron expression or an interval"),
        (
            ["x", "double", "-p", "n=1", "--cron", "0 6 * * *", "--every", "1h"],
            "a cron expression or an interval",
        ),
        (["x", "dubble", "--every", "1h"], "did you mean 'double'"),
        (["x", "double", "--every", "1h"], "parameter 'n' is missing"),
        (["x", "double", "-p", "n=two", "--every", "1h"], "'n' must be a whole number"),
        (["x", "double", "--every", "1h"], "Nothing was scheduled; correct this and try again\n"),
        (["x", "double", "-p", "n=1", "--every", "soon"], "'soon' is no length of time"),
        (["x", "double", "-p", "n=1", "--every", "0.1s"], "between 1 second and"),
        (
            ["x", "double", "-p", "n=1", "--every", "1h", "--zone", "Europe/Berlin"],
            "an interval has no time zone",
        ),
        (["x", "double", "-p", "n=1", "--cron", "0 25 * * *"], "Bad hour"),
        (
            ["x", "double", "-p", "n=1", "--cron", "0 6 * * *", "--zone", "Europe/Berln"],
            "did you mean 'Europe/Berlin'",
        ),
        (["x", "double", "-p", "n=1", "--every", "1h", "--overlap", "skp"], "did you mean 'skip'"),
        (["x", "double", "-p", "n=1", "--every", "1h", "--catch-up", "lst"], "did you mean 'last'"),
        (["../x", "double", "-p", "n=1", "--every", "1h"], "cannot name a schedule"),
        (["x", "double", "-p", "n=1", "--every", "1h", "--queue", "a b"], "cannot name a queue"),
        (["x", "double", "-p", "n=1", "--every", "1h", "--priority", "100"], "0 (first) to 99 (last)"),
        (
            ["x", "double", "-p", "n=1", "--every", "1h", "--params-file", "gone.json"],
            "cannot read gone.json",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_stored(
    shell: Shell, words: list[str], message: str
) -> None:
    assert message in shell.refused(2, "schedule", "add", *words)
    assert shell.listed("schedule", "list") == []


def test_without_a_verb_the_verbs_are_told(shell: Shell) -> None:
    bare = shell.call("schedule")
    assert bare.returncode == 2
    lines = [line.split() for line in bare.stderr.splitlines()]
    for verb in ("add", "list", "show", "pause", "resume", "drop", "run"):
        assert [line for line in lines if line[:1] == [verb]], f"{verb} has no line of its own"


def test_what_a_message_holds_cannot_move_the_cursor(shell: Shell) -> None:
    add(shell, "--every", "1h", "-p", "name=\x1b[2J")
    assert "\x1b" not in shell.ok("schedule", "show", "nightly")


def test_a_schedule_declared_in_code_says_that_it_comes_back(shell: Shell, tmp_path: Path) -> None:
    from spinney.model.rights.actor import Actor
    from spinney.model.settings.schedules import DECLARER, Schedule

    with open_local_store(f"sqlite:///{shell.folder}/spinney.db") as store:
        store.schedules.declare(
            [Schedule(name="nightly", type="double", every_s=60, params={"n": 1})],
            Actor(by=DECLARER, call="c"),
            now_us=1,
        )
        assert store.counts(Filter()) is not None
    assert "declared in code" in shell.ok("schedule", "list")
    assert "the next node that starts creates it again" in shell.ok("schedule", "drop", "nightly")
