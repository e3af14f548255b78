"""One watcher's stream: server-sent events (WHATWG HTML, section 9.2)."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from spinney.server.events.feed import Event, Feed, Watcher

BEAT_S = 15.0
"""So often something is sent at least, so that either end sees that the other has gone."""
ASKED_AGAIN_S = 15.0
"""So often it is asked whether who watches still may."""
RETRY_MS = 1_000
MEDIA_TYPE = "text/event-stream"


def stream(feed: Feed, watcher: Watcher, may: Callable[[], Awaitable[bool]]) -> StreamingResponse:
    """The answer. ``may``: whether who watches still may, asked now and then; the stream ends when not."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return _Stream(_told(feed, watcher, may), media_type=MEDIA_TYPE, headers=headers, feed=feed, watcher=watcher)


class _Stream(StreamingResponse):
    """Whoever watches leaves with it, also where nothing was told yet: HEAD, or a client that has gone already."""

    def __init__(self, *told: Any, feed: Feed, watcher: Watcher, **more: Any) -> None:
        super().__init__(*told, **more)
        self._feed, self._watcher = feed, watcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.leave(self._watcher)


async def _told(feed: Feed, watcher: Watcher, may: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    asked_s = time.monotonic()
    while not watcher.ended:
        events = await watcher.next(BEAT_S)
        if time.monotonic() - asked_s >= ASKED_AGAIN_S:
            asked_s = time.monotonic()
            if not await may():
                return
        yield b"".join(_written(feed.epoch, event) for event in events) or b": beat\n\n"


def _written(epoch: str, event: Event) -> bytes:
    # JSON as orjson writes it has no line breaks; a topic's name has none either (``topics``).
    return f"id: {epoch}.{event.number}\nevent: {event.topic}\ndata: ".encode() + event.data + b"\n\n"
