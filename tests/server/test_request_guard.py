"""What stands before every route: foreign hosts, double meanings, bodies without end, headers of answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import orjson
import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.types import Message

from server.conftest import World
from spinney.server import request_guard
from spinney.web.api.json_routes import ApiRoute
from spinney.web.long_requests.bodies import LargeBody
from spinney.web.long_requests.quotas import Quotas
from spinney.web.settings import ServerSettings

Receive = Callable[[], Awaitable[dict[str, Any]]]
SETTINGS = ServerSettings(host="127.0.0.1", body_max_bytes=2000, upload_max_bytes=5000, body_patience_s=0.1)


class Answer:
    """What was sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def detail(self) -> str:
        content = b"".join(message.get("body", b"") for message in self.messages[1:])
        return str(orjson.loads(content)["detail"])


def _scope(
    path: bytes = b"/", query: bytes = b"", host: str | None = "localhost", **more: Any
) -> dict[str, Any]:
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    return {
        "type": "http",
        "method": "POST",
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "headers": headers + more.pop("headers", []),
        "client": ("10.0.0.1", 1),
        "server": ("192.0.2.7", 8620),
        **more,
    }


async def _ask(
    scope: dict[str, Any], pieces: Sequence[bytes | None] = (b"",), settings: ServerSettings = SETTINGS
) -> Answer:
    """``pieces``: of the body; None: nothing comes any more."""
    left = list(pieces)
    app = FastAPI()
    app.state.settings = settings

    @app.post("/")
    async def small(request: Request) -> int:
        return len(await request.body())

    @app.post("/upload", dependencies=[LargeBody])
    async def large(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    @app.post("/fault")
    async def fault() -> None:
        raise KeyError("hunter2")

    async def receive() -> dict[str, Any]:
        if not left:
            return {"type": "http.disconnect"}
        piece = left.pop(0)
        if piece is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    answer = Answer()
    request_guard.add_to(app, settings, Quotas(settings))
    await app(scope, receive, answer.send)
    return answer


# --- the host ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8620",
        "LOCALHOST.",
        "127.0.0.1:8620",
        "[::1]:8620",
        "127.9.9.9",
        "192.0.2.7:8620",
        "spinney.example.org",
        "other.example.org",
    ],
)
async def test_given_a_host_of_ours_then_it_is_answered(host: str) -> None:
    settings = SETTINGS.model_copy(
        update={"url": "https://spinney.example.org", "hosts": ("other.example.org",)}
    )

    assert (await _ask(_scope(host=host), settings=settings)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "192.0.2.8",
        "",
        None,
        "evil@localhost",
        "localhost/x",
        "[::1",
        "a b",
        "127.0.0.1.evil.example",
        "xn--localhost",
    ],
)
async def test_given_a_foreign_host_then_it_is_refused_also_on_loopback(host: str | None) -> None:
    answer = await _ask(_scope(host=host))

    assert answer.status == 421
    assert "hosts of [server]" in answer.detail


async def test_given_two_hosts_then_it_is_refused() -> None:
    assert (await _ask(_scope(headers=[(b"host", b"localhost")]))).status == 400


async def test_given_the_unix_socket_then_any_host_will_do() -> None:
    assert (await _ask(_scope(host=None, client=("uid:0", 1)))).status == 200


# --- the address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (b"/files/..%2f..%2fetc/passwd", b""),
        (b"/files/../x", b""),
        (b"/%2e%2e/x", b""),
        (b"/./x", b""),
        (b"/a%00b", b""),
        (b"/a%0d%0ab", b""),
        (b"/%ff", b""),
        (b"/%c0%ae%c0%ae/", b""),
        (b"/%ed%a0%80", b""),
        (b"/%zz", b""),
        (b"/caf\xe9", b""),
        (b"/", b"q=%ff"),
        (b"/", b"q=%00"),
        (b"/", b"q=\xff"),
        (b"/", b"q=%"),
    ],
)
async def test_given_an_address_with_two_meanings_then_it_is_refused(path: bytes, query: bytes) -> None:
    answer = await _ask(_scope(path, query))

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (b"/files/a..b/...", b""),
        (b"/caf%C3%A9", b"q=%E2%82%AC&a=b+c"),
        (b"/a%2Fb", b""),
        (b"/", b"q=a%0Ab"),
        (b"/a%20b", b""),
    ],
)
def test_given_an_address_with_one_meaning_then_nothing_is_wrong_with_it(path: bytes, query: bytes) -> None:
    assert request_guard.target_fault(path, query) is None


