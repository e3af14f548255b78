"""Wake other nodes when there is work for them.

A node that makes jobs claimable takes them itself when it can. Others would find the rest (children for more slots than
it has, a stage that it does not serve, jobs that it hands back) by polling; so they are woken, once for all that has
accumulated since the last time. A single node wakes nobody."""

import asyncio
from functools import partial

from spinney.node.context import NodeContext
from spinney.node.services.loop import on_wake
from spinney.store.parts import Store
from spinney.wakeup import wake_all

EVERY_S = 0.02
"""Seconds between two wake-ups: each costs every idle node a query, which may be in vain."""


class PeerWaker:
    """Wakes other nodes when this one leaves work for them. ``run`` is its task."""

    def __init__(self, context: NodeContext, *, node_id: int, but: str) -> None:
        """``but``: the path of the node's own socket, which is not woken."""
        self._context, self._node_id, self._but = context, node_id, but
        self._due = asyncio.Event()
        context.signals.work_for_peers.connect(self._due.set)

    async def run(self) -> None:
        """Wake other nodes, at most once every ``EVERY_S`` seconds, until the task is cancelled."""
        # By the reader, so that no flush waits for it.
        wake_peers = partial(self._context.reader.call, self._wake)
        await on_wake(self._due, wake_peers, "waking other nodes", pause_s=EVERY_S)

    def _wake(self, store: Store) -> None:
        """Wake the nodes of the store, if there is an active one besides this. It runs in the reader's
        thread."""
        if any(node.id != self._node_id and node.state == "active" for node in store.nodes()):
            wake_all(store, self._context.host.run_dir, but=self._but)
