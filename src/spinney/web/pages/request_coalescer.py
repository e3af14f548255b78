"""One answer for many requests of the same moment, and never one that was begun before the request came.

Pages ask again because something has changed. An answer that was begun before the change may not show it, and if it was
the last change, nothing would ever put that right. So a request that comes while an answer is being made waits for the
next one, together with all others that come meanwhile: however many there are, one answer is made after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class RequestCoalescer:
    """Answers by key. The key must say what was asked, and who may see the answer. It belongs to one event
    loop. For each key at most one answer is being made, and one waits for that."""

    def __init__(self) -> None:
        self._made: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return what ``make`` returns, called after this call began. What it raises is raised to all who
        wait for it. A caller that is cancelled does not end the work that others wait for."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._turn(key, make))
            task.add_done_callback(_retrieve)
        return cast(T, await asyncio.shield(task))

    async def _turn(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        """Make the answer after the one that is being made; requests that come from now on wait for the next."""
        before = self._made.get(key)
        if before is not None:
            await asyncio.wait({before})
        mine = self._made[key] = self._next.pop(key)
        try:
            return await make()
        finally:
            if self._made.get(key) is mine:
                del self._made[key]


def _retrieve(task: "asyncio.Task[Any]") -> None:
    """Take what the task raised, so that asyncio does not report it as lost: all who waited may have gone."""
    if not task.cancelled():
        task.exception()
