"""The frames of a failure, in the shell and without a terminal."""

import json
from pathlib import Path, PosixPath

import pytest

from .shell import Shell
from .terminal import Terminal


@pytest.fixture(scope="module")
def failed(working: Shell) -> str:
    """A job that has failed, whose frames are kept."""
    job = working.ok("submit", "fragile", "-p", f"flag={working.folder}/flag").strip()
    assert working.call("wait", job).returncode == 1
    return job


def test_the_shell_walks_through_the_frames(working: Shell, failed: str, tmp_path: Path) -> None:
    arguments = ["-m", "spinney", "postmortem", failed]
    with Terminal(working.folder, arguments, XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.wait_for("the flag is not up")
        terminal.type("p fl\t\n")
        terminal.wait_for(f"{working.folder}/flag")
        terminal.type("list\n")
        terminal.wait_for("if not flag.exists():")
        terminal.type("up\n/FLAG\n")
        terminal.wait_for(f"0 fragile: flag: {PosixPath.__module__}.PosixPath")
        terminal.type("nonsense\n")
        terminal.wait_for("neither a command nor a variable")
        terminal.type(f"up {'9' * 5000}\n")
        terminal.wait_for("is no number")
        terminal.type("q\n")
        assert terminal.end() == 0
    history = (tmp_path / "spinney" / "postmortem_history").read_text()
    assert history.splitlines()[0] == "p flag"


def test_without_a_terminal_it_lists_the_frames(working: Shell, failed: str) -> None:
    lines = working.ok("postmortem", failed).splitlines()
    document = json.loads(working.ok("postmortem", failed, "--json"))

    assert lines[0] == "0 ValueError: the flag is not up"
    assert 'in fragile: raise ValueError("the flag is not up")' in lines[-1]
    assert document["exceptions"][0]["frames"][-1]["arguments"] == ["flag"]


def test_where_nothing_is_kept_it_says_why(working: Shell, failed: str) -> None:
    fence = json.loads(working.ok("show", failed, "--json"))["attempts"][0]["fence"]
    done = working.ok("submit", "double", "-p", "n=1", "--wait").split()[0]
    program = working.call("submit", "missing", "--wait").stdout.split()[0]

    assert "no attempt of job" in working.refused(1, "postmortem", done)
    assert "no frames are kept" in working.refused(1, "postmortem", program)
    assert "no failed attempt 7777" in working.refused(2, "postmortem", failed, "--attempt", "7777")
    assert "the flag is not up" in working.ok("postmortem", failed, "--attempt", str(fence))


def test_a_changed_document_is_refused(working: Shell, failed: str) -> None:
    (path,) = (working.folder / "spinney.folders").rglob(f"{int(failed):012d}/.spinney/*.frames")
    content = path.read_bytes()
    path.write_bytes(content[:100])
    assert "cannot be read" in working.refused(1, "postmortem", failed)
    path.write_bytes(content)
