"""Event streams as a browser meets them: the application is called as a server calls it, and the stream broken off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from fastapi import FastAPI

from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.settings import ServerSettings

from ..conftest import RIGHTS, Askers, store_at


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """An application that is started in the test's own event loop."""
    url = store_at(tmp_path / "spinney.db")
    return make(
        Parts(
            settings=ServerSettings(),
            open_store=lambda: open_store(url),
            folders=tmp_path / "folders",
            run_dir=None,
            identity=lambda stores, settings: Askers(RIGHTS),
        )
    )


class Stream:
    """An answer as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body = bytearray()
        self._moved = asyncio.Event()

    async def put(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {n.decode(): v.decode() for n, v in message["headers"]}
        self._body += message.get("body", b"")
        self._moved.set()

    async def until(self, text: bytes) -> bytes:
        async with asyncio.timeout(10):
            while text not in self._body:
                self._moved.clear()
                await self._moved.wait()
        return bytes(self._body)


@asynccontextmanager
async def stream(app: FastAPI, who: str, path: str, *topics: str, last: str = "") -> AsyncIterator[Stream]:
    streamed, gone = Stream(), asyncio.Event()
    query = urlencode([("topic", t) for t in topics])
    headers = [
        (b"host", b"localhost"),
        *([(b"x-asker", who.encode())] if who else []),
        *([(b"last-event-id", last.encode())] if last else []),
    ]
    request_sent = False

    async def receive() -> dict[str, Any]:
        nonlocal request_sent
        if not request_sent:
            request_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    async with app.router.lifespan_context(app):
        task = asyncio.create_task(app(scope, receive, streamed.put))
        try:
            yield streamed
        finally:
            gone.set()
            async with asyncio.timeout(20):
                await task


@pytest.mark.parametrize("path", ["/events", "/api/v1/events"])
async def test_given_a_topic_when_watched_then_its_state_comes_with_a_number(app: FastAPI, path: str) -> None:
    async with stream(app, "viewer", path, "queues") as events:
        body = await events.until(b"\n\nid: ")
        body = await events.until(b"event: queues\ndata: [")
        assert events.status == 200
        assert events.headers["content-type"].startswith("text/event-stream")
        assert events.headers["cache-control"] == "no-store"
        assert body.startswith(b"retry: ")


async def test_given_who_comes_back_to_another_start_of_the_server_then_everything_is_told(
    app: FastAPI,
) -> None:
    async with stream(app, "viewer", "/events", "holds", last="000000000000.999") as again:
        assert b"event: holds" in await again.until(b"event: holds\n")


async def test_given_a_topic_that_there_is_not_then_the_problem_names_those_there_are(app: FastAPI) -> None:
    async with stream(app, "viewer", "/api/v1/events", "overvieuw") as events:
        body = await events.until(b"}")
        assert events.status == 422
        assert "overview" in orjson.loads(body)["detail"]


async def test_given_nobody_then_nothing_is_told(app: FastAPI) -> None:
    async with stream(app, "", "/events", "holds") as events:
        await events.until(b"}")
        assert events.status == 401
