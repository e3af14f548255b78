"""The node's tick: time limits, the size of the worker pool, and cancel requests for running attempts."""

import asyncio
import logging

from spinney.model.errors import StoreUnusable
from spinney.node.context import NodeContext
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.limits import Limits
from spinney.node.dispatch.slots import Slot
from spinney.node.dispatch.worker_pool import WorkerPool

log = logging.getLogger(__name__)


class Ticker:
    """``run`` is its task. Cancel requests are read when another process has committed something."""

    def __init__(
        self, context: NodeContext, pool: WorkerPool, dispatcher: Dispatcher, limits: Limits, *, node_id: int
    ) -> None:
        self._context, self._pool, self._dispatcher, self._limits = context, pool, dispatcher, limits
        self._node_id = node_id
        self._look_for_cancel_requests = True
        context.signals.committed.connect(self.look_for_cancel_requests)
        context.signals.woken.connect(self.look_for_cancel_requests)

    def look_for_cancel_requests(self) -> None:
        """Read cancel requests at the next tick, because there may be new ones for this node."""
        self._look_for_cancel_requests = True

    async def run(self) -> None:
        """Tick, for ever."""
        while True:
            self._limits.tick()
            self._pool.tick(self._dispatcher.slots)
            trim(self._dispatcher.slots)
            if self._look_for_cancel_requests and self._dispatcher.held():
                self._look_for_cancel_requests = False
                await self._read_cancel_requests()
            await asyncio.sleep(self._context.settings.tick_s)

    async def _read_cancel_requests(self) -> None:
        node_id = self._node_id
        try:
            requests = await self._context.reader.call(lambda store: store.cancel_requests(node_id))
        except StoreUnusable as error:
            log.debug("cannot look for cancel requests: %s", error)
            self._look_for_cancel_requests = True
            return
        if requests:
            self._look_for_cancel_requests = True  # until they have ended
            self._limits.cancel_requests(requests)


def trim(slots: list[Slot]) -> None:
    """Remove empty slots that are leaving, from the highest: a slot's number is its index."""
    while slots[-1].leaving and slots[-1].empty:
        slots.pop()
