"""Roll up throughput for charts, at every full minute, on the leader.

Each time it opens a store of its own in a thread: it counts all pending jobs, so no claim, no record, no hold and no
order is to wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from spinney.node.context import NodeContext
from spinney.node.services.loop import every
from spinney.store.parts import Store

MINUTE_US = 60_000_000
"""A minute, in microseconds."""


class ThroughputRecorder:
    """Rolls up throughput for the charts, on the leader. ``run`` is its task."""

    def __init__(
        self,
        context: NodeContext,
        open_store: Callable[[], Store],
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._context, self._open_store, self._pause = context, open_store, pause

    async def run(self) -> None:
        """Roll up at every full minute until the task is cancelled."""
        await every(0.0, self._next_minute, "the record of throughput", dispensable=True)

    async def _next_minute(self) -> None:
        """Wait for the next full minute, however long the last step took, and roll up the minute before it."""
        await self._pause((MINUTE_US - self._context.now_us() % MINUTE_US) / 1e6)
        if self._context.status.is_leader:
            await asyncio.to_thread(self._record)

    def _record(self) -> None:
        """Roll up the last full minute in a store of its own; this runs in a thread."""
        with closing(self._open_store()) as store:
            store.throughput_history.record(now_us=self._context.now_us())
