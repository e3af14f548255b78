"""Dead nodes: how they are detected, and how their jobs are taken back.

A node is dead when its heartbeat counter has not changed for *its own* lease period, measured by the monotonic clock of
the observer: wall clocks decide nothing. On the same host and kernel boot no wait is needed when its lock is free,
because then guard, supervisor and workers are proven to be gone.

**Why no live node is declared dead**, whatever leases the nodes of a store have:

* A node writes its lease into its row in the transaction in which it joins, and that lease never changes.
  A new start with another ``--lease``, also with ``--replace``, joins with a row of its own; the old row keeps the old
  lease, as long as the old process may run by it. So there is no time at which a node obeys one lease and is judged by
  another.
* An observer reads counter and lease in one statement, so the lease is that of the process that beats.
* The guard of the node ends everything a lease period, less ``heartbeat.MARGIN``, after the *beginning* of the
  last beat that the store has taken. The observer measures from the time at which it *received* the answer with the new
  counter, to the time at which it *sent* the query whose answer still has the same counter. This interval is within the
  real silence, however long the observer, its machine or the database was suspended.
* A node of an older version has no lease in its row. It is judged by the longest that a node may have
  (``LEASE_MAX_S``).

Before its leases are taken away, all processes on this host that still have the mark of such a node are killed, and the
pages of its workers are read: they tell which attempts had begun. Attempts that had not begun go back uncounted, and
the files of the others are synced (``unsynced_files``). Pages are removed only after the recovery is durable, so that a
crash in between repeats it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from spinney.model.jobs import NodeInfo
from spinney.node import instance as instances
from spinney.node.lifecycle import unsynced_files
from spinney.node.local_host import LocalHost, instance_of
from spinney.node.store_thread import StoreThread
from spinney.node.workers.shared_page import read_running
from spinney.store.external_timeouts import take_back_silent

log = logging.getLogger(__name__)

SYNC_LIMIT_S = 10.0
"""How long the recovery of a dead node of this host waits for the disk of the folders. The leader has other nodes to
watch, and jobs of this node may be able to run on other hosts."""


class LivenessWatch:
    """Remembers when each node's counter last changed, and judges each node by its own lease. It is pure: the time is
    passed in."""

    def __init__(self) -> None:
        self._beats: dict[int, tuple[int, float]] = {}
        self._moved: set[int] = set()

    def look(self, nodes: Iterable[NodeInfo], queried_s: float, answered_s: float) -> list[NodeInfo]:
        """Take in the nodes that the store returned; return those that are dead.

        ``queried_s``, ``answered_s``: the observer's monotonic clock just before it queried the store for these nodes,
        and just after it had the answer (seconds)."""
        dead, beats = [], {}
        for node in nodes:
            beat, since = self._beats.get(node.id, (node.beat, answered_s))
            if beat != node.beat:
                self._moved.add(node.id)
                beat, since = node.beat, answered_s
            beats[node.id] = (beat, since)
            if queried_s - since > node.dead_after_s:
                dead.append(node)
        self._beats = beats
        return dead

    def forget(self) -> None:
        """Start to observe all nodes anew, because none of them could beat meanwhile."""
        self._beats = {}

    def alive(self, node: NodeInfo) -> bool:
        """Return whether this observer has seen its counter change."""
        return node.id in self._moved


async def take_back(
    db: StoreThread, this_host: LocalHost, node: NodeInfo, now_us: Callable[[], int]
) -> list[int]:
    """Take away all leases of a dead node, or of a lost external worker; return their jobs."""
    if node.is_external_worker:
        back = await db.call(lambda store: take_back_silent(store, node, now_us=now_us()))
        log.warning("took back what %s had, which was silent: id=%d jobs=%d", node.name, node.id, len(back))
        return list(back)
    if node.state != "left" and not this_host.proven_gone(node) and not await _declare_dead(db, node, now_us):
        return []
    running: Mapping[int, int] | None = None
    instance = instance_of(node)
    if this_host.local(node):
        killed = await asyncio.to_thread(instances.kill_by_instance, instance)
        if killed:
            log.warning("killed %d processes that node %s had left behind", killed, instance)
        running = await asyncio.to_thread(read_pages, instances.pages_dir(this_host.run_dir, instance))
        await unsynced_files.sync_folders(this_host.folder_root, limit_s=SYNC_LIMIT_S)
    jobs = await db.call(lambda store: store.recover(node.id, running, now_us=now_us()))
    log.warning("recovered dead node=%s id=%d jobs=%d", node.name, node.id, len(jobs))
    if this_host.local(node):
        await asyncio.to_thread(instances.clear, this_host.run_dir, instance)
    return list(jobs)


async def _declare_dead(db: StoreThread, node: NodeInfo, now_us: Callable[[], int]) -> bool:
    """Mark a silent node as left, before any process of it is killed; return False when it has beaten again.

    Where another program has the database locked, nodes continue without beats and let no other process write before
    they have beaten (``Store.keep_out``). So this write fails then, or finds that the counter has changed."""
    return await db.call(
        lambda store: store.update_node(node.id, state="left", beat=node.beat, died=True, now_us=now_us())
    )


def read_pages(folder: Path) -> Mapping[int, int] | None:
    """Return what ran by the pages in this folder: fence to start (wall clock, us). None where there is no such
    folder."""
    running: dict[int, int] = {}
    try:
        for page in folder.iterdir():
            running |= read_running(page)
    except FileNotFoundError:
        return None  # another process may just have taken back the same node's jobs
    return running