# --- bodies -----------------------------------------------------------------------------------


async def test_given_a_body_within_the_bounds_then_it_is_taken() -> None:
    assert (await _ask(_scope(), [b"x" * 1000, b"x" * 1000])).status == 200


async def test_given_an_announced_length_beyond_them_then_nothing_of_it_is_read() -> None:
    answer = await _ask(_scope(headers=[(b"content-length", b"2001")]), [None])

    assert answer.status == 413
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(("path", "most"), [(b"/", 2000), (b"/upload", 5000)])
async def test_given_chunks_without_a_length_then_they_are_counted(path: bytes, most: int) -> None:
    assert (await _ask(_scope(path), [b"x" * 1000] * (most // 1000))).status == 200
    answer = await _ask(_scope(path), [b"x" * 1000] * (most // 1000) + [b"y"])

    assert answer.status == 413
    assert f"{most:,} bytes" in answer.detail


async def test_given_that_nothing_comes_any_more_then_it_is_cut_off() -> None:
    answer = await _ask(_scope(), [b"x", None])

    assert answer.status == 408


async def test_given_a_byte_now_and_then_then_it_is_cut_off_although_each_comes_in_time() -> None:
    settings = SETTINGS.model_copy(update={"body_patience_s": 0.2})
    sent = 0
    app = FastAPI()

    @app.post("/")
    async def route(request: Request) -> int:
        return len(await request.body())

    async def receive() -> dict[str, Any]:
        nonlocal sent
        await asyncio.sleep(0.02)
        sent += 1
        return {"type": "http.request", "body": b"x", "more_body": sent < 500}

    answer = Answer()
    request_guard.add_to(app, settings, Quotas(settings))
    await app(_scope(), receive, answer.send)

    assert answer.status == 408
    assert sent < 50


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip", 415), ("gzip, br", 415), ("identity", 200), ("", 415)]
)
@pytest.mark.parametrize("path", [b"/", b"/upload"])
async def test_given_a_body_that_is_packed_then_nothing_of_it_is_read(
    path: bytes, coding: str, status: int
) -> None:
    answer = await _ask(_scope(path, headers=[(b"content-encoding", coding.encode())]), [b"x"])

    assert answer.status == status


# --- answers ----------------------------------------------------------------------------------


async def test_given_any_answer_then_it_bears_what_protects_pages() -> None:
    headers = (await _ask(_scope())).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "strict-transport-security" not in headers


async def test_given_https_then_browsers_are_to_come_by_it_alone() -> None:
    settings = SETTINGS.model_copy(update={"url": "https://spinney.example.org"})

    assert "strict-transport-security" in (await _ask(_scope(), settings=settings)).headers


async def test_given_a_fault_then_it_is_logged_once_and_nothing_of_it_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await _ask(_scope(b"/fault"))

    assert answer.status == 500
    assert "hunter2" not in answer.detail
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.mark.parametrize("path", [b"/", b"/upload"])
async def test_given_a_client_that_goes_within_a_body_then_that_is_no_fault(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await _ask(_scope(path), [])

    assert answer.messages == []
    assert [record for record in caplog.records if record.exc_info] == []


def test_given_files_of_the_pages_then_they_are_kept_for_ever_and_all_else_by_nobody(world: World) -> None:
    client = world.client(None)
    address = world.app.state.static.address("spinney.css")

    assert "immutable" in client.get(address).headers["cache-control"]
    assert client.get("/sign-in").headers["cache-control"] == "no-store"
    assert world.client("viewer").get("/api/v1/openapi.json").headers["cache-control"] == "no-store"


def test_given_nobody_who_is_known_then_his_body_is_not_read(world: World) -> None:
    def body() -> Iterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    answer = world.client(None).post(
        "/api/v1/jobs", content=body(), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 401


def test_given_any_route_of_the_api_with_a_json_body_then_it_is_parsed_strictly(world: World) -> None:
    routes = [
        route for route in world.app.routes if isinstance(route, APIRoute) and route.path.startswith("/api/")
    ]

    assert len(routes) > 10
    assert [
        route.path for route in routes if route.body_field is not None and not isinstance(route, ApiRoute)
    ] == []
