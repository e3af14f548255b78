"""A store with a node and a server on it, and the same commands on both sides of the server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.shell import Shell, furnish
from http_listener import Listening
from spinney.server.application import Parts, make
from spinney.server.http_server import listen_unix
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.settings import ServerSettings


@dataclass(frozen=True)
class Both:
    """``spinney`` on a store at hand, and through a server on it."""

    shell: Shell
    store: str | None = None
    """Its URL, where it is not in the folder."""

    @property
    def url(self) -> str:
        return f"unix:{self.shell.folder / 'server.sock'}"

    def here(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.shell.call(*words)

    def afar(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.shell.call("--server", self.url, *words)

    def done(self, *words: str) -> str:
        """What it printed through the server; the command must succeed."""
        result = self.afar(*words)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def refused(self, code: int, *words: str) -> str:
        """The sentence on stderr; the command must end with that code."""
        result = self.afar(*words)
        assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
        assert result.stderr.startswith("spinney: "), result.stderr
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    @contextmanager
    def listening(self) -> Iterator[str]:
        """A server in a thread of this process, which answers already: it needs none of the seconds that a process
        takes to load one. Yields its address beside that of its socket."""
        settings, store = ServerSettings(), self.store or f"sqlite:///{self.shell.folder / 'spinney.db'}"
        app = make(
            Parts(
                settings=settings,
                open_store=lambda: open_store(store),
                folders=self.shell.folder / "spinney.folders",
                run_dir=f"{self.shell.folder / 'spinney.db'}.run",
                identity=StoreAuthenticator,
            )
        )
        server = Listening(app, settings, beside=[listen_unix(self.shell.folder / "server.sock")])
        yield server.url
        server.end()

    def serve(self) -> "subprocess.Popen[str]":
        """A process that serves, and answers already."""
        path = self.shell.folder / "server.sock"
        with (self.shell.folder / "server.log").open("a") as log:  # a pipe that nobody reads would stop it
            process = subprocess.Popen(
                [sys.executable, "-m", "spinney", "serve", "--port", "0", "--socket", str(path)],
                cwd=self.shell.folder,
                env=self.shell.environment(),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        while str(path) not in (line := process.stdout.readline()):
            assert line, (self.shell.folder / "server.log").read_text()
        return process


def end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Provide both sides with a node at work, and with jobs of every sort that have come to rest."""
    sides = Both(furnish(tmp_path_factory.mktemp("afar")))
    node = sides.shell.start("node", "jobs:app", "--name", "n1", "--slots", "2")
    with sides.listening():
        furnished(sides.shell)
        yield sides
    end(node)


def furnished(shell: Shell) -> None:
    """Jobs 1 to 8: 1 completed, 2 printed, 3 failed, 4 the top of a tree (5, 6, 7), 8 held; beside them a schedule, a
    queue with a limit, a capacity, a rule of retention."""
    for words in (
        ("double", "-p", "n=4", "--collection", "alpha"),
        ("tell", "-p", "text=hi"),
        ("fragile", "-p", f"flag={shell.folder / 'none'}"),
        ("parent", "-p", "n=3"),
    ):
        shell.call("submit", *words, "--wait")
    shell.ok("hold", "--type", "until", "--reason", "not yet")
    shell.ok("submit", "until", "-p", f"flag={shell.folder / 'go'}", "--queue", "default")
    shell.ok("schedule", "add", "nightly", "double", "--cron", "0 3 * * *", "-p", "n=1")
    shell.ok("queue", "default", "--limit", "5", "--reason", "slowly")
    shell.ok("lock", "download:*", "--capacity", "3")
    shell.ok("keep", "double", "completed", "30d")
    shell.ok("webhook", "add", "archive", "https://example.org/hook", "--event", "failed")
    shell.ok("user", "add", "ann", "--role", "operator", "--no-password")


def flagged(folder: Path) -> Path:
    """A flag that is up."""
    flag = folder / "go"
    flag.touch()
    return flag
