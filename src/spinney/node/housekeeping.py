"""What somebody has to do now and then: any node may, twice or never for a while.

Schedules that are due (``Store.schedules``); scheduled jobs that are due, submissions and trees that were
left half-way (``Store.sweep``); dead nodes; folders of deleted jobs; the trash that a crash left.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.node import folders
from spinney.node.deleted_folders import DeletedFolders
from spinney.node.recovery import Here, Watch, take_back
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)

EVERY_S = 1.0
_TICKS_AT_ONCE = 50
"""Steps of schedules between two looks at everything else, when there is much to catch up with."""


class Housekeeping:
    """``run`` is its task; ``poke`` and ``due`` bring the next round forward."""

    def __init__(
        self,
        writer: StoreThread,
        reader: StoreThread,
        *,
        node_id: int,
        here: Here,
        folder_root: Path,
        lease_period_s: float,
        now_us: Callable[[], int],
        on_claimable: Callable[[], None],
        on_round: Callable[[], None],
    ) -> None:
        """``on_claimable`` is called when something may have become claimable, ``on_round`` whenever it is time
        to look what is due."""
        self._writer, self._reader = writer, reader
        self._node_id, self._here, self._root = node_id, here, folder_root
        self._now_us, self._on_claimable, self._on_round = now_us, on_claimable, on_round
        self._watch = Watch(lease_period_s)
        self._deleted = DeletedFolders(writer, reader, folder_root)
        self._poked = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us = self._rung_us = 0

    def poke(self) -> None:
        """Look now."""
        self._poked.set()

    def due(self, wake_us: int) -> None:
        """Something becomes due by itself at that time (µs since 1970)."""
        if wake_us <= self._rung_us or (self._alarm is not None and self._alarm_us <= wake_us):
            return  # rung for already, or something earlier will
        if self._alarm is not None:
            self._alarm.cancel()
        wait_s = max(0.0, (wake_us - self._now_us()) / 1e6)
        self._alarm_us = wake_us
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._alarm, self._rung_us = None, self._alarm_us
        self.poke()

    async def run(self) -> None:
        """Rounds, for ever."""
        await asyncio.to_thread(folders.empty_trash, self._root)
        nodes_at = 0.0
        while True:
            self._poked.clear()
            self._on_round()
            try:
                await self._tick()
                await self._sweep()
                if time.monotonic() >= nodes_at:
                    nodes_at = time.monotonic() + EVERY_S
                    await self._bury_nodes()
                    await self._deleted.step()
            except StoreUnusable as error:
                log.error("housekeeping waits: %s", error)
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._poked.wait()
            except TimeoutError:
                continue

    async def _tick(self) -> None:
        """Make the jobs of schedules that are due. The time of the next one comes with the sweep's answer."""
        for _ in range(_TICKS_AT_ONCE):
            try:
                if not await self._writer.call(lambda store: store.schedules.tick(now_us=self._now_us())):
                    return
            except StoreUnusable:
                raise
            except SpinneyError as error:
                log.error("%s", error)  # of one schedule; there may be others behind it
                continue
            self._on_claimable()
        self.poke()

    async def _sweep(self) -> None:
        more = True
        while more:
            swept = await self._writer.call(lambda store: store.sweep(now_us=self._now_us()))
            more = swept.more
            if swept.wake_us is not None:
                self.due(swept.wake_us)
            # Asked even when nothing became due here: a lane that slept is not counted as due.
            self._on_claimable()

    async def _bury_nodes(self) -> None:
        known = await self._reader.call(lambda store: store.nodes())
        others = [node for node in known if node.id != self._node_id]
        dead = {node.id for node in self._watch.look(others, time.monotonic())}
        for node in others:
            if node.id in dead or self._here.proven_gone(node):
                await take_back(self._writer, self._here, node, self._now_us)
                self._on_claimable()
