"""Entering under a name that somebody may have, or have had.

* The predecessor is proven gone: its leases are taken back at once.
* It beats: refused with a sentence; with ``replace`` it is told to drain and this one goes on as
  soon as it does. Both then share the name's slots, which the store counts together.
* Neither: its lease is waited out.

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
from spinney.node.recovery import Here, Watch, take_back
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)

_LOOK_S = 0.2


@asynccontextmanager
async def door(run_dir: Path, name: str) -> AsyncIterator[None]:
    """Alone among the starts under this name on this host."""
    fd = os.open(run_dir / f"door-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(_LOOK_S)
        yield
    finally:
        os.close(fd)


async def clear_the_way(
    db: StoreThread,
    here: Here,
    *,
    name: str,
    replace: bool,
    lease_period_s: float,
    now_us: Callable[[], int],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when a node of this name may join. Raises NodeRefused when another is alive."""
    watch = Watch(lease_period_s)
    asked: set[int] = set()
    while standing := await _standing(db, name):
        dead = {node.id for node in watch.look(standing, monotonic())}
        in_the_way = []
        for node in standing:
            if node.id in dead or here.proven_gone(node):
                await take_back(db, here, node, now_us)
            elif node.state == "active" or not replace:
                in_the_way.append(node)
        for node in in_the_way:
            if replace:
                _ask_to_drain(here, node, asked)
            elif watch.alive(node):
                raise NodeRefused(
                    f"a node named {name!r} is alive on {node.host} (pid {node.pid}); choose another "
                    f"--name, stop it, or take over from it with --replace"
                )
        if not in_the_way:
            return
        await asyncio.sleep(_LOOK_S)


async def _standing(db: StoreThread, name: str) -> Sequence[NodeInfo]:
    """Nodes of this name that have not left, or still own leases."""
    return [node for node in await db.call(lambda store: store.nodes()) if node.name == name]


def _ask_to_drain(here: Here, node: NodeInfo, asked: set[int]) -> None:
    if node.id in asked:
        return
    if not here.local(node):
        raise NodeRefused(
            f"the node named {node.name!r} runs on {node.host}, out of reach of --replace; "
            f"stop it there, or choose another --name"
        )
    log.info("asking node %s (pid %d) to drain", node.name, node.pid)
    # Its lock was found taken just now, so that the pid is its guard's.
    with contextlib.suppress(ProcessLookupError):
        os.kill(node.pid, signal.SIGTERM)
    asked.add(node.id)
