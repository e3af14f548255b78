"""Which place counts, and where the token comes from."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spinney.cli import completer, shells

from .shell import Shell


@dataclass
class Answering:
    """An HTTP server that has no node, and keeps what it was asked."""

    url: str = ""
    tokens: list[str | None] = field(default_factory=list)


@pytest.fixture
def answering() -> Iterator[Answering]:
    endpoint = Answering()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            endpoint.tokens.append(self.headers["Authorization"])
            body = json.dumps({"items": [], "next": None}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    yield endpoint
    server.shutdown()
    thread.join()
    server.server_close()


def secret(folder: Path, *, mode: int = 0o600) -> str:
    file = folder / "token"
    file.write_text("spn_one\n")
    file.chmod(mode)
    return str(file)


def test_the_token_comes_from_a_file_or_the_environment(bare: Shell, answering: Answering) -> None:
    # given
    file = secret(bare.folder)

    # when
    bare.ok("--server", answering.url, "--token-file", file, "nodes", SPINNEY_TOKEN="spn_two")
    bare.ok("nodes", SPINNEY_SERVER=answering.url, SPINNEY_TOKEN_FILE=file)
    bare.ok("nodes", SPINNEY_SERVER=answering.url, SPINNEY_TOKEN="spn_two", SPINNEY_TOKEN_FILE=file)
    bare.ok("--server", answering.url, "nodes")

    # then
    assert answering.tokens == ["Bearer spn_one", "Bearer spn_one", "Bearer spn_two", None]


def test_a_token_that_others_may_read_is_not_used(bare: Shell, answering: Answering) -> None:
    # when
    output = bare.refused(
        2, "--server", answering.url, "--token-file", secret(bare.folder, mode=0o644), "nodes"
    )

    # then
    assert "chmod 600" in output
    assert answering.tokens == []


@pytest.mark.parametrize(("content", "words"), [(None, "cannot read"), ("", "no token"), ("a b", "no token")])
def test_a_file_without_a_token_is_told(
    bare: Shell, answering: Answering, content: str | None, words: str
) -> None:
    # given
    file = bare.folder / "token"
    if content is not None:
        file.write_text(content)
        file.chmod(0o600)

    # when
    output = bare.refused(2, "--server", answering.url, "--token-file", str(file), "nodes")

    # then
    assert words in output
    assert answering.tokens == []


def test_an_option_counts_before_a_variable(shell: Shell, answering: Answering) -> None:
    # when
    here = shell.ok("nodes", "--store", "sqlite:///spinney.db", SPINNEY_SERVER=answering.url)
    there = shell.ok("--server", answering.url, "nodes", SPINNEY_STORE="sqlite:///spinney.db")
    output = shell.refused(2, "--server", answering.url, "nodes", "--store", "sqlite:///spinney.db")

    # then
    assert here == there == "no node is running; start one with 'spinney node'\n"
    assert answering.tokens == [None]
    assert "exclude each other" in output


@pytest.mark.parametrize("url", ["spinney.example.org", "ftp://spinney.example.org", "sqlite:///spinney.db"])
def test_what_is_no_server_is_refused(bare: Shell, url: str) -> None:
    assert "https://" in bare.refused(2, "--server", url, "nodes")


def test_a_token_file_needs_a_server(bare: Shell) -> None:
    assert "--server" in bare.refused(2, "--token-file", "token", "nodes")


def test_a_shell_completes_the_command_behind_the_server(shell: Shell) -> None:
    # given
    def suggestions(*before: str, begun: str = "") -> list[shells.Suggestion]:
        return copy_context().run(completer.suggestions, before, begun)

    # when
    with contextlib.chdir(shell.folder):
        here = suggestions("list", "--type")
        commands = suggestions("--server", "unix:/there", begun="sched")
        value = suggestions("--server", begun="sched")
        option = suggestions("--server", "unix:/there", "list", begun="--new")
        named = suggestions("--server", "unix:/there", "list", "--type")

    # then
    assert here
    assert [offer.value for offer in commands] == ["schedule"]
    assert value == [shells.FILES]
    assert named == []
    assert "--newer-than" in [offer.value for offer in option]


def test_without_a_server_no_client_is_loaded(shell: Shell) -> None:
    # given
    code = (
        "import sys; from spinney.cli import main; main.run(['nodes']); "
        "print({'httpx', 'spinney.client', 'spinney.terminal.remote'} & set(sys.modules))"
    )

    # when
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shell.folder,
        env=shell.environment(),
        text=True,
        capture_output=True,
        check=True,
    )

    # then
    assert result.stdout.endswith("set()\n")
