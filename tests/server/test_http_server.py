"""A real server: the Unix socket and who is at its other end, and connections that are slow, large or no HTTP."""

import http.client
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from http_listener import Listening
from spinney.model.errors import StoreUnusable
from spinney.server.application import Parts, make
from spinney.server.connections import ADDRESS_MAX_BYTES, HEAD_MAX_BYTES, HEADERS_MAX, Connection
from spinney.server.http_server import listen_unix
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.request_context import Authenticated
from spinney.web.settings import ServerSettings
from waiting import until

HEAD_S = REST_S = 0.3
MOST = 20
"""Connections at once."""
_LONG = b"GET / HTTP/1.1\r\nHost: localhost\r\nA: "


class Served:
    """A server in a thread."""

    def __init__(self, root: Path) -> None:
        self.path = root / "server.sock"
        url = f"sqlite:///{root / 'spinney.db'}"
        store = open_store(url)
        store.create()
        store.close()
        settings = ServerSettings(body_patience_s=2, connections_max=MOST)
        app = make(
            Parts(
                settings=settings,
                open_store=lambda: open_store(url),
                folders=root / "folders",
                run_dir=None,
                identity=StoreAuthenticator,
            )
        )

        async def probe(context: Authenticated) -> dict[str, str]:
            return {"name": context.principal.name}

        app.add_api_route("/probe", probe)
        app.add_api_route("/probe", probe, methods=["POST"])
        app.add_api_route("/large", lambda: PlainTextResponse(b"x" * 1_000_000))
        self._listening = Listening(
            app,
            settings,
            beside=[listen_unix(self.path)],
            connection=type("Connection", (Connection,), {"head_s": HEAD_S, "rest_s": REST_S}),
        )
        self.port = self._listening.port
        self.end = self._listening.end

    def idle(self) -> bool:
        """Whether nobody is connected, and nothing is being answered."""
        state = self._listening.server.server_state
        return not state.connections and not state.tasks

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def raw(self, *pieces: bytes) -> bytes:
        """All that is answered to these bytes until the server closes the connection."""
        with self.connect() as sock:
            for piece in pieces:
                sock.sendall(piece)
            return _rest(sock)


def _rest(sock: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionResetError):
        while piece := sock.recv(65_536):
            received += piece
    return received


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.end()


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("anything.example", timeout=10)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(self._path)


# --- the Unix socket --------------------------------------------------------------------------


def test_given_the_unix_socket_then_the_kernel_says_who_asks(served: Served) -> None:
    connection = _Unix(served.path)
    connection.request("GET", "/probe")
    answer = connection.getresponse()

    assert answer.status == 200
    assert answer.read().decode() == f'{{"name":"socket:{pwd.getpwuid(os.geteuid()).pw_name}"}}'
    connection.close()


def test_given_the_unix_socket_then_it_is_its_owners_alone(served: Served) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) & 0o077 == 0


def test_given_tcp_then_nobody_is_known_by_a_header_that_says_so(served: Served) -> None:
    answer = served.raw(b"GET /probe HTTP/1.0\r\nHost: localhost\r\nX-Forwarded-For: uid:0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 401 ")


def test_given_a_server_that_listens_there_then_another_is_refused(served: Served) -> None:
    with pytest.raises(StoreUnusable, match="another server listens"):
        listen_unix(served.path)


def test_given_a_socket_that_a_dead_server_left_then_it_is_taken_over(tmp_path: Path) -> None:
    listen_unix(tmp_path / "s").close()

    listen_unix(tmp_path / "s").close()


def test_given_a_file_in_the_way_then_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")

    with pytest.raises(StoreUnusable, match="not a socket"):
        listen_unix(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "mine"


# --- connections ------------------------------------------------------------------------------


def test_given_a_foreign_host_then_it_is_refused(served: Served) -> None:
    answer = served.raw(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 421 ")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost: local"])
def test_given_a_head_that_does_not_end_then_the_connection_is_closed(served: Served, begun: bytes) -> None:
    assert served.raw(begun) == b""


def test_given_a_second_request_whose_head_does_not_end_then_the_connection_is_closed(served: Served) -> None:
    answer = served.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /hea")

    assert answer.count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * (ADDRESS_MAX_BYTES + 1) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * HEADERS_MAX + b"\r\n", 431),
        (_LONG.ljust(HEAD_MAX_BYTES + 20, b"a") + b"\r\n\r\n", 431),
        (_LONG.ljust(HEAD_MAX_BYTES + 1, b"a"), 431),
    ],
    ids=["address", "number of headers", "one long header", "one that does not end"],
)
def test_given_a_head_that_is_too_large_then_it_is_refused(served: Served, head: bytes, status: int) -> None:
    # What is too many comes in one piece: what a closed connection has not read could cost its last words.
    assert served.raw(head[:-100], head[-100:]).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        b"GET /probe HTTP/1.1\r\n\r\n",
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\nabcde",
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET /probe HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
        b"GET /pr\x00obe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /probe HTTP/1.1\r\nHost: localhost\r\nA: b\x00c\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"hello\r\n\r\n",
    ],
    ids=[
        "length and chunks",
        "two lengths",
        "signed length",
        "negative length",
        "chunked not last",
        "blank in name",
        "folded",
        "NUL in address",
        "NUL in header",
        "TLS",
        "no HTTP",
    ],
)
def test_given_what_could_be_two_requests_or_is_none_then_it_is_refused_once_and_closed(
    served: Served, request_: bytes
) -> None:
    answer = served.raw(request_)

    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_given_headers_behind_the_body_then_they_are_nobodys_word(served: Served) -> None:
    answer = served.raw(
        b"POST /probe HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"0\r\nHost: evil.example\r\nAuthorization: Bearer x\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"sign in, or give a token" in answer  # not: this token is unknown


def test_given_a_body_that_is_too_long_then_it_is_not_asked_for(served: Served) -> None:
    answer = served.raw(
        b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    )

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


def test_given_a_body_that_is_fit_then_it_is_asked_for(served: Served) -> None:
    with served.connect() as sock:
        sock.sendall(
            b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nExpect: 100-continue\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n"
        )
        assert sock.recv(1000).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"name=x")
        assert _rest(sock).startswith(b"HTTP/1.1 403 ")


def test_given_an_answer_and_a_body_that_still_drips_then_the_connection_is_closed(served: Served) -> None:
    answer = served.raw(b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", b"x")

    assert answer.startswith(b"HTTP/1.1 401 ")


def test_given_a_client_that_goes_while_it_is_answered_then_that_is_no_fault(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    sock = served.connect()
    sock.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    assert sock.recv(15) == b"HTTP/1.1 200 OK"
    sock.close()

    until(served.idle)
    assert [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"] == []
