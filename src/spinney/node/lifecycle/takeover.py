"""Start under a name that another node may have, or may have had.

A start that is refused leaves the store as it was: the application is registered only when no other node stands in the
way. Otherwise the types of a newer application would be in the store although only the older one runs, and jobs would
wait for stages that no node has.

* The predecessor is proven gone: its leases are taken back at once.
* It beats: this start is refused; with ``replace`` it is asked to drain, and this one continues as soon as it does.
Both then share the name's slots, which the store counts together. It is asked only when the application of this one is
registered and no other node of the name is out of reach, so that it keeps working where this start is refused.
* Neither: this one waits for the end of its lease, which is the one in its row, not that of the node that starts. It
  says so as soon as the other is silent, and not before: a node that lives beats within a second or two.

Only a proven guard gets the signal to drain: it is the process with the old node's pid that has its lock open. When the
old node is on another host, or in another container (whose pids mean other processes), the start is refused while it
beats.

Starts under one name on one host take a lock, one after another, so that two simultaneous starts see each other. One
that has to wait for that says so, because the other may wait for a lease.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from spinney.model.errors import NodeRefused
from spinney.model.fleet import SILENT_US
from spinney.model.jobs import NodeInfo
from spinney.node.context import NodeContext
from spinney.node.lifecycle.recovery import LivenessWatch, take_back
from spinney.node.local_host import instance_of
from spinney.store.parts import Store

log = logging.getLogger(__name__)

_LOOK_S = 0.2
_GAP_S = 0.02
"""Seconds between two checks whether the node that was asked to drain has stopped claiming. Its successor joins at the
check after that, so for about this time no node of the name claims jobs."""


@asynccontextmanager
async def startup_lock(run_dir: Path, name: str) -> AsyncIterator[None]:
    """Hold the lock by which starts under this name on this host exclude each other."""
    path = run_dir / f"start-{name}.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        is_announced = False
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if not is_announced:
                is_announced = True
                log.info(
                    "another start of node %s is under way (it holds %s); waiting until it is over",
                    name,
                    path,
                )
            await asyncio.sleep(_LOOK_S)
        yield
    finally:
        os.close(fd)


async def wait_for_name(
    context: NodeContext,
    register: Callable[[], Awaitable[None]],
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when a node of the name in the settings may join, and its application is registered.

    ``register`` puts the types and schedules of the application into the store. It is called once, and before another
    node is asked to drain. Raises NodeRefused when another node is alive, and what ``register`` raises.
    """
    db, this_host, settings = context.writer, context.host, context.settings
    watch, draining, announced = LivenessWatch(), set[int](), set[int]()
    begun_s, registered = monotonic(), False
    while True:
        queried_s = monotonic()
        nodes = await db.insist(lambda store: store.nodes(), for_s=settings.lease_period_s)
        present = [node for node in nodes if node.name == settings.name]
        dead = {node.id for node in watch.look(present, queried_s, monotonic())}
        in_the_way, taken_back = [], False
        for node in present:
            if node.id in dead or this_host.proven_gone(node):
                await take_back(db, this_host, node, context.now_us)
                taken_back = True
            elif node.state == "active" or not settings.replace:
                in_the_way.append(node)
        # No node is asked to drain while another may make this start be refused.
        waiting = [n for n in in_the_way if not (settings.replace and this_host.within_reach(n))]
        if not registered and not waiting and not taken_back:
            await register()
            registered = True
            continue  # what was read before is old by now
        for node in waiting:
            if watch.alive(node):
                raise NodeRefused(_refusal(node, settings.replace))
            if node.id not in announced and monotonic() - begun_s >= _silent_s(node):
                announced.add(node.id)
                _announce_wait(node)
        for node in in_the_way if registered and not waiting else ():
            _ask_to_drain(node, draining)
        if not in_the_way and not taken_back:
            return
        # A node that was to be taken back may have beaten just then, and may still be present.
        await asyncio.sleep(_GAP_S if draining or taken_back else _LOOK_S)


def join_cluster(store: Store, node: NodeInfo, now_us: int) -> NodeInfo:
    """Join; return the node's row in the store. Raises NodeRefused when it was declared dead already.

    It may be called again after a connection was lost in the commit: a row of the first call is marked as left. No
    heartbeat would be sent for that row, so it would be found dead, and the node that took it back would kill all
    processes with its mark: this node."""
    node_id, own = store.join(node, now_us=now_us), None
    for present in store.nodes():
        if present.id == node_id:
            own = present
        elif instance_of(present) == instance_of(node) and present.host == node.host:
            store.update_node(present.id, state="left", now_us=now_us)
    if own is None:
        raise NodeRefused(
            f"the node {node.name!r} stood still for longer than its lease while it started, and was declared dead; "
            f"start it again"
        )
    return own


def _refusal(node: NodeInfo, replace: bool) -> str:
    if replace:
        return (
            f"the node named {node.name!r} is alive on {node.host} (pid {node.pid} there), out of reach of --replace; "
            f"stop it there, or choose another --name"
        )
    return (
        f"a node named {node.name!r} is alive on {node.host} (pid {node.pid}); choose another "
        f"--name, stop it, or take over from it with 'spinney node --replace'"
    )


def _silent_s(node: NodeInfo) -> float:
    """Return after how many seconds without a heartbeat a node counts as silent, which is before its lease ends."""
    return min(SILENT_US / 1e6, node.dead_after_s / 2)


def _announce_wait(node: NodeInfo) -> None:
    log.info(
        "the node %s of %s (pid %d) has not left, and nothing proves that it has ended; waiting until it sends a "
        "heartbeat, or has been silent for its lease of %g s. If it is dead: spinney doctor --repair --dead %s",
        node.name,
        node.host,
        node.pid,
        node.dead_after_s,
        node.name,
    )


def _ask_to_drain(node: NodeInfo, draining: set[int]) -> None:
    """Send TERM to the guard of a node on this host, once. It drains and leaves, and this start goes on as
    soon as it drains."""
    if node.id in draining:
        return
    log.info("asking node %s (pid %d) to drain", node.name, node.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(node.pid, signal.SIGTERM)
    draining.add(node.id)
