"""A submission whose answer is lost is sent again with the same key, until it is answered with its jobs."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread

import pytest

from spinney.client.calls import IDEMPOTENCY, Call
from spinney.client.errors import ServerUnavailable
from spinney.model.errors import SubmissionUnfinished
from spinney.operations import SubmitJobs
from spinney.terminal import remote
from spinney.terminal.remote import RetryingClient
from spinney.web.problems import of_error

LOST = (0, b"")
BAD_GATEWAY = (502, b"<html>Bad Gateway</html>")
UNFINISHED = (409, bytes(of_error(SubmissionUnfinished("it is still being written; repeat it")).body))
MADE = (201, b'{"ids": [1, 2], "held": 0}')
ME = {"name": "ann", "how": "token", "rights": {"role": "admin", "within": {}}}


class Site:
    """A server that knows its callers, and answers one submission after another as it is made to."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.keys: list[str | None] = []
        site, left = self, iter(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, json.dumps(ME).encode())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                site.keys.append(self.headers["Idempotency-Key"])
                status, content = next(left)
                if status:
                    self._answer(status, content)

            def _answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def submitted(self) -> list[int]:
        with RetryingClient(self.url, token=None, outage_limit_s=60) as client:
            return list(client.do(SubmitJobs(type="part", lines=['{"n": 1}', '{"n": 2}'])).ids)

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "AGAIN_S", 0.0)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(*request.param)
    yield site
    site.end()


@pytest.mark.parametrize(
    "site",
    [(LOST, MADE), (BAD_GATEWAY, MADE), (LOST, UNFINISHED, UNFINISHED, MADE)],
    ids=["connection", "proxy", "still being written"],
    indirect=True,
)
def test_the_first_call_of_a_command_is_repeated_with_its_key(site: Site) -> None:
    assert site.submitted() == [1, 2]
    assert len(site.keys) > 1
    assert len(set(site.keys)) == 1
    assert site.keys[0]


@pytest.mark.parametrize("site", [(UNFINISHED, MADE)], indirect=True)
def test_a_body_that_has_been_read_is_not_sent_again(site: Site) -> None:
    call = Call(
        method="POST", path="/x", decode=bytes, content=BytesIO(b"all"), headers={IDEMPOTENCY: "month-1"}
    )

    with (
        RetryingClient(site.url, token=None, outage_limit_s=60) as client,
        pytest.raises(SubmissionUnfinished),
    ):
        client.send(call)
    assert site.keys == ["month-1"]


def test_an_address_without_a_server_fails_at_once() -> None:
    site = Site()
    site.end()

    with pytest.raises(ServerUnavailable, match="does not answer"):
        site.submitted()
