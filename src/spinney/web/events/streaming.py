"""One client's stream of server-sent events (WHATWG HTML, section 9.2).

The rights of the client are checked before each event, and each second while nothing happens. When they have changed,
every topic is sent anew as those rights show it. When they are gone, a last event, ``end``, says why as a problem
document, and takes back the number of the last event: a client that comes back is sent everything, or is refused.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from spinney.model.errors import StoreUnavailable
from spinney.web.events.feed import Event, Feed, Watcher
from spinney.web.events.topics import Topic
from spinney.web.principal_refresh import LOST
from spinney.web.problems import of_error
from spinney.web.request_context import RequestContext

BEAT_S = 15.0
"""The longest time without data, in seconds, so that either end notices when the other has gone."""
RETRY_MS = 1_000
"""How many milliseconds a browser waits before it reconnects."""
END = "end"
"""The event that ends a stream whose watcher may watch no more. No topic is called so."""
_BEAT = b": beat\n\n"


class Stream:
    """The event stream of one client. It watches from its creation; ``leave`` ends that, and must be
    called."""

    def __init__(
        self, feed: Feed, topics: Sequence[Topic], context: RequestContext, *, last: str | None
    ) -> None:
        """``last``: the id of the last event that the client has."""
        self._feed, self._topics, self._context = feed, topics, context
        self._renewal = context.lasting
        self._watcher: Watcher = feed.watch(topics, context, last=last)

    def leave(self) -> None:
        """Stop watching all topics, because the client has gone."""
        self._feed.leave(self._watcher)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the stream as bytes of server-sent events, until the feed ends or the client may watch no
        more. While nothing happens a comment goes out every ``BEAT_S`` seconds. While the store does not
        answer nothing is sent, and the events are kept."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        sent_s = time.monotonic()
        while not self._watcher.ended:
            await self._watcher.wait(self._renewal.every_s)
            try:
                events = await self._allowed()
            except StoreUnavailable:
                # Nothing is sent while the rights cannot be checked. The events are kept.
                await asyncio.sleep(self._renewal.every_s)
                events = []
            except LOST as error:
                yield f"id:\nevent: {END}\ndata: ".encode() + bytes(of_error(error).body) + b"\n\n"
                return
            text = b"".join(_written(self._watcher.event_id(event), event) for event in events)
            if text or time.monotonic() - sent_s >= BEAT_S:
                sent_s = time.monotonic()
                yield text or _BEAT

    async def _allowed(self) -> list[Event]:
        """Return the events to send within the rights in force. When the rights have changed, the topics are
        watched anew with them, without regard to what was sent before: what the new rights show differently
        must be sent again. Raises the errors of ``LOST``."""
        principal = await self._renewal.principal()
        if principal.rights != self._context.principal.rights:
            self.leave()
            self._context = replace(self._context, principal=principal)
            self._watcher = self._feed.watch(self._topics, self._context)
        return self._watcher.take()


def _written(event_id: str, event: Event) -> bytes:
    # JSON as orjson writes it has no line breaks; a topic's name has none either (``topics``).
    return f"id: {event_id}\nevent: {event.topic}\ndata: ".encode() + event.data + b"\n\n"
