"""What one node, the leader, does for all: promotion of due jobs, recovery of dead nodes, cleanup.

**Leadership.** One node leads; the store says which (``Store.elect_leader``). Every node asks once a second, and when
another process has committed something; a node that finds no leader (it drains, has left, or was declared dead) becomes
the leader. Every node detects the death of the leader by itself, as of any other node: at once where its lock proves
it, else after the leader's lease period by its own clock. Two nodes that both believe to lead do work twice, without
harm: schedules have one job for each nominal time, sweeps and recoveries check again in their transactions. No claim
waits for a leader: pending jobs can be claimed whether there is one or not.

**Work.** Schedules and scheduled jobs that are due, submissions and trees that were interrupted (``rounds``); dead
nodes (``_look_at_nodes``); folders of deleted jobs, and the trash after a crash (``tidy``). Each is a task of its own,
so that nothing is late because a big folder is being removed. Other services read ``NodeStatus.is_leader`` for their
own part (``holds``, ``retention``).

**Timing.** Every answer of the store has the time at which something becomes due next, so that the leader wakes for it;
the others wake, too, and claim."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from spinney.folders import folders
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import NodeInfo
from spinney.model.values import durations
from spinney.node.context import NodeContext
from spinney.node.lifecycle.clock_watch import ClockWatch
from spinney.node.lifecycle.recovery import LivenessWatch, take_back
from spinney.node.retry_delays import RetryDelays
from spinney.node.services.folders.deleted_folders import DeletedFolders
from spinney.node.services.loop import every
from spinney.store import due_schedules
from spinney.store.external_timeouts import take_overdue

log = logging.getLogger(__name__)

EVERY_S = 1.0
"""Seconds between two rounds, between two looks at other nodes, and between two steps of removing folders."""
_TICKS_AT_ONCE = 50
"""The most steps of schedules in one round, when there is a backlog."""


class Maintenance:
    """Asks who leads and watches the other nodes, and on the leader does what is due for all. ``run`` is its task;
    ``wake`` and ``due`` start the next round earlier."""

    def __init__(
        self,
        context: NodeContext,
        *,
        node_id: int,
        home: int = 0,
        held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """``held_up`` returns whether another program has the database locked, so that no node can beat."""
        self._signals, self._status, self._held_up = context.signals, context.status, held_up
        self._writer, self._reader, self._now_us = context.writer, context.reader, context.now_us
        self._node_id, self._home = node_id, home
        self._host, self._root = context.host, context.folder_root
        self._measurements = context.measurements
        self._watch, self._clocks = LivenessWatch(), ClockWatch()
        self._deleted = DeletedFolders(context, home=home)
        self._leader: int | None = None
        self._woken, self._taken = asyncio.Event(), asyncio.Event()
        self._due = True
        """Whether a whole round is due, not only a check of who leads."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us = self._rung_us = 0
        # The leader may have changed, and what becomes due next.
        self._signals.committed.connect(self._woken.set)
        self._signals.wake_due.connect(self.due)

    async def run(self) -> None:
        """Do the rounds, the watch and the tidying side by side until the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.rounds())
            group.create_task(every(EVERY_S, self._look_at_nodes, "the watch of other nodes"))
            group.create_task(self.tidy())

    def wake(self) -> None:
        """Start a round now, instead of when the next one is due."""
        self._due = True
        self._woken.set()

    def due(self, wake_us: int) -> None:
        """Set an alarm for a round at that time (microseconds since 1970 UTC), when something becomes due."""
        if wake_us <= self._rung_us or (self._alarm is not None and self._alarm_us <= wake_us):
            return  # this alarm has rung already, or an earlier one is set
        if self._alarm is not None:
            self._alarm.cancel()
        wait_s = max(0.0, (wake_us - self._now_us()) / 1e6)
        self._alarm_us = wake_us
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        """Start a round, because the time that ``due`` has set has come."""
        self._alarm, self._rung_us = None, self._alarm_us
        self.wake()

    # --- leadership ------------------------------------------------------------------------------

    async def _ask(self, dead: int | None = None) -> None:
        """Ask the store who leads, and become the leader if no other node is."""
        node_id, now_us = self._node_id, self._now_us()
        leadership = await self._reader.call(
            lambda store: store.elect_leader(node_id, dead=dead, now_us=now_us)
        )
        before, self._leader = self._leader, leadership.leader
        self._status.is_leader = self._leader == self._node_id
        if leadership.wake_us is not None:
            self.due(leadership.wake_us)
        if self._status.is_leader and before != self._node_id:
            log.info("this node leads from now on")
            self._taken.set()
            self.wake()  # for what was not done meanwhile

    # --- promotion ------------------------------------------------------------------------

    async def rounds(self) -> None:
        """Check what is due, for ever."""
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
                log.debug("housekeeping waits: %s", error)  # the cause is logged elsewhere
                self._due = True
                await asyncio.sleep(delays.next_s())
                continue
            delays.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, round_at - time.monotonic())):
                    await self._woken.wait()

    async def _round(self, *, rung: bool) -> None:
        """Ask who leads and, as the leader, do what is due. ``rung``: something has become due or was
        requested; then every node looks for work, since a lane that slept is open again without anybody's
        doing."""
        await self._ask()
        if self._status.is_leader:
            await self._tick()
            await self._sweep()
        elif rung:
            self._signals.claimable()  # a lane that slept can be claimed from without a promotion

    async def _tick(self) -> None:
        """Create the jobs of schedules that are due. The sweep's answer has the time of the next one."""
        for _ in range(_TICKS_AT_ONCE):
            if not await self._writer.call(lambda store: due_schedules.tick(store, now_us=self._now_us())):
                return
            self._promoted()
        self.wake()

    async def _sweep(self) -> None:
        """Sweep in steps until nothing is left: each is one short transaction, so that claims come
        between."""
        more = True
        while more:
            swept = await self._writer.call(lambda store: store.sweep(now_us=self._now_us()))
            more = swept.more
            if swept.wake_us is not None:
                self.due(swept.wake_us)
            if swept.due:
                self._promoted()
            # Also when nothing became due: a lane that slept is not counted as due.
            self._signals.claimable()

    def _promoted(self) -> None:
        """Claim here and wake other nodes, because jobs have become claimable."""
        self._signals.claimable()
        self._signals.work_for_peers()

    # --- recovery -------------------------------------------------------------------------

    async def _look_at_nodes(self) -> None:
        """Find dead nodes and take back their jobs, and overdue attempts of external workers. Every node
        looks, since each goes by its own clock, but only the leader takes back, or who stands in for it on
        this host.

        While no node can beat (``held_up``) the watch begins anew, so that nobody is found dead for that."""
        queried_s = time.monotonic()
        nodes = await self._reader.call(lambda store: store.nodes())
        others = [node for node in nodes if node.id != self._node_id]
        self._compare_clocks(others, queried_s)
        if self._held_up():
            self._watch.forget()
        late = {node.id for node in self._watch.look(others, queried_s, time.monotonic())}
        proven = {node.id for node in others if self._host.proven_gone(node)}
        dead = [node for node in others if node.id in late | proven]
        if self._leader in late | proven:
            await self._ask(dead=self._leader)
        alive = [node for node in nodes if node.id not in late | proven]
        for node in dead:
            if self._status.is_leader or (node.id in proven and self._stands_in(alive)):
                await take_back(self._writer, self._host, node, self._now_us)
                if self._measurements is not None and node.state != "left" and not node.is_external_worker:
                    self._measurements.dead_nodes += 1
                self._promoted()
        external_workers = self._status.is_leader and any(node.is_external_worker for node in alive)
        if external_workers and await self._writer.call(
            lambda store: take_overdue(store, now_us=self._now_us()) > 0
        ):
            self._promoted()

    def _compare_clocks(self, others: Sequence[NodeInfo], queried_s: float) -> None:
        """Log each other node whose host's clock turns out to be wrong, or this host's; only the leader says so."""
        for node, ahead_s in self._clocks.look(others, queried_s, self._now_us(), time.monotonic()):
            if self._status.is_leader:
                log.warning(
                    "the clock of node %s on %s is %s %s this host's; set the clocks of both hosts by NTP, because a "
                    "node whose clock is behind is shown as silent or dead, and retries and schedules go by both",
                    node.name,
                    node.host,
                    durations.rounded(abs(ahead_s)),
                    "ahead of" if ahead_s > 0 else "behind",
                )

    def _stands_in(self, alive: Sequence[NodeInfo]) -> bool:
        """Return whether this node takes back nodes of its host that are proven gone, because the leader is on another
        host, where nothing is proven and nothing can be killed. It is the node of the host that joined first."""
        local = [node for node in alive if self._host.local(node)]
        return (
            not any(node.id == self._leader for node in local) and min(n.id for n in local) == self._node_id
        )

    # --- cleanup -----------------------------------------------------------------------

    async def tidy(self) -> None:
        """Remove the folders of deleted jobs, for ever. Where folders are local, each node does so in its own home,
        whoever leads; two nodes of one root do it twice, without harm."""
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
