"""Tells other nodes that there is work for them.

A node that makes something claimable takes it itself when it can. What it leaves (children for more slots than it
has, a stage that it does not serve, what it hands back) others would find by polling; so they are woken, once for
whatever has come together since the last time. A node alone tells nobody.
"""

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
"""Between two wake-ups: each costs every idle node a look at the store, which may be in vain."""


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
        """There may be work for others."""
        self._due.set()

    async def run(self) -> None:
        """Tell them, for ever."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._reader.call(self._tell)  # the reader, so that no flush waits for it
            except StoreUnusable as error:
                log.debug("other nodes find by polling what is left for them: %s", error)
            await asyncio.sleep(EVERY_S)

    def _tell(self, store: Store) -> None:
        if any(node.id != self._node_id and node.state == "active" for node in store.nodes()):
            wake_all(store, self._run_dir, but=self._but)
