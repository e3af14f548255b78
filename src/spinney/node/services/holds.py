"""What a node does about holds: it gets back what has not begun, and sweeps what nobody else sweeps.

**Getting back.** From the moment a hold is laid nothing that it covers is claimed. What was claimed before and
has not begun stands in workers' lists: the store says which leases that are (``Holds.leased_under``), their
workers are asked for what they have not begun, and handed back it is held. That a hold was laid is heard from
a wake-up, from the answer to an exchange, and behind both from the poll. A lease that is just on its way to a
worker is not there to be asked back, so the node looks again until every lease concerned has begun or is gone.

**Sweeping.** Whoever lays or lifts a hold sweeps; what he leaves behind, because he was killed or because it
ended by itself, is swept by the leader, with pauses in which others write.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from spinney.model.errors import StoreUnusable
from spinney.model.settings.holds import SWEEP_REST_FACTOR
from spinney.node.dispatch.worker_pool import Worker
from spinney.node.retry_delays import RetryDelays
from spinney.node.signals import NodeSignals, NodeStatus
from spinney.node.store_thread import StoreThread
from spinney.store.contract import Store

log = logging.getLogger(__name__)

AGAIN_S = 0.01
"""Between two looks while something has not come back; grows while nothing changes."""
AGAIN_MAX_S = 1.0
EVERY_S = 1.0
"""Between two looks whether there is something to sweep."""


class WorkerPool(Protocol):
    """Who has the workers."""

    @property
    def workers(self) -> Sequence[Worker]: ...


class HoldEnforcer:
    """``run`` is its task; signals say that there may be something to do."""

    def __init__(
        self,
        writer: StoreThread,
        reader: StoreThread,
        pool: WorkerPool,
        *,
        node_id: int,
        now_us: Callable[[], int],
        signals: NodeSignals,
        status: NodeStatus,
    ) -> None:
        self._writer, self._reader, self._pool, self._node_id = writer, reader, pool, node_id
        self._now_us, self._signals, self._status = now_us, signals, status
        self._look, self._woken = asyncio.Event(), asyncio.Event()
        self._heard_of = 0
        """The last hold that an exchange told of."""
        self._done_with = 0
        """The last hold of whose leases none is left that has not begun."""
        signals.committed.connect(self.changed)
        signals.woken.connect(self.on_wakeup)
        signals.last_hold.connect(self.note_last_hold)
        signals.round_begins.connect(self.wake)

    async def run(self) -> None:
        """Get back and sweep, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.get_back())
            group.create_task(self.sweep())

    # --- what others say ------------------------------------------------------------------

    def changed(self) -> None:
        """Somebody has committed something."""
        self._look.set()

    def on_wakeup(self) -> None:
        """The same, at once. An idle node has nothing to give back, and must not be slowed down by a look;
        what may be on its way to it, the poll behind the wake-ups finds."""
        if any(worker.held for worker in self._pool.workers):
            self._look.set()

    def note_last_hold(self, last_hold: int) -> None:
        """An exchange says that this is the last hold that was laid."""
        if last_hold != self._heard_of:
            self._heard_of = last_hold
            self._look.set()

    def wake(self) -> None:
        """A hold may have come to its end."""
        self._woken.set()

    # --- getting back ---------------------------------------------------------------------

    async def get_back(self) -> None:
        """Whenever a hold was laid, for ever."""
        while True:
            await self._look.wait()
            self._look.clear()
            delays = RetryDelays(AGAIN_S, AGAIN_MAX_S)
            while not await self._all_back():  # noqa: ASYNC110 - what ends it happens in the store
                await asyncio.sleep(delays.next_s())

    async def _all_back(self) -> bool:
        """Ask for what is covered and has not begun; whether there is no more of it."""
        node_id, after = self._node_id, self._done_with
        try:
            last, fences = await self._reader.call(lambda store: store.holds.leased_under(node_id, after))
        except StoreUnusable as error:
            log.debug("cannot look for holds: %s", error)
            return False
        left = self._recall(fences)
        if not left:
            self._done_with = last
        return not left

    def _recall(self, fences: Iterable[int]) -> bool:
        """Whether something has not begun, or is not where it could be seen (on its way here, or back)."""
        waiting = set(fences)
        if not waiting:
            return False
        for worker in self._pool.workers:
            waiting.difference_update(line.fence for line in worker.child.running())
            if not waiting.isdisjoint(worker.held):
                worker.child.recall()
        return bool(waiting)

    # --- sweeping -------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Whenever something is left to be swept, for ever."""
        delays = RetryDelays(EVERY_S, 4 * EVERY_S)
        while True:
            self._woken.clear()
            try:
                await self._sweep()
            except StoreUnusable as error:
                log.debug("the sweep of holds waits: %s", error)
                await asyncio.sleep(delays.next_s())
                continue
            delays.reset()
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _sweep(self) -> None:
        more = self._status.is_leader
        while more:
            more, took_s = await self._writer.call(self._step)
            if more:
                self._signals.claimable()  # what the last step let go is found by the poll
                await asyncio.sleep(SWEEP_REST_FACTOR * took_s)

    def _step(self, store: Store) -> tuple[bool, float]:
        return store.holds.sweep(now_us=self._now_us(), yielding=True), store.holds.took_s
