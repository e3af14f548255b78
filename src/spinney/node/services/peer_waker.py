"""Wake other nodes when there is work for them.

A node that makes jobs claimable takes them itself when it can. Others would find the rest (children for more slots than
it has, a stage that it does not serve, jobs that it hands back) by polling; so they are woken, once for all that has
accumulated since the last time. A single node wakes nobody."""

import asyncio
import logging
from pathlib import Path

from spinney.model.errors import StoreUnusable
from spinney.node.signals import NodeSignals
from spinney.node.store_thread import StoreThread
from spinney.store.contract import Store
from spinney.wakeup import wake_all

log = logging.getLogger(__name__)

EVERY_S = 0.02
"""Seconds between two wake-ups: each costs every idle node a query, which may be in vain."""


class PeerWaker:
    """``run`` is its task."""

    def __init__(
        self, reader: StoreThread, run_dir: Path, *, node_id: int, but: str, signals: NodeSignals
    ) -> None:
        """``but``: the node's own socket."""
        self._reader, self._run_dir, self._node_id, self._but = reader, run_dir, node_id, but
        self._due = asyncio.Event()
        signals.work_for_peers.connect(self.request)

    def request(self) -> None:
        """Note that there may be work for other nodes."""
        self._due.set()

    async def run(self) -> None:
        """Wake other nodes, for ever."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._reader.call(self._wake)  # the reader, so that no flush waits for it
            except StoreUnusable as error:
                log.debug("other nodes find by polling what is left for them: %s", error)
            await asyncio.sleep(EVERY_S)

    def _wake(self, store: Store) -> None:
        if any(node.id != self._node_id and node.state == "active" for node in store.nodes()):
            wake_all(store, self._run_dir, but=self._but)
