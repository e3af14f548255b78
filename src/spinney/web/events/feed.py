"""The event feed: it reads each topic once for all watchers who see the same.

One loop asks several times a second whether anything was committed (one cheap query), and then reads the watched topics
that are due. A state that is read again and equal to the last one makes no event.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from spinney.commands.control import Control
from spinney.model.access import Rights
from spinney.model.errors import SpinneyError, StoreUnavailable
from spinney.store.parts import Store
from spinney.web.api.json_routes import written
from spinney.web.background import BackgroundLoop
from spinney.web.events.topics import Topic
from spinney.web.request_context import RequestContext
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How many seconds the feed waits before it asks again whether anything was committed."""
LEAST_S = 1.0
"""The shortest time between two reads of a topic, in seconds."""
SHARE = 20
"""A look is followed by a pause of this many times what it took, multiplied by the number of topics that are looked at
less than once in ``LEAST_S``: all expensive looks together take a 20th of one processor."""
LINGER_S = 60.0
"""How long a topic without watchers is kept for those who reconnect, in seconds."""
RECHECK_S = 10.0
"""How often a topic is read though nothing was committed, in seconds: ages change by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A new state of a topic."""

    number: int
    """Grows with each event since the server started."""
    topic: str
    data: bytes
    """The state of the topic, as JSON."""


@dataclass(slots=True, kw_only=True, eq=False)
class WatchedTopic:
    """A topic with its last state, for all watchers who see the same of it."""

    topic: Topic
    context: RequestContext
    """The context of one of its watchers, who all have the same rights."""
    event: Event | None = None
    """The last event; None: the topic has not been read yet."""
    mark: bytes = b""
    """The digest of the last state, by which a change is recognized."""
    stale: bool = True
    """Whether something was committed since it was read."""
    due_s: float = 0.0
    """The earliest time of the next look; this and the times below are by the feed's monotonic clock."""
    looked_s: float = 0.0
    """When the state was read last."""
    took_s: float = 0.0
    """How many seconds that took."""
    left_s: float | None = None
    """Since when it has had no watchers; None: it has some."""
    watchers: "set[Watcher]" = field(default_factory=set)
    """The streams that are sent its events."""


