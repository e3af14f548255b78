"""What a node does for holds: it recalls leases that have not begun, and sweeps jobs that nobody else sweeps.

**Recall.** From the creation of a hold, nothing that it covers is claimed. Jobs that were claimed before and have not
begun are in workers' lists: the store returns their leases (``Holds.leased_under``), their workers hand back what they
have not begun, and the jobs become held. The node learns of a new hold by a wake-up, by the answer to an exchange, and
in any case by polling. A lease that is just on its way to a worker cannot be recalled, so the node tries again until
every lease concerned has begun or is handed back.

**Sweep.** The process that creates or releases a hold sweeps its jobs; the leader sweeps the rest, when that process
was killed or when a hold has ended by itself, with pauses in which others write."""

import asyncio
import logging
from collections.abc import Iterable

from spinney.model.errors import StoreUnusable
from spinney.model.settings.holds import SWEEP_REST_FACTOR
from spinney.node.context import NodeContext
from spinney.node.dispatch.worker_pool import WorkerPool
from spinney.node.retry_delays import RetryDelays
from spinney.node.services.loop import every
from spinney.store.parts import Store

log = logging.getLogger(__name__)

AGAIN_S = 0.01
"""Seconds between two recalls while some leases have not come back; it grows while nothing changes."""
AGAIN_MAX_S = 1.0
"""The longest time between two recalls, in seconds."""
EVERY_S = 1.0
"""Seconds between two checks whether there is something to sweep."""


class HoldEnforcer:
    """Recalls leases that a new hold covers, and sweeps jobs under holds. ``run`` is its task; signals say that there
    may be something to do."""

    def __init__(self, context: NodeContext, pool: WorkerPool, *, node_id: int) -> None:
        self._context, self._pool, self._node_id = context, pool, node_id
        self._look, self._woken = asyncio.Event(), asyncio.Event()
        self._heard_of = 0
        """The newest hold that an exchange has reported."""
        self._done_with = 0
        """The newest hold of whose leases all have begun or are handed back."""
        signals = context.signals
        signals.committed.connect(self._look.set)
        signals.woken.connect(self.on_wakeup)
        signals.last_hold.connect(self.note_last_hold)
        signals.round_begins.connect(self._woken.set)  # a hold may have ended

    async def run(self) -> None:
        """Recall leases and sweep jobs under holds, side by side, until the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.get_back())
            group.create_task(every(EVERY_S, self._sweep, "the sweep of holds", wake=self._woken))

    # --- signals ------------------------------------------------------------------

    def on_wakeup(self) -> None:
        """Note a wake-up. An idle node has nothing to hand back, and must not be slowed down by a query; leases that
        are on their way to it are found at the next poll."""
        if any(worker.held for worker in self._pool.workers):
            self._look.set()

    def note_last_hold(self, last_hold: int) -> None:
        """Note the newest hold that an exchange has reported."""
        if last_hold != self._heard_of:
            self._heard_of = last_hold
            self._look.set()

    # --- recall ---------------------------------------------------------------------

    async def get_back(self) -> None:
        """Recall leases whenever there is a new hold, for ever."""
        while True:
            await self._look.wait()
            self._look.clear()
            delays = RetryDelays(AGAIN_S, AGAIN_MAX_S)
            while not await self._all_back():  # noqa: ASYNC110 - what ends it happens in the store
                await asyncio.sleep(delays.next_s())

    async def _all_back(self) -> bool:
        """Recall covered leases that have not begun; return whether there are none left."""
        node_id, after = self._node_id, self._done_with
        try:
            last, fences = await self._context.reader.call(
                lambda store: store.holds.leased_under(node_id, after)
            )
        except StoreUnusable as error:
            log.debug("cannot look for holds: %s", error)
            return False
        remaining = self._recall(fences)
        if not remaining:
            self._done_with = last
        return not remaining

    def _recall(self, fences: Iterable[int]) -> bool:
        """Recall these leases; return whether some have not begun, or are on their way to a worker or back."""
        waiting = set(fences)
        if not waiting:
            return False
        for worker in self._pool.workers:
            waiting.difference_update(line.fence for line in worker.child.running())
            if not waiting.isdisjoint(worker.held):
                worker.child.recall()
        return bool(waiting)

    # --- sweep -------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Sweep in steps, as the leader, until nothing is left. Each step is followed by a pause of a
        multiple of its time, in which others can write."""
        more = self._context.status.is_leader
        while more:
            more, took_s = await self._context.writer.call(self._step)
            if more:
                self._context.signals.claimable()  # jobs that the last step released are found by polling
                await asyncio.sleep(SWEEP_REST_FACTOR * took_s)

    def _step(self, store: Store) -> tuple[bool, float]:
        """Sweep a few jobs; return whether there are more, and how many seconds that took."""
        return store.holds.sweep(now_us=self._context.now_us(), yielding=True), store.holds.took_s
