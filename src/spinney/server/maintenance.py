"""Background maintenance of a server: external workers that are lost, and housekeeping where there is no node.

The leader checks external workers as it checks nodes. A server checks them, too, for there may be no node at all:
external workers need a server only. Each goes by its own clock. The first to see that an external worker has sent no
heartbeat for longer than its lease takes back its jobs; when two see it, the jobs are taken back once
(``spinney.store.external_timeouts``). Where there is no node, nobody else promotes deferred and scheduled jobs, so the
server does that as well, and observes its clock as the leader does (``spinney.model.trusted_clock``)."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from spinney.folders import upload_steps
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.external import bare_name
from spinney.model.fleet import UNHEARD_US
from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.recovery import LivenessWatch
from spinney.store import due_schedules
from spinney.store.external_timeouts import take_back_silent, take_overdue
from spinney.store.parts import Store
from spinney.web.background import BackgroundLoop
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

EVERY_S = 1.0
"""How many seconds pass between two rounds."""
_SWEEPS = 50
"""The most steps of housekeeping in one round, when there is a backlog."""


class ServerMaintenance(BackgroundLoop):
    """Runs maintenance within ``async with``, a round every ``every_s`` seconds. An error ends a round and
    not the loop; what the round had not done is done in the next."""

    def __init__(
        self,
        stores: StorePool,
        *,
        now_us: Callable[[], int],
        wake_nodes: Callable[[Store], None],
        folders: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
    ) -> None:
        """``wake_nodes`` wakes nodes when something has become claimable. ``folders``: the folder root of the jobs, for
        uploads to inboxes that this server or another process has left unfinished."""
        self._stores, self._now_us, self._wake_nodes = stores, now_us, wake_nodes
        self._monotonic, self._every_s = monotonic, every_s
        self._watch = LivenessWatch()
        self._folders, self._uploads_s = folders, -upload_steps.EVERY_S

    async def _run(self) -> None:
        """Run rounds until cancelled, and beside them those of uploads, which a folder root that does not answer may
        stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rounds(self.look))
            group.create_task(self._rounds(self.finish_uploads, disk=True))

    async def _rounds(self, look: Callable[[Store], None], *, disk: bool = False) -> None:
        """Run rounds of one kind until cancelled. While the store does not answer nothing is logged here, since the
        pool of stores logs it."""
        while True:
            try:
                await self._stores.run(look, disk=disk)
            except StoreUnusable as error:
                log.debug("maintenance waits: %s", error)
            except SpinneyError as error:
                log.error("%s", error)
            except Exception:
                log.exception("a round of maintenance failed, and goes on")
            await asyncio.sleep(self._every_s)

    def look(self, store: Store) -> None:
        """Run one round, in a thread with this store: external workers, then the leader's work where no node
        leads. Nodes are woken when anything became claimable. Raises what the store raises."""
        before_s = self._monotonic()
        nodes = store.nodes()
        changed = self._external_workers(store, [node for node in nodes if node.is_external_worker], before_s)
        if not any(self._is_leader(node) for node in nodes):
            changed = _housekeeping(store, self._now_us()) or changed
        if changed:
            self._wake_nodes(store)

    def finish_uploads(self, store: Store) -> None:
        """Finish and remove uploads, now and then, in a thread with this store. Nodes are woken when a job may begin.
        Raises what the store raises."""
        if self._folders is None or self._monotonic() < self._uploads_s + upload_steps.EVERY_S:
            return
        self._uploads_s = self._monotonic()
        if upload_steps.sweep(partial(upload_steps.call, store), self._folders, now_us=self._now_us()):
            self._wake_nodes(store)

    def _is_leader(self, node: NodeInfo) -> bool:
        """Return whether this node may be the leader. This compares wall clocks: when one is wrong, housekeeping is
        done twice, or late."""
        return (
            node.state == "active"
            and not node.is_external_worker
            and self._now_us() - node.seen_us <= UNHEARD_US
        )

    def _external_workers(self, store: Store, external_workers: Sequence[NodeInfo], before_s: float) -> bool:
        """Take back what external workers have that are silent or overdue; return whether anything was taken
        back. ``before_s``: by the monotonic clock, just before the store was queried for them."""
        silent = self._watch.look(external_workers, before_s, self._monotonic())
        for external_worker in silent:
            back = take_back_silent(store, external_worker, now_us=self._now_us())
            log.warning(
                "external worker %s was silent for longer than its lease: %d jobs taken back",
                bare_name(external_worker.name),
                len(back),
            )
        if len(silent) == len(external_workers):
            return bool(silent)
        return take_overdue(store, now_us=self._now_us()) > 0 or bool(silent)


def _housekeeping(store: Store, now_us: int) -> bool:
    """Do the leader's timed work in steps: schedules, scheduled jobs, holds. Return whether something may
    have become claimable. A backlog of more than ``_SWEEPS`` steps goes on in the next round."""
    # Sweeps delete by the trusted time, which would stand still where no node leads.
    store.retention.observe_clock(now_us=now_us)
    changed = False
    for _ in range(_SWEEPS):
        if not due_schedules.tick(store, now_us=now_us):
            break
        changed = True
    for _ in range(_SWEEPS):
        swept = store.sweep(now_us=now_us)
        changed = changed or swept.due > 0
        if not swept.more:
            break
    for _ in range(_SWEEPS):
        if not store.holds.sweep(now_us=now_us, yielding=True):
            break
        changed = True
    return changed
