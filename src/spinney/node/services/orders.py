"""Carry out operators' orders for this node.

The claim in the store obeys them at once; this service does the rest: a drained node hands back what it has not begun
and claims nothing; additional slots exist at once; of fewer slots the highest take no more jobs and are removed when
they are empty. The store is queried when another process has committed something, and not more often than twice a
second."""

import asyncio
import logging

from spinney.model import fleet
from spinney.node.context import NodeContext
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.slots import Slot
from spinney.node.dispatch.worker_pool import WorkerPool
from spinney.node.services.loop import on_wake

log = logging.getLogger(__name__)

EVERY_S = 0.5
"""The least time between two queries for orders, in seconds."""


class OrderWatcher:
    """Carries out the drain orders and numbers of slots that operators set for this node. ``run`` is its task."""

    def __init__(self, context: NodeContext, dispatcher: Dispatcher, pool: WorkerPool) -> None:
        self._context, self._dispatcher, self._pool = context, dispatcher, pool
        self._wake = asyncio.Event()
        self._wake.set()  # orders that were given while the node was down
        self._obeyed = fleet.NodeOrders()
        context.signals.committed.connect(self._wake.set)

    async def run(self) -> None:
        """Carry out orders, at most one look every ``EVERY_S`` seconds, until the task is cancelled."""
        await on_wake(self._wake, self._obey, "carrying out orders", pause_s=EVERY_S)

    async def _obey(self) -> None:
        """Read the orders in force and carry out what differs from those that were carried out last. Orders
        are a state and not a list of commands, so that none is missed, and none is done twice."""
        name = self._context.settings.name
        orders = await self._context.reader.call(lambda store: store.fleet.orders(name))
        before, self._obeyed = self._obeyed, orders
        if orders.drained != before.drained:
            self._drain() if orders.drained else self._resume()
        if orders.slots != before.slots:
            number = self._context.settings.slots if orders.slots is None else orders.slots
            log.info("an operator gives this node %d slots", number)
            resize(self._dispatcher.slots, number)
            self._clear_out()
            self._context.signals.claimable()

    def _drain(self) -> None:
        """Take no new jobs, and get back those that have not begun. What runs goes on."""
        log.info("drained by an operator: nothing new is taken, %d leases are held", self._dispatcher.held())
        self._context.status.drained_by_operator = True
        for worker in self._pool.workers:
            worker.child.recall()

    def _resume(self) -> None:
        """Take new jobs again, and claim at once."""
        log.info("resumed by an operator")
        self._context.status.drained_by_operator = False
        self._context.signals.claimable()

    def _clear_out(self) -> None:
        """Retire the workers of removed slots: they finish their running attempt and hand back the rest. A worker that
        all slots share hands back what it has not begun."""
        if not any(slot.leaving for slot in self._dispatcher.slots):
            return
        for worker in self._pool.workers:
            if worker.slot is None:
                worker.child.recall()
            elif worker.slot.leaving:
                worker.retire()


def resize(slots: list[Slot], number: int) -> None:
    """Set the number of slots: new ones exist at once, superfluous ones are marked as leaving (``ticker.trim`` removes
    them)."""
    for slot in slots:
        slot.leaving = slot.number >= number
    slots.extend(Slot(n) for n in range(len(slots), number))
