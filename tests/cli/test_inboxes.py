"""``spinney inbox``: made, looked at, paused, scanned, uploaded to, removed."""

import json
from typing import Any

from .shell import Shell


def show(shell: Shell, *words: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(shell.ok("inbox", "show", "uploads", "--json", *words))
    return shown


def test_an_inbox_is_made_with_everything_that_can_be_said(shell: Shell) -> None:
    output = shell.ok(
        *("inbox", "add", "uploads", "/srv/incoming/", "double", "-p", "n=1", "--rest", "1m"),
        *("--duplicates", "accept", "--host", "elm", "--queue", "slow", "--submitter", "bob", "--by", "ann"),
        *("--reason", "a new source"),
    )

    assert output == "inbox uploads: no node has looked there yet\n"
    assert show(shell) == {
        "inbox": {
            "name": "uploads",
            "folder": "/srv/incoming",
            "type": "double",
            "params": {"n": 1},
            "options": {"queue": "slow", "submitter": "bob"},
            "host": "elm",
            "rest_s": 60.0,
            "duplicates": "accept",
            "paused": False,
            "scan_us": None,
            "by": "ann",
            "node_id": None,
            "node": None,
            "problem": None,
        },
        "arrivals": [],
    }
    assert "a new source" in shell.ok("audit")
    text = shell.ok("inbox", "show", "uploads", "--rejected")
    assert "/srv/incoming" in text
    assert "n = 1" in text


def test_an_inbox_is_paused_resumed_scanned_and_removed(shell: Shell) -> None:
    added = json.loads(shell.ok("inbox", "add", "uploads", "/srv/incoming", "double", "-p", "n=1", "--json"))

    assert added == show(shell)["inbox"]
    assert shell.ok("inbox", "pause", "uploads") == "inbox uploads: paused\n"
    assert "paused" in shell.ok("inbox", "list")
    assert "paused" in shell.refused(1, "inbox", "scan", "uploads")
    shell.ok("inbox", "resume", "uploads")
    shell.ok("inbox", "scan", "uploads")
    assert show(shell)["inbox"]["scan_us"] > 0
    assert json.loads(shell.ok("inbox", "remove", "uploads", "--json")) == {"deleted": "uploads"}
    shell.ok("inbox", "add", "uploads", "/srv/incoming", "double", "-p", "n=1")
    assert shell.ok("inbox", "remove", "uploads") == "inbox uploads is removed\n"
    assert shell.listed("inbox", "list") == []


def test_what_can_be_no_inbox_is_refused_with_what_to_do(shell: Shell) -> None:
    add = ("inbox", "add", "uploads")
    assert "whole path" in shell.refused(2, *add, "incoming", "double", "-p", "n=1")
    for rest in ("-1", "25h"):
        assert "--rest must be between 0 and 86400 seconds" in shell.refused(
            2, *add, "/srv", "double", "--rest", rest
        )
    assert "refuse, accept" in shell.refused(2, *add, "/srv/in", "double", "-p", "n=1", "--duplicates", "no")
    assert "'n'" in shell.refused(2, *add, "/srv/in", "double")
    shell.ok(*add, "/srv/in", "double", "-p", "n=1")
    assert "--replace" in shell.refused(1, *add, "/srv/in", "double", "-p", "n=2")
    assert "did you mean 'uploads'?" in shell.refused(1, "inbox", "show", "upload")


def test_a_file_is_uploaded_on_a_host_that_has_the_store(shell: Shell) -> None:
    shell.ok("inbox", "add", "uploads", "/srv/in", "double", "-p", "n=1")
    (shell.folder / "a.bin").write_bytes(b"a" * 1000)
    (shell.folder / "empty").touch()

    job = shell.ok("inbox", "upload", "uploads", "a.bin", "--as", "card.zip", "--by", "ann").strip()
    document = json.loads(shell.ok("inbox", "upload", "uploads", "empty", "--json"))

    assert shell.ok("files", job, "card.zip") == "a" * 1000
    assert json.loads(shell.ok("show", job, "--json"))["job"]["submitter"] == "ann"
    assert document["job_id"] == int(job) + 1
    assert [a["job_id"] for a in show(shell)["arrivals"]] == [int(job) + 1, int(job)]


def test_what_cannot_be_uploaded_is_refused_with_what_to_do(shell: Shell) -> None:
    shell.ok("inbox", "add", "uploads", "/srv/in", "double", "-p", "n=1")
    (shell.folder / "a.bin").write_bytes(b"a")
    upload = ("inbox", "upload", "uploads")
    job = shell.ok(*upload, "a.bin").strip()
    assert f"became job {job}" in shell.refused(1, *upload, "a.bin", "--as", "b.bin")
    assert "cannot be read" in shell.refused(2, *upload, "none")
    assert "cannot be read" in shell.refused(2, *upload, ".")
    assert "no name" in shell.refused(2, *upload, "a.bin", "--as", "a/b")
    assert "no inbox" in shell.refused(1, "inbox", "upload", "none", "a.bin")
