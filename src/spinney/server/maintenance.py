"""What a server watches: external workers that fell silent, and what would stand still where no node is.

A leader looks after external workers as after other nodes. A server looks after them, too, for it may
be the only one there: external workers need a server, and no node. Each goes by a clock of his own, and whoever says
first that an external worker has been silent for longer than its lease takes back what it had; two who say so do it
once (``spinney.store.external_timeouts``).
Where no node is, nobody promotes what was deferred or scheduled; then the server does that as well.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Self

from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.fleet import UNHEARD_US
from spinney.model.jobs import NodeInfo
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.node.lifecycle.recovery import LivenessWatch
from spinney.store.contract import Store
from spinney.store.external_timeouts import take_back_silent, take_overdue
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

EVERY_S = 1.0
_SWEEPS = 50
"""Steps of housekeeping between two looks, where there is much to catch up with."""


class ServerMaintenance:
    """``async with`` looks until left."""

    def __init__(
        self,
        stores: StorePool,
        *,
        now_us: Callable[[], int],
        wake_nodes: Callable[[Store], None],
        monotonic: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
    ) -> None:
        """``wake_nodes`` wakes nodes when something has become claimable."""
        self._stores, self._now_us, self._wake_nodes = stores, now_us, wake_nodes
        self._monotonic, self._every_s = monotonic, every_s
        self._watch = LivenessWatch()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="watching")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._stores.run(self.look)
            except StoreUnusable as error:
                log.debug("cannot look after external workers: %s", error)
            except SpinneyError as error:
                log.error("%s", error)
            except Exception:
                log.exception("looking after external workers failed, and goes on")
            await asyncio.sleep(self._every_s)

    def look(self, store: Store) -> None:
        """One look, in a thread with this store."""
        asked_s = self._monotonic()
        there = store.nodes()
        changed = self._external_workers(store, [node for node in there if node.is_external_worker], asked_s)
        if not any(self._is_leader(node) for node in there):
            changed = _housekeeping(store, self._now_us()) or changed
        if changed:
            self._wake_nodes(store)

    def _is_leader(self, node: NodeInfo) -> bool:
        """Whether a node is there that might. By wall clocks: when that is wrong, things are done twice, or late."""
        return (
            node.state == "active"
            and not node.is_external_worker
            and self._now_us() - node.seen_us <= UNHEARD_US
        )

    def _external_workers(self, store: Store, external_workers: Sequence[NodeInfo], asked_s: float) -> bool:
        silent = self._watch.look(external_workers, asked_s, self._monotonic())
        for external_worker in silent:
            back = take_back_silent(store, external_worker, now_us=self._now_us())
            log.warning(
                "external worker %s was silent for longer than its lease: %d jobs taken back",
                external_worker.name.removeprefix(EXTERNAL_PREFIX),
                len(back),
            )
        if len(silent) == len(external_workers):
            return bool(silent)
        return take_overdue(store, now_us=self._now_us()) > 0 or bool(silent)


def _housekeeping(store: Store, now_us: int) -> bool:
    """What a leader does about time; whether something has become claimable."""
    changed = False
    for _ in range(_SWEEPS):
        if not store.schedules.tick(now_us=now_us):
            break
        changed = True
    for _ in range(_SWEEPS):
        swept = store.sweep(now_us=now_us)
        changed = changed or swept.due > 0
        if not swept.more:
            break
    for _ in range(_SWEEPS):
        if not store.holds.sweep(now_us=now_us, yielding=True):
            break
        changed = True
    return changed
