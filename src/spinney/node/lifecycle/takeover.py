"""Entering under a name that somebody may have, or have had.

* The predecessor is proven gone: its leases are taken back at once.
* It beats: refused with a sentence; with ``replace`` it is told to drain and this one goes on as
  soon as it does. Both then share the name's slots, which the store counts together.
* Neither: its lease is waited out, which is the one in its row, not that of the node which starts.

That the old one can be told is a matter of proof, too: its guard is the process of that number which has its lock
open. One on another host, or in another container (whose numbers mean other processes), is refused while it beats.

Starts under one name on one host pass a door one by one, so that two that start together see each
other.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from spinney.model.errors import NodeRefused
from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.recovery import LivenessWatch, LocalHost, instance_of, take_back
from spinney.node.store_thread import StoreThread
from spinney.store.contract import Store

log = logging.getLogger(__name__)

_LOOK_S = 0.2
_GAP_S = 0.02
"""Between two looks at one that was asked to drain: about so long nobody of the name claims."""


@asynccontextmanager
async def startup_lock(run_dir: Path, name: str) -> AsyncIterator[None]:
    """Alone among the starts under this name on this host."""
    fd = os.open(run_dir / f"start-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(_LOOK_S)
        yield
    finally:
        os.close(fd)


async def wait_for_name(
    db: StoreThread,
    here: LocalHost,
    *,
    name: str,
    replace: bool,
    insist_s: float,
    now_us: Callable[[], int],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when a node of this name may join. Raises NodeRefused when another is alive.

    ``insist_s``: for how long a store that does not answer is asked again."""
    watch, asked, announced = LivenessWatch(), set[int](), set[int]()
    while True:
        asked_s = monotonic()
        if not (standing := await _present(db, name, insist_s)):
            return
        dead = {node.id for node in watch.look(standing, asked_s, monotonic())}
        in_the_way, buried = [], False
        for node in standing:
            if node.id in dead or here.proven_gone(node):
                await take_back(db, here, node, now_us)
                buried = True
            elif node.state == "active" or not replace:
                in_the_way.append(node)
        for node in in_the_way:
            if replace and here.within_reach(node):
                _ask_to_drain(node, asked)
            elif watch.alive(node):
                raise NodeRefused(_refusal(node, replace))
            elif node.id not in announced:
                announced.add(node.id)
                _announce_wait(node)
        if not in_the_way and not buried:
            return
        # One that was to be buried may have beaten just then, and stand there still.
        await asyncio.sleep(_GAP_S if asked or buried else _LOOK_S)


def join_cluster(store: Store, node: NodeInfo, now_us: int) -> NodeInfo:
    """Join; returns the node as the store knows it. Raises NodeRefused when it was declared dead already.

    It may be asked again after a connection was lost in the commit: what that may have left of this very start
    does not stay. Nobody would beat for it, so it would be found dead, and whoever took it back would kill what
    bears its mark: this node."""
    node_id, own = store.join(node, now_us=now_us), None
    for known in store.nodes():
        if known.id == node_id:
            own = known
        elif instance_of(known) == instance_of(node) and known.host == node.host:
            store.update_node(known.id, state="left", now_us=now_us)
    if own is None:
        raise NodeRefused(
            f"the node {node.name!r} stood still for longer than its lease while it started, and was declared dead; "
            f"start it again"
        )
    return own


async def _present(db: StoreThread, name: str, insist_s: float) -> Sequence[NodeInfo]:
    """Nodes of this name that have not left, or still own leases."""
    known = await db.insist(lambda store: store.nodes(), for_s=insist_s)
    return [node for node in known if node.name == name]


def _refusal(node: NodeInfo, replace: bool) -> str:
    if replace:
        return (
            f"the node named {node.name!r} is alive on {node.host} (pid {node.pid} there), out of reach of --replace; "
            f"stop it there, or choose another --name"
        )
    return (
        f"a node named {node.name!r} is alive on {node.host} (pid {node.pid}); choose another "
        f"--name, stop it, or take over from it with --replace"
    )


def _announce_wait(node: NodeInfo) -> None:
    log.info(
        "the node %s of %s (pid %d) has not left and is not proven gone; waiting until it beats, or has been silent "
        "for its lease of %g s. If it is dead: spinney doctor --repair --dead %s",
        node.name,
        node.host,
        node.pid,
        node.dead_after_s,
        node.name,
    )


def _ask_to_drain(node: NodeInfo, asked: set[int]) -> None:
    if node.id in asked:
        return
    log.info("asking node %s (pid %d) to drain", node.name, node.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(node.pid, signal.SIGTERM)
    asked.add(node.id)
