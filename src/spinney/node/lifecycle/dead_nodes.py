"""Taking back the work of a node that an operator declares dead, when no other node is there to do it."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from spinney import host
from spinney.model.errors import Refused
from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.recovery import LocalHost, instance_of, take_back
from spinney.node.store_thread import StoreThread
from spinney.store.contract import Store


def require_not_running(here: LocalHost, node: NodeInfo) -> None:
    """Raise Refused when the node runs under this very kernel: its lock is held by something that lives."""
    if not here.local(node):
        return
    if instance_of(node).lock_path(here.run_dir).exists() and not here.proven_gone(node):
        raise Refused(
            f"node {node.name} is alive on this host (its guard's pid is {node.pid}), although it does not beat; "
            f"end it first (kill {node.pid}), then its work can be taken back"
        )


def recover_dead_node(
    open_store: Callable[[], Store], here: LocalHost, node: NodeInfo, now_us: Callable[[], int]
) -> list[int]:
    """As another node would: what it left running on this host is killed, and its pages say what had begun."""

    async def work() -> list[int]:
        async with StoreThread("burying", open_store) as db:
            return await take_back(db, here, node, now_us)

    return asyncio.run(work())


def local_host(run_dir: Path, folder_root: Path) -> LocalHost:
    """Where this process stands."""
    return LocalHost(
        host=socket.gethostname(), boot_id=host.boot_id(), run_dir=run_dir, folder_root=folder_root
    )
