"""What one node does for all: promotion of what is due, recovery of dead nodes, tidying up.

**Who.** One node leads; the store says which (``Store.elect_leader``). Every node asks once a second, and when
somebody has committed something; whoever finds that nobody does (the one that did drains, has left, or was declared
dead) does so from then on. That a keeper is dead every node finds out by itself, as of any other node: at once where
its lock proves it, else after the keeper's lease period by its own clock. Two who both believe that they lead
do things twice, and no harm: schedules have one job a nominal time, sweeps and recoveries look again in their
transactions. No claim waits for a keeper: what is pending can be claimed whether there is one or not.

**What.** Schedules and scheduled jobs that are due, submissions and trees that were left half-way (``rounds``); dead
nodes (``watch``); folders of deleted jobs, the trash that a crash left (``tidy``). Each is a task of its own, so that
nothing is late because a big folder is being removed. Who reads ``NodeStatus.is_leader`` does the same with what is his
(``holds``, ``retention``).

**When.** The times at which something becomes due by itself travel with every answer of the store, so that the
keeper wakes for them; the others wake, too, and ask for work.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spinney.folders import folders
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.recovery import LivenessWatch, LocalHost, take_back
from spinney.node.retry_delays import RetryDelays
from spinney.node.services.deleted_folders import DeletedFolders
from spinney.node.signals import NodeSignals, NodeStatus
from spinney.node.store_thread import StoreThread
from spinney.store.external_timeouts import take_overdue

log = logging.getLogger(__name__)

EVERY_S = 1.0
_TICKS_AT_ONCE = 50
"""Steps of schedules between two looks at everything else, when there is much to catch up with."""


class Maintenance:
    """``run`` is its task; ``wake`` and ``due`` bring the next round forward."""

    def __init__(
        self,
        writer: StoreThread,
        reader: StoreThread,
        *,
        node_id: int,
        here: LocalHost,
        folder_root: Path,
        now_us: Callable[[], int],
        signals: NodeSignals,
        status: NodeStatus,
        home: int = 0,
        held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """``held_up``: whether another program has the database locked, so that no node can beat."""
        self._signals, self._status, self._held_up = signals, status, held_up
        self._writer, self._reader = writer, reader
        self._node_id, self._here, self._root = node_id, here, folder_root
        self._now_us = now_us
        self._watch = LivenessWatch()
        self._home = home
        self._deleted = DeletedFolders(writer, reader, folder_root, home=home)
        self._leader: int | None = None
        self._woken, self._taken = asyncio.Event(), asyncio.Event()
        self._due = True
        """It is time for a round, not only for a look at who leads."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us = self._rung_us = 0
        signals.committed.connect(self.changed)
        signals.wake_due.connect(self.due)

    async def run(self) -> None:
        """Do all of it, for ever."""
        async with asyncio.TaskGroup() as group:
            for task in (self.rounds(), self.watch(), self.tidy()):
                group.create_task(task)

    def wake(self) -> None:
        """Look now."""
        self._due = True
        self._woken.set()

    def changed(self) -> None:
        """Somebody has committed something: who leads may have changed, and what becomes due next."""
        self._woken.set()

    def due(self, wake_us: int) -> None:
        """Something becomes due by itself at that time (µs since 1970)."""
        if wake_us <= self._rung_us or (self._alarm is not None and self._alarm_us <= wake_us):
            return  # rung for already, or something earlier will
        if self._alarm is not None:
            self._alarm.cancel()
        wait_s = max(0.0, (wake_us - self._now_us()) / 1e6)
        self._alarm_us = wake_us
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._alarm, self._rung_us = None, self._alarm_us
        self.wake()

    # --- who ------------------------------------------------------------------------------

    async def _ask(self, dead: int | None = None) -> None:
        """Who leads now? This node, if nobody else does."""
        node_id, now_us = self._node_id, self._now_us()
        house = await self._reader.call(lambda store: store.elect_leader(node_id, dead=dead, now_us=now_us))
        before, self._leader = self._leader, house.leader
        self._status.is_leader = self._leader == self._node_id
        if house.wake_us is not None:
            self.due(house.wake_us)
        if self._status.is_leader and before != self._node_id:
            log.info("this node leads from now on")
            self._taken.set()
            self.wake()  # whatever nobody has done meanwhile

    # --- promotion ------------------------------------------------------------------------

    async def rounds(self) -> None:
        """Look what is due, for ever."""
        round_at, delays = 0.0, RetryDelays(EVERY_S, 4 * EVERY_S)
        while True:
            self._woken.clear()
            try:
                if self._due or time.monotonic() >= round_at:
                    rung, self._due = self._due, False
                    round_at = time.monotonic() + EVERY_S
                    self._signals.round_begins()
                    await self._round(rung=rung)
                else:
                    await self._ask()
            except StoreUnusable as error:
                log.debug("housekeeping waits: %s", error)  # what troubles the node is told elsewhere
                self._due = True
                await asyncio.sleep(delays.next_s())
                continue
            delays.reset()
            try:
                async with asyncio.timeout(max(0.0, round_at - time.monotonic())):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _round(self, *, rung: bool) -> None:
        await self._ask()
        if self._status.is_leader:
            await self._tick()
            await self._sweep()
        elif rung:
            self._signals.claimable()  # a lane that slept is claimed from without anybody's promotion

    async def _tick(self) -> None:
        """Make the jobs of schedules that are due. The time of the next one comes with the sweep's answer."""
        for _ in range(_TICKS_AT_ONCE):
            try:
                if not await self._writer.call(lambda store: store.schedules.tick(now_us=self._now_us())):
                    return
            except StoreUnusable:
                raise
            except SpinneyError as error:
                log.error("%s", error)  # of one schedule; there may be others behind it
                continue
            self._promoted()
        self.wake()

    async def _sweep(self) -> None:
        more = True
        while more:
            swept = await self._writer.call(lambda store: store.sweep(now_us=self._now_us()))
            more = swept.more
            if swept.wake_us is not None:
                self.due(swept.wake_us)
            if swept.due:
                self._promoted()
            # Asked even when nothing became due here: a lane that slept is not counted as due.
            self._signals.claimable()

    def _promoted(self) -> None:
        self._signals.claimable()
        self._signals.work_for_peers()

    # --- recovery -------------------------------------------------------------------------

    async def watch(self) -> None:
        """Look after the other nodes, for ever."""
        delays = RetryDelays(EVERY_S, 4 * EVERY_S)
        while True:
            try:
                await self._look_at_nodes()
            except StoreUnusable as error:
                log.debug("cannot look at the other nodes: %s", error)
                await asyncio.sleep(delays.next_s())
            else:
                delays.reset()
                await asyncio.sleep(EVERY_S)

    async def _look_at_nodes(self) -> None:
        asked_s = time.monotonic()
        known = await self._reader.call(lambda store: store.nodes())
        others = [node for node in known if node.id != self._node_id]
        if self._held_up():
            self._watch.forget()
        late = {node.id for node in self._watch.look(others, asked_s, time.monotonic())}
        proven = {node.id for node in others if self._here.proven_gone(node)}
        gone = [node for node in others if node.id in late | proven]
        if self._leader in late | proven:
            await self._ask(dead=self._leader)
        alive = [node for node in known if node.id not in late | proven]
        for node in gone:
            if self._status.is_leader or (node.id in proven and self._stands_in(alive)):
                await take_back(self._writer, self._here, node, self._now_us)
                self._promoted()
        external_workers = self._status.is_leader and any(node.is_external_worker for node in alive)
        if external_workers and await self._writer.call(
            lambda store: take_overdue(store, now_us=self._now_us()) > 0
        ):
            self._promoted()

    def _stands_in(self, alive: Sequence[NodeInfo]) -> bool:
        """Whether this node takes back what is proven gone on its host, because the keeper is elsewhere, where
        nothing is proven and nothing can be killed: of a host's nodes the one that joined first."""
        local = [node for node in alive if self._here.local(node)]
        return (
            not any(node.id == self._leader for node in local) and min(n.id for n in local) == self._node_id
        )

    # --- tidying up -----------------------------------------------------------------------

    async def tidy(self) -> None:
        """Remove what is left of what is deleted, for ever. Where folders are local, each node does so in its own
        home, whoever leads: two of one root do it twice, and no harm."""
        while True:
            if not self._home:
                await self._taken.wait()
                self._taken.clear()
            await asyncio.to_thread(folders.empty_trash, self._root)
            while self._status.is_leader or self._home:
                try:
                    await self._deleted.step()
                except StoreUnusable as error:
                    log.debug("removing folders waits: %s", error)
                await asyncio.sleep(EVERY_S)
