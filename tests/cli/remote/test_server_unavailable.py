"""A server that goes away in the middle: who follows or waits goes on when it is back, or is told in a sentence."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.shell import furnish
from waiting import until

from .conftest import Both, end


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Both]:
    """A node at work, without a server."""
    both = Both(furnish(tmp_path))
    node = both.shell.start("node", "jobs:app", "--name", "n1", "--slots", "2")
    yield both
    end(node)


def started(both: Both, *words: str) -> "subprocess.Popen[bytes]":
    """Through the server, with what it prints in files of the command's name."""
    name = both.shell.folder / words[0]
    with name.with_suffix(".out").open("wb") as out, name.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "spinney", "--server", both.url, *words],
            cwd=both.shell.folder,
            env=both.shell.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )


def kill(server: "subprocess.Popen[str]") -> None:
    server.send_signal(signal.SIGKILL)
    server.communicate()


def test_a_server_that_wants_a_token_says_how_to_give_it_one(tmp_path: Path) -> None:
    both = Both(furnish(tmp_path))
    with both.listening() as url:
        without = both.shell.refused(1, "--server", url, "list")
        wrong = both.shell.refused(1, "--server", url, "list", SPINNEY_TOKEN="spn_wrong")

    assert "this server wants a token; name its file with --token-file" in without
    assert "this token is unknown, expired or revoked" in wrong


def test_following_and_waiting_go_on_when_the_server_is_back(working: Both) -> None:
    # given
    folder = working.shell.folder
    server = working.serve()
    job = working.done("submit", "until", "-p", f"flag={folder / 'go'}").strip()
    logs, wait = started(working, "logs", "-f", job), started(working, "wait", job)
    out, err, waited, err_of_wait = (
        folder / name for name in ("logs.out", "logs.err", "wait.out", "wait.err")
    )
    until(lambda: "started" in out.read_text() and "0 of 1" in waited.read_text())

    # when: it is killed, and what it follows goes on without it
    kill(server)
    until(lambda: "waiting for it" in err.read_text() and "waiting for it" in err_of_wait.read_text())
    (folder / "go").touch()
    with working.listening():
        codes = [follower.wait(timeout=60) for follower in (logs, wait)]

    # then
    assert codes[0] == 0, err.read_text()
    assert out.read_text().splitlines() == [
        f"== until, attempt {_fence(working, job)}, stdout ==",
        "started",
        "done",
    ]
    assert err.read_text().count("\n") == 1
    assert codes[1] == 0, err_of_wait.read_text()
    assert waited.read_text().endswith(f"job {job} until completed\n")


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    # given
    both = Both(furnish(tmp_path))

    # when
    output = both.refused(1, "list")

    # then
    assert "does not answer" in output
    assert both.url in output


def _fence(both: Both, job: str) -> int:
    document = json.loads(both.shell.ok("show", job, "--json"))
    return int(document["attempts"][0]["fence"])