class Watcher:
    """The events that a stream has not sent yet: only the last state of each topic, so that a slow client takes no more
    memory than a fast one."""

    def __init__(self, watched: list[WatchedTopic], after: int | None, id_prefix: str) -> None:
        self.watched, self._id_prefix = watched, id_prefix
        self._pending: dict[str, Event] = {}
        self._has_events = asyncio.Event()
        self.ended = False
        for topic in watched:
            topic.watchers.add(self)
            topic.left_s = None
            if topic.event is not None and (after is None or topic.event.number > after):
                self.put(topic.event)

    def event_id(self, event: Event) -> str:
        """Return the id by which a client continues behind an event. It holds for those who see what this caller sees:
        for others, states that are older than the event may be new."""
        return f"{self._id_prefix}.{event.number}"

    def put(self, event: Event) -> None:
        """Add an event, in place of an earlier one of the same topic that was not sent."""
        self._pending[event.topic] = event
        self._has_events.set()

    def end(self) -> None:
        """Tell the stream that no more events follow."""
        self.ended = True
        self._has_events.set()

    async def wait(self, patience_s: float) -> None:
        """Return when there is an event or the feed has ended, and after ``patience_s`` seconds in any
        case."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._has_events.wait()

    def take(self) -> list[Event]:
        """Return the events to send, in their order, and remove them."""
        self._has_events.clear()
        entries = sorted(self._pending.values(), key=lambda event: event.number)
        self._pending.clear()
        return entries


class Feed(BackgroundLoop):
    """Reads the watched topics within ``async with``; leaving ends all streams. All methods belong to the
    event loop."""

    def __init__(self, stores: StorePool, *, least_s: float = LEAST_S) -> None:
        self._stores, self._least_s = stores, least_s
        self._watched: dict[tuple[str, str, Rights], WatchedTopic] = {}
        self._number = 0
        self._has_watchers = asyncio.Event()
        self._signature: int | None = None
        self.epoch = secrets.token_hex(6)
        """Numbers of events count from this start of the server."""

    async def __aexit__(self, *error: object) -> None:
        self.end()
        await super().__aexit__(*error)

    def end(self) -> None:
        """End all streams; clients reconnect, to this server or another."""
        for watcher in {w for topic in self._watched.values() for w in topic.watchers}:
            watcher.end()

    @property
    def streams(self) -> int:
        """Return how many streams are open; one counts once, however many topics it watches."""
        return len({w for topic in self._watched.values() for w in topic.watchers})

    def watch(self, topics: Iterable[Topic], context: RequestContext, *, last: str | None = None) -> Watcher:
        """Begin to watch topics; ``leave`` ends it. The watcher has at once the last state of each topic, as
        far as it is known.

        ``last``: the id of the last event that the client has. If it is one of this feed, sent to a caller of the
        same name and rights, only states that have changed since are pending; an id of another server, of this one
        before its restart, or from before the rights were changed counts for nothing, and all states are sent."""
        id_prefix = self._id_prefix(context)
        prefix, _, number = (last or "").partition(".")
        is_own = prefix == id_prefix and number.isascii() and number.isdigit()
        after = int(number) if is_own else None
        entries = [self._watched_topic(topic, context) for topic in topics]
        self._has_watchers.set()
        return Watcher(entries, after, id_prefix)

    def leave(self, watcher: Watcher) -> None:
        """End a watcher's part in all its topics; a topic without watchers is kept for a while."""
        for topic in watcher.watched:
            topic.watchers.discard(watcher)
            if not topic.watchers:
                topic.left_s = time.monotonic()

    def _watched_topic(self, topic: Topic, context: RequestContext) -> WatchedTopic:
        """Return the topic that all callers who see the same share; it is added if nobody watches it yet."""
        key = (topic.name, *_viewer(context))
        if key not in self._watched:
            self._watched[key] = WatchedTopic(topic=topic, context=context)
        return self._watched[key]

    def _id_prefix(self, context: RequestContext) -> str:
        """Return the prefix of the ids of this caller's events: the start of the server, and a digest of the key of
        what the caller sees."""
        return f"{self.epoch}-{sha256(repr(_viewer(context)).encode()).hexdigest()[:12]}"

    # --- the watch ------------------------------------------------------------------------

    async def _run(self) -> None:
        """Look several times a second while there are watchers, and else wait for one: a server that nobody
        watches makes no queries here. Errors are logged, and the next look comes after a pause."""
        while True:
            if not any(topic.watchers for topic in self._watched.values()):
                self._forget()
                if not self._watched:
                    self._has_watchers.clear()
                    await self._has_watchers.wait()
            try:
                await self._look_once()
            except SpinneyError as error:
                log.warning("the feed cannot look: %s", error)
                await asyncio.sleep(LEAST_S)
            except Exception:
                log.exception("a fault in the feed")
                await asyncio.sleep(LEAST_S)
            await asyncio.sleep(LOOK_S)
            self._forget()

    async def _look_once(self) -> None:
        """Find out whether anything was committed, and read the watched topics that are due."""
        signature = await self._stores.run(lambda store: store.signature())
        if signature != self._signature:
            self._signature = signature
            for topic in self._watched.values():
                topic.stale = True
        now_s = time.monotonic()
        for topic in list(self._watched.values()):
            stale = topic.stale or now_s - topic.looked_s >= RECHECK_S
            if not topic.watchers or now_s < topic.due_s or not (stale or topic.event is None):
                continue
            try:
                await self._look_at(topic)
            except StoreUnavailable:
                raise  # so are all others
            except Exception:
                # What one topic cannot show must not keep the others from being shown.
                log.exception("the topic %r cannot be looked at", topic.topic.name)
                topic.due_s = time.monotonic() + RECHECK_S

    async def _look_at(self, watched: WatchedTopic) -> None:
        """Read one topic, and give its watchers an event if its state has changed. The next look comes after a multiple
        of the time that this one took."""
        watched.stale = False  # before: what is committed meanwhile is looked at again

        def look(store: Store) -> tuple[Any, float]:
            begun = time.perf_counter()
            control: Control = watched.context.control(store)
            if watched.topic.from_stats is None:
                state = watched.topic.look(control)
            else:
                # A page that gets this event and reads more gets what was read here, and nothing older.
                state = watched.topic.from_stats(self._stores.stats_cache.stats(control, anew=True))
            return state, time.perf_counter() - begun

        state, took_s = await self._stores.run(look)
        data = written(state)
        mark = sha256(data).digest()
        watched.looked_s = time.monotonic()
        watched.took_s = took_s
        dear = sum(1 for other in self._watched.values() if other.watchers and SHARE * other.took_s > LEAST_S)
        watched.due_s = watched.looked_s + max(
            self._least_s, SHARE * took_s * (dear if SHARE * took_s > LEAST_S else 1)
        )
        if mark == watched.mark:
            return
        if watched.topic.from_stats is None:
            # A batch shows its own job, too.
            self._stores.stats_cache.changed(watched.topic.name.replace("job:", "tree:"))
        self._number += 1
        watched.mark, watched.event = mark, Event(number=self._number, topic=watched.topic.name, data=data)
        for watcher in watched.watchers:
            watcher.put(watched.event)

    def _forget(self) -> None:
        """Drop the topics that have had no watchers for ``LINGER_S`` seconds."""
        now_s = time.monotonic()
        for key, topic in list(self._watched.items()):
            if not topic.watchers and topic.left_s is not None and now_s - topic.left_s > LINGER_S:
                del self._watched[key]


def _viewer(context: RequestContext) -> tuple[str, Rights]:
    """Return the key of what a caller sees. Callers with the same rights and, where these are limited, the same name
    see the same: the name counts, because submitters see their own jobs."""
    rights = context.principal.rights
    return "" if rights.everywhere else context.principal.name, rights
