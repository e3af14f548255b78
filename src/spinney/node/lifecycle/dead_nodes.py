"""Take back the jobs of a node that an operator declares dead, when there is no other node to do it."""

import asyncio
import time
from collections.abc import Callable, Collection

from spinney.model.errors import Refused
from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.recovery import LivenessWatch, take_back
from spinney.node.local_host import LocalHost, instance_of
from spinney.node.store_thread import StoreThread
from spinney.store.parts import Store

WATCH_S = 3.0
"""For how many seconds a node is watched before it is believed to be dead. A node that lives beats once a second."""
_LOOK_S = 0.2


def require_not_running(this_host: LocalHost, node: NodeInfo) -> None:
    """Raise Refused when the node runs under this very kernel: a live process holds its lock."""
    if not this_host.local(node):
        return
    if instance_of(node).lock_path(this_host.run_dir).exists() and not this_host.proven_gone(node):
        raise Refused(
            f"node {node.name} is alive on this host (its guard's pid is {node.pid}), even if it does not beat; "
            f"end it first (kill {node.pid}), then its work can be taken back"
        )


def require_silent(store: Store, name: str, gone: Collection[int] = ()) -> None:
    """Raise Refused when a node of this name sends a heartbeat within ``WATCH_S``. ``gone``: ids of nodes that are
    proven to have ended, which need not be watched.

    The time of its last heartbeat, by its host's clock, does not show this: a node whose clock is behind seems to be
    silent for as long as the clocks differ."""
    watch, until_s = LivenessWatch(), time.monotonic() + WATCH_S
    while True:
        queried_s = time.monotonic()
        nodes = [
            node
            for node in store.nodes()
            if node.name == name and node.state != "left" and node.id not in gone
        ]
        watch.look(nodes, queried_s, time.monotonic())
        for node in filter(watch.alive, nodes):
            raise Refused(
                f"node {name} on {node.host} has just sent a heartbeat, so it is not dead, and its clock may be "
                f"wrong; stop it there (its pid is {node.pid})"
            )
        if not nodes or time.monotonic() >= until_s:
            return
        time.sleep(_LOOK_S)


def recover_dead_node(
    open_store: Callable[[], Store], this_host: LocalHost, node: NodeInfo, now_us: Callable[[], int]
) -> list[int]:
    """Take back the node's jobs as another node would, and return their ids: its processes on this host are
    killed, and its pages say which attempts had begun.

    It opens a store in a thread of its own, and must be called where no event loop runs. An empty list: it
    had no leases, or it has beaten again meanwhile and is alive."""

    async def work() -> list[int]:
        async with StoreThread("recovery", open_store) as db:
            return await take_back(db, this_host, node, now_us)

    return asyncio.run(work())
