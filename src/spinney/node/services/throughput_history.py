"""Roll up throughput for charts, once a minute, on the leader.

It runs in the reader's thread, so that no claim and no record waits for it."""

from spinney.node.context import NodeContext
from spinney.node.services.loop import every

EVERY_S = 60.0


class ThroughputRecorder:
    """``run`` is its task."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    async def run(self) -> None:
        """Roll up, for ever."""
        await every(EVERY_S, self._record, "the record of throughput")

    async def _record(self) -> None:
        if self._context.status.is_leader:
            now_us = self._context.now_us()
            await self._context.reader.call(lambda store: store.throughput_history.record(now_us=now_us))
