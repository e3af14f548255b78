"""Nodes that died: how they are noticed, and how their work comes back.

A node is dead when its heartbeat counter has not moved for a lease period of the *observer's*
monotonic clock: wall clocks decide nothing. On the same host and kernel boot no wait is needed once
its lock is free, because then guard, supervisor and workers are proven to be gone.

Before its leases are taken away, everything that still bears the mark of such a node on this host
is killed, and the pages that its workers left behind are read: they tell which attempts had begun.
What had not begun goes back uncounted. Pages are removed only after the recovery is durable, so
that a crash in between repeats it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinney.model.jobs import NodeInfo
from spinney.node import instance as instances
from spinney.node.executors.page import read_running
from spinney.node.instance import Instance
from spinney.node.store_thread import StoreThread
from spinney.stores.minding import lapsed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where this observer stands."""

    host: str
    boot_id: str
    run_dir: Path

    def local(self, node: NodeInfo) -> bool:
        """Whether that node runs, or ran, under this very kernel."""
        return node.host == self.host and node.boot_id == self.boot_id

    def proven_gone(self, node: NodeInfo) -> bool:
        return self.local(node) and instances.gone(self.run_dir, instance_of(node))

    def within_reach(self, node: NodeInfo) -> bool:
        """Whether the process of its number is its guard: on another host, or in another container, it is not."""
        return self.local(node) and instances.guarded(self.run_dir, instance_of(node))


def instance_of(node: NodeInfo) -> Instance:
    return Instance(name=node.name, pid=node.pid, started_us=node.started_us)


class Watch:
    """Remembers when each node's counter was last seen to move. Pure: time is handed in."""

    def __init__(self, lease_period_s: float) -> None:
        """``lease_period_s``: of nodes; parties bring their own."""
        self._lease_period_s = lease_period_s
        self._seen: dict[int, tuple[int, float]] = {}
        self._moved: set[int] = set()

    def look(self, nodes: Iterable[NodeInfo], now_s: float) -> list[NodeInfo]:
        """Take in what the store says now; returns the nodes that are dead."""
        dead, seen = [], {}
        for node in nodes:
            beat, since = self._seen.get(node.id, (node.beat, now_s))
            if beat != node.beat:
                self._moved.add(node.id)
                beat, since = node.beat, now_s
            seen[node.id] = (beat, since)
            if now_s - since > (self._lease_period_s if node.lease_s is None else node.lease_s):
                dead.append(node)
        self._seen = seen
        return dead

    def alive(self, node: NodeInfo) -> bool:
        """Whether its counter has moved under this observer's eyes."""
        return node.id in self._moved


async def take_back(db: StoreThread, here: Here, node: NodeInfo, now_us: Callable[[], int]) -> list[int]:
    """Take all leases of a dead node, or a silent party, away; returns the jobs concerned."""
    if node.is_party:
        back = await db.call(lambda store: lapsed(store, node, now_us=now_us()))
        log.warning("took back what %s had, which was silent: id=%d jobs=%d", node.name, node.id, len(back))
        return list(back)
    running: Mapping[int, int] | None = None
    instance = instance_of(node)
    if here.local(node):
        killed = await asyncio.to_thread(instances.kill_marked, instance)
        if killed:
            log.warning("killed %d processes that node %s had left behind", killed, instance)
        running = await asyncio.to_thread(_read_pages, instances.pages_dir(here.run_dir, instance))
    known = running
    jobs = await db.call(lambda store: store.recover(node.id, known, now_us=now_us()))
    log.warning("recovered dead node=%s id=%d jobs=%d", node.name, node.id, len(jobs))
    if here.local(node):
        await asyncio.to_thread(instances.clear, here.run_dir, instance)
    return list(jobs)


def _read_pages(folder: Path) -> Mapping[int, int] | None:
    if not folder.is_dir():
        return None
    running: dict[int, int] = {}
    for page in folder.iterdir():
        running |= read_running(page)
    return running
