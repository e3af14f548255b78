"""``serve`` and ``up``, as a newcomer meets them: real processes, real sockets."""

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from new_store import new_store_on_server
from reports.hook_server import receiver
from spinney.folders.folders import TOKEN
from spinney.model.rights.accounts import digest
from spinney.model.rights.actor import Actor
from spinney.model.values.paths import run_dir
from spinney.store.sql import open_store
from waiting import until

from .shell import Shell


class Running:
    """A running server, and the lines that it printed when it started."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        assert process.stdout is not None
        while not (self.lines and self.lines[-1].startswith(("create the first admin", "ready"))):
            line = process.stdout.readline()
            assert line, (self.lines, process.communicate()[1])
            self.lines.append(line.strip())

    @property
    def url(self) -> str:
        return next(t for t in self.lines if "http://" in t).split()[2]

    @property
    def socket(self) -> Path:
        return Path(next(t for t in self.lines if t.endswith(".sock")).split(maxsplit=2)[2])

    @property
    def link(self) -> str:
        return self.lines[-1].split()[-1]


@contextmanager
def running(shell: Shell, *words: str) -> Iterator[Running]:
    process = shell.start(*words)
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def remaining(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """The rest of both outputs of a process that ends. (``communicate`` would lose what ``readline`` has buffered.)"""
    assert process.stdout is not None
    assert process.stderr is not None
    rest = process.stdout.read(), process.stderr.read()
    process.communicate(timeout=60)
    return rest


def over(socket: Path) -> httpx.Client:
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://localhost", timeout=30
    )


def test_given_nothing_when_up_then_a_job_runs_and_a_link_makes_the_first_admin(bare: Shell) -> None:
    with running(bare, "up", "--port", "0") as server:
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700 & ~0o077
        with over(server.socket) as client:
            assert client.get("/api/v1/me").json()["rights"]["role"] == "admin"
            until(lambda: "greet" in [t["name"] for t in client.get("/api/v1/types").json()["items"]])
            response = client.post("/api/v1/jobs", json={"type": "greet", "params": {"name": "Ada"}})
            assert response.status_code == 201, response.text
            job = response.json()["id"]
            until(lambda: client.get(f"/api/v1/jobs/{job}").json()["state"] == "completed")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/welcome\?link=[\w-]{30,}", server.link)
        answer = httpx.get(f"{server.url}/", headers={"Accept": "text/html"}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/sign-in")
    assert server.process.returncode == 0
    assert not server.socket.exists()


def test_given_an_expired_link_and_a_node_that_cannot_run_when_up_then_no_link_is_printed_and_the_server_ends(
    shell: Shell,
) -> None:
    hour_us = 3_600_000_000
    store = open_store(f"sqlite:///{shell.folder / 'spinney.db'}")
    store.sign_in.invite(
        None,
        digest("x"),
        Actor(by="x", call="c"),
        lasts_us=hour_us,
        now_us=time.time_ns() // 1000 - 2 * hour_us,
    )
    store.close()

    process = shell.start("up", "no_such_module:app", "--port", "0", "--socket", "")

    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the node ended" in err
    assert "Traceback" not in err
    assert "/welcome" not in out + err
    assert "spinney user add NAME --role admin" in err


def test_given_a_node_that_the_kernel_kills_when_up_then_the_server_ends_and_says_so(shell: Shell) -> None:
    process = shell.start("up", "jobs:app", "--name", "n1", "--port", "0")
    until(lambda: bool(shell.listed("nodes")), "the node has joined")

    os.kill(shell.listed("nodes")[0]["pid"], signal.SIGKILL)

    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == (
        "spinney: the node was killed by SIGKILL (if memory ran out, 'dmesg' says so), and the server stopped with it; "
        "start both again"
    )


def test_given_no_user_only_this_machine_is_heard_and_after_a_kill_one_with_a_user_takes_over_without_a_link(
    shell: Shell,
) -> None:
    # given: no user, so that only this machine is heard
    process = shell.start("serve", "--host", "0.0.0.0", "--port", "0")
    first = Running(process)
    assert first.url.startswith("http://127.0.0.1:")
    assert "/welcome?link=" in first.link

    # when, then: another at the same port is refused in a sentence
    sentence = shell.refused(1, "serve", "--port", first.url.rpartition(":")[2], "--socket", "")
    assert "choose another with --port" in sentence.splitlines()[-1]

    # given: it is killed, and there is a user
    process.kill()
    process.communicate(timeout=30)
    assert first.socket.exists()
    shell.ok("user", "add", "ada", "--role", "admin", "--no-password")

    # when
    process = shell.start("up", "jobs:app", "--name", "n1", "--port", "0")
    try:
        assert process.stdout is not None
        lines_printed = [process.stdout.readline() for _ in range(2)]
        assert lines_printed[0].startswith("spinney serves http://127.0.0.1:")
        assert lines_printed[1].strip().endswith(str(first.socket))
        with over(first.socket) as client:
            assert client.get("/health").status_code == 200

        # given: a job that runs; when it gets two TERMs, then the node stops at once
        job = shell.ok("submit", "until", "-p", f"flag={shell.folder / 'never'}").strip()
        until(lambda: [row["state"] for row in shell.listed("list")] == ["running"])
        process.terminate()
        until(lambda: [node["state"] for node in shell.listed("nodes")] == ["draining"])
        process.terminate()
        process.wait(30)  # --drain is 60 s
    finally:
        if process.poll() is None:
            process.terminate()
        out, _ = remaining(process)

    # then
    assert "first admin" not in "".join(lines_printed) + out
    assert [(row["id"], row["state"]) for row in shell.listed("list")] == [(int(job), "pending")]


def test_a_server_whose_store_is_replaced_by_a_backup_ends_with_the_reason(shell: Shell) -> None:
    """It would answer every request with an error for ever; a service manager starts it on the new file."""
    file, backup = shell.folder / "spinney.db", shell.folder / "spinney.bak"
    with closing(sqlite3.connect(file)) as store, closing(sqlite3.connect(backup)) as copy:
        store.backup(copy)
    process = shell.start("serve", "--port", "0")
    assert httpx.get(f"{Running(process).url}/ready").status_code == 200  # it has the store open

    backup.replace(file)

    _, err = remaining(process)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith(f"spinney: the store's file {file} was replaced or removed")
    assert "Traceback" not in err


HURRIED = """
import sys
from spinney.cli import main
from spinney.server import http_server
http_server.DRAIN_S, http_server.THREADS_S = 1, 0.5
sys.exit(main.run(["serve", "--port", "0"]))
"""


def test_a_server_is_stopped_although_its_threads_wait_for_a_disk(shell: Shell) -> None:
    job = shell.ok("submit", "double", "-p", "n=1").strip()
    token = shell.folder / "spinney.folders" / TOKEN
    token.unlink()
    os.mkfifo(token)  # who reads it waits, as for a share whose file server is away
    process = subprocess.Popen(
        [sys.executable, "-c", HURRIED],
        cwd=shell.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell.environment(),
    )
    server = Running(process)
    with over(server.socket) as client, pytest.raises(httpx.TimeoutException):
        client.put(f"/api/v1/jobs/{job}/files/new", content=b"x", timeout=0.5)

    process.send_signal(signal.SIGTERM)

    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the store rolls back what they have not finished" in err


@pytest.mark.parametrize("words", [("--host", "256.1.1.1"), ("--socket", "/proc/nowhere/x.sock")])
def test_what_cannot_be_listened_on_is_refused_in_a_sentence(shell: Shell, words: tuple[str, ...]) -> None:
    shell.ok(
        "user", "add", "ada", "--role", "admin", "--no-password"
    )  # else only loopback would be listened on
    result = shell.call("serve", "--port", "0", *words)
    assert result.returncode in (1, 2)
    assert result.stderr.count("\n") == 1, result.stderr


def test_a_directory_that_others_may_write_to_gets_no_socket(
    bare: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without XDG_RUNTIME_DIR it is in /tmp, where anybody can make it before the first server."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    url = new_store_on_server()
    (bare.folder / "spinney.toml").write_text(
        f'[spinney]\nstore = "{url}"\nfolders = "{tmp_path / "folders"}"\n'
    )
    directory = run_dir(url)
    assert directory is not None
    directory.mkdir()
    directory.chmod(0o777)

    assert "remove it" in bare.refused(2, "serve", "--port", "0")
    assert list(directory.iterdir()) == []


def test_a_wrong_setting_is_refused_by_its_key(shell: Shell) -> None:
    (shell.folder / "spinney.toml").write_text("[server]\nprot = 80\n")
    assert "prot" in shell.refused(2, "serve")


def test_no_store_is_told_before_anything_listens(bare: Shell) -> None:
    assert "spinney init" in bare.refused(1, "serve", "--port", "0")


def test_the_log_has_no_query_of_a_webhooks_url(shell: Shell) -> None:
    (shell.folder / "spinney.toml").write_text("[server]\nwebhook_private = true\n")
    with receiver() as hook:
        shell.ok("webhook", "add", "archive", f"{hook.url}?token=hush")
        shell.ok("webhook", "test", "archive")
        with running(shell, "serve", "--port", "0") as server:
            until(lambda: '"outcome":"delivered"' in shell.ok("webhook", "deliveries", "archive", "--json"))
            server.process.send_signal(signal.SIGTERM)
            _, log = remaining(server.process)

    assert "Started server process" in log
    assert "hush" not in log
