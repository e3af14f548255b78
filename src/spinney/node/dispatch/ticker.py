"""The node's tick: time limits, the size of the worker pool, and requests that concern running attempts: to
end them, and to show where they stand.

They are looked at once a tick, so a tick is how late they may be. Cancel requests are in the store, which is
only asked when something was committed since, and only while the node has leases: an idle node makes no
queries here."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from spinney.model.errors import StoreUnusable
from spinney.node.context import NodeContext
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.limits import Limits
from spinney.node.dispatch.slots import Slot
from spinney.node.dispatch.worker_pool import WorkerPool

log = logging.getLogger(__name__)


class Ticker:
    """Looks after running attempts once a tick; ``run`` is its task. Cancel requests are read when another
    process has committed something."""

    def __init__(
        self,
        context: NodeContext,
        pool: WorkerPool,
        dispatcher: Dispatcher,
        limits: Limits,
        *,
        node_id: int,
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
    ) -> None:
        self._context, self._pool, self._dispatcher, self._limits = context, pool, dispatcher, limits
        self._node_id, self._spawn = node_id, spawn
        self._look_for_cancel_requests = True
        context.signals.committed.connect(self.look_for_cancel_requests)
        context.signals.woken.connect(self.look_for_cancel_requests)

    def look_for_cancel_requests(self) -> None:
        """Read cancel requests at the next tick, because there may be new ones for this node."""
        self._look_for_cancel_requests = True

    async def run(self) -> None:
        """Tick every ``tick_s`` seconds until the task is cancelled."""
        while True:
            self._limits.tick()
            self._pool.tick(self._dispatcher.slots)
            trim(self._dispatcher.slots)
            if self._look_for_cancel_requests and self._dispatcher.held():
                self._look_for_cancel_requests = False
                await self._read_requests()
            await asyncio.sleep(self._context.settings.tick_s)

    async def _read_requests(self) -> None:
        """Read which attempts are to be cancelled and whose stacks are wanted, and begin with them. While
        there are cancel requests they are read again at every tick, until their attempts have ended."""
        node_id = self._node_id
        try:
            requests, stacks = await self._context.reader.call(
                lambda store: (store.cancel_requests(node_id), store.stack_requests.due(node_id))
            )
        except StoreUnusable as error:
            log.debug("cannot look for requests: %s", error)
            self._look_for_cancel_requests = True
            return
        if requests:
            self._look_for_cancel_requests = True  # until they have ended
            self._limits.cancel_requests(requests)
        self._limits.stack_requests(stacks, self._on_stacks_taken)

    def _on_stacks_taken(self, fence: int) -> None:
        self._spawn(self._drop_stack_request(fence))

    async def _drop_stack_request(self, fence: int) -> None:
        """Remove a request that was dealt with; where the store does not answer, the request expires by
        itself."""
        with suppress(StoreUnusable):
            await self._context.writer.call(lambda store: store.stack_requests.drop([fence]))


def trim(slots: list[Slot]) -> None:
    """Remove empty slots that are leaving, from the highest: a slot's number is its index."""
    while slots[-1].leaving and slots[-1].empty:
        slots.pop()
