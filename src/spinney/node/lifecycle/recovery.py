"""Nodes that died: how they are noticed, and how their work comes back.

A node is dead when its heartbeat counter has not moved for *its own* lease period, measured by the
monotonic clock of the observer: wall clocks decide nothing. On the same host and kernel boot no wait is
needed once its lock is free, because then guard, supervisor and workers are proven to be gone.

**Why no living node is buried**, whatever leases the nodes of a store have:

* A node writes its lease into its row in the transaction in which it joins, and that lease never changes.
  Whoever starts again with another ``--lease``, also with ``--replace``, joins with a row of its own; the old
  row keeps the old lease, for as long as the old process may run by it. So there is no time at which a node
  obeys one lease and is judged by another.
* An observer reads counter and lease in one statement, so the lease is that of the process that beats.
* The guard of the node ends everything a lease period, less ``heartbeat.MARGIN``, after the *beginning* of the
  last beat that the store has taken. The observer counts from when it had *received* the answer in which the
  counter was new, to when it *asked* the question whose answer still shows the same counter. What lies between
  the two lies within the real silence, however long the observer, its machine or the database stood still.
* A node of an older version has no lease in its row. It is judged by the longest that a node may have
  (``LEASE_MAX_S``).

Before its leases are taken away, everything that still bears the mark of such a node on this host is killed,
and the pages that its workers left behind are read: they tell which attempts had begun. What had not begun goes
back uncounted, and what the others wrote is synced (``unsynced_files``). Pages are removed only after the
recovery is durable, so that a crash in between repeats it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle import instance as instances
from spinney.node.lifecycle import unsynced_files
from spinney.node.lifecycle.instance import Instance
from spinney.node.store_thread import StoreThread
from spinney.node.workers.shared_page import read_running
from spinney.store.external_timeouts import take_back_silent

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """Where this observer stands."""

    host: str
    boot_id: str
    run_dir: Path
    folder_root: Path

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


class LivenessWatch:
    """Remembers when each node's counter was last seen to move, and judges each by its own lease. Pure: time is
    handed in."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, float]] = {}
        self._moved: set[int] = set()

    def look(self, nodes: Iterable[NodeInfo], asked_s: float, answered_s: float) -> list[NodeInfo]:
        """Take in what the store says; returns the nodes that are dead.

        ``asked_s``, ``answered_s``: the observer's monotonic clock just before it asked the store for these nodes,
        and just after it had the answer (seconds)."""
        dead, seen = [], {}
        for node in nodes:
            beat, since = self._seen.get(node.id, (node.beat, answered_s))
            if beat != node.beat:
                self._moved.add(node.id)
                beat, since = node.beat, answered_s
            seen[node.id] = (beat, since)
            if asked_s - since > node.dead_after_s:
                dead.append(node)
        self._seen = seen
        return dead

    def forget(self) -> None:
        """Observe all of them anew: what was seen says nothing, since nobody could beat."""
        self._seen = {}

    def alive(self, node: NodeInfo) -> bool:
        """Whether its counter has moved under this observer's eyes."""
        return node.id in self._moved


async def take_back(db: StoreThread, here: LocalHost, node: NodeInfo, now_us: Callable[[], int]) -> list[int]:
    """Take all leases of a dead node, or a silent external worker, away; returns the jobs concerned."""
    if node.is_external_worker:
        back = await db.call(lambda store: take_back_silent(store, node, now_us=now_us()))
        log.warning("took back what %s had, which was silent: id=%d jobs=%d", node.name, node.id, len(back))
        return list(back)
    if node.state != "left" and not here.proven_gone(node) and not await _declare_dead(db, node, now_us):
        return []
    running: Mapping[int, int] | None = None
    instance = instance_of(node)
    if here.local(node):
        killed = await asyncio.to_thread(instances.kill_by_instance, instance)
        if killed:
            log.warning("killed %d processes that node %s had left behind", killed, instance)
        running = await asyncio.to_thread(read_pages, instances.pages_dir(here.run_dir, instance))
        await unsynced_files.sync_folder_root(here.folder_root)
    known = running
    jobs = await db.call(lambda store: store.recover(node.id, known, now_us=now_us()))
    log.warning("recovered dead node=%s id=%d jobs=%d", node.name, node.id, len(jobs))
    if here.local(node):
        await asyncio.to_thread(instances.clear, here.run_dir, instance)
    return list(jobs)


async def _declare_dead(db: StoreThread, node: NodeInfo, now_us: Callable[[], int]) -> bool:
    """Say that a silent node has left, before anything of it is killed; False when it has beaten again.

    Where another program has the database locked, nodes go on without beats and let nobody write before they have
    beaten (``Store.keep_out``). So this write fails then, or finds that the counter has moved."""
    return await db.call(
        lambda store: store.update_node(node.id, state="left", beat=node.beat, now_us=now_us())
    )


def read_pages(folder: Path) -> Mapping[int, int] | None:
    """What ran under the pages in this folder: fence to start (wall clock, us). None where there is no such folder."""
    running: dict[int, int] = {}
    try:
        for page in folder.iterdir():
            running |= read_running(page)
    except FileNotFoundError:
        return None  # perhaps just now, by another who took the same node's work back
    return running
