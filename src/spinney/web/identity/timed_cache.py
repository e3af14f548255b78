"""What the store has said, kept for a moment: many requests at once ask it once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT_S = 1.0
"""Of the two seconds that are promised, what ``request_context.REFRESH_S`` leaves."""
MOST = 10_000
"""Answers kept; the oldest go first."""


class TimedCache(Generic[T]):
    """Of one event loop."""

    def __init__(self, kept_s: float = KEPT_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept_s, self._clock = kept_s, clock
        self._found: OrderedDict[Hashable, tuple[float, asyncio.Task[T]]] = OrderedDict()

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """What ``ask`` says, or said for this key less than ``kept_s`` ago. What it raises is kept by nobody."""
        found = self._found.get(key)
        if found is None or self._clock() - found[0] >= self._kept_s:
            # The time before it is asked counts: what is revoked while the answer is on its way is obeyed as soon.
            found = self._clock(), asyncio.ensure_future(_run(ask))
            self._found[key] = found
            self._found.move_to_end(key)
            while len(self._found) > MOST:
                self._found.popitem(last=False)
        try:
            return await asyncio.shield(found[1])  # others wait for it, too
        except Exception:
            if self._found.get(key) is found:
                del self._found[key]
            raise

    def forget(self) -> None:
        """Ask anew: something was changed here."""
        self._found.clear()


async def _run(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()
