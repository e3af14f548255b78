"""A cache of results that may be a second or a few old, and that requests at the same time compute once.

Not for what live pages show: they read again because something has changed, and a result from before the change would
stay on the page. ``spinney.web.pages.request_coalescer`` is for those."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT_S = 1.0
"""How long identities are kept, in seconds. With ``request_context.REFRESH_S`` it stays within the two seconds after
which a change of rights is promised to be in force."""
MOST = 10_000
"""The maximum number of results that are kept; the oldest are dropped first."""


class TimedCache(Generic[T]):
    """Results by key, for ``kept_s`` seconds. It belongs to one event loop."""

    def __init__(self, kept_s: float = KEPT_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept_s, self._clock = kept_s, clock
        self._entries: OrderedDict[Hashable, tuple[float, asyncio.Task[T]]] = OrderedDict()

    async def get(self, key: Hashable, load: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``load``, or one for this key that is less than ``kept_s`` old. The key must also say
        who may see the result. An error is raised to all who wait for it, and is not kept."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= self._kept_s:
            # The age counts from before the load: a token that is revoked meanwhile must not be good for longer.
            entry = self._clock(), asyncio.ensure_future(load())
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)
        try:
            # A caller that is cancelled must not end the load that others wait for.
            return await asyncio.shield(entry[1])
        except Exception:
            if self._entries.get(key) is entry:
                del self._entries[key]
            raise

    def forget(self) -> None:
        """Drop all results, since this server has changed what they were made of. A load that is under way
        still answers those who wait for it."""
        self._entries.clear()
