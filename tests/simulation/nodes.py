"""Hosts and nodes of the simulated world.

A node is the real ``Supervisor`` with all its parts, the real heartbeat, the real page files and lock files, and
a guard that does what the real one does: look every quarter of a second, and at once when the supervisor ends,
whether everything below has to die.
"""

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spinney.model.errors import NodeRefused, StoreUnusable
from spinney.node import instance as instances
from spinney.node.instance import Instance
from spinney.node.lifecycle.deadline import Deadline
from spinney.node.lifecycle.guard import _LOOK_S as GUARD_LOOK_S
from spinney.node.settings import NodeSettings
from spinney.node.supervisor import Supervisor
from spinney.node.workers.shared_page import SharedPage

from .loop import Process
from .workers import SimChild, SimPump


class Host:
    """A machine with a clock of its own, which may be wrong."""

    def __init__(self, world: Any, name: str) -> None:
        self.world, self.name = world, name
        self.run_dir: Path = world.folder / name
        self.run_dir.mkdir()
        self.wrong_us = 0
        self.received_wakeups: dict[str, tuple[Process, Callable[[], None]]] = {}
        self.doors: dict[str, Process] = {}
        self._pids = itertools.count(1000)

    def next_pid(self) -> int:
        return next(self._pids)

    def wall_us(self) -> int:
        return int(1_700_000_000_000_000 + self.world.loop.now * 1e6) + self.wrong_us


class SimNode:
    """One start of a node."""

    def __init__(self, world: Any, host: Host, name: str, *, slots: int, replace: bool = False) -> None:
        self.world, self.host, self.name = world, host, name
        self.number = next(world.node_numbers)
        self.workers: list[Process] = []
        self.pages: list[SharedPage] = []
        """Of all workers that it has had."""
        self.pump: SimPump
        self.ended = False
        """Nothing of it is left."""
        self.unreachable_until = 0.0
        """Until then its calls of the store fail."""
        self.strike_in: int | None = None
        """It dies, or its machine freezes, at the so-manieth gate from now."""
        self.frozen_by_strike_s = 0.0
        self.frozen = False
        self._thawed_until = 0.0
        self.instance = Instance(name=name, pid=host.next_pid(), started_us=host.wall_us())
        self.lease_s: float = world.faults.lease_s()
        self.says_lease: bool = world.faults.says_lease()
        """Whether its row has its lease; nodes of an older version have none there."""
        self._lock_fd = instances.hold(host.run_dir, self.instance)
        self._deadline = Deadline.make()
        self._dying = False
        self.guard = Process(world.loop, f"{self}/guard", self)
        self.supervisor = Process(world.loop, str(self), self)
        self.supervisor.on_death.append(self._supervisor_died)
        self._settings = NodeSettings(
            store="sqlite:////sim.db",
            app="sim:app",
            name=name,
            slots=slots,
            folders=str(world.root),
            run_dir=str(host.run_dir),
            replace=replace,
            lease_period_s=self.lease_s,
            beat_s=0.6,
            poll_s=0.8,
            tick_s=0.3,
            drain_limit_s=2.0,
            lookahead_jobs=4,
            list_size=3,
            batch_records=4,
            idle_end_s=5.0,
        )
        self.supervisor.post(self._start)
        self.guard.post(self._look, delay_s=GUARD_LOOK_S)

    def __str__(self) -> str:
        return f"{self.host.name}/{self.name}#{self.number}"

    @property
    def excused(self) -> bool:
        """Its machine stands still, or has just gone on and its guard has not looked yet."""
        return self.frozen or self.world.loop.now < self._thawed_until

    @property
    def busy(self) -> bool:
        """Whether an attempt runs here."""
        return any(place.node is self for place in self.world.oracle.places())

    # --- the supervisor -------------------------------------------------------------------

    def _start(self) -> None:
        def open_store() -> Any:
            return self.world.open_store(self.supervisor)

        supervisor = Supervisor(
            self._settings,
            self.instance,
            lock_fd=self._lock_fd,
            deadline=self._deadline,
            open_store=open_store,
            open_for_beats=open_store,
            on_dead=self._dead,
            ending=lambda: self._dying,
            make_child=SimChild,
            now_us=self.host.wall_us,
        )
        task = self.world.loop.create_task(supervisor.run())
        task.add_done_callback(self._done)

    def _done(self, task: Any) -> None:
        error = None if task.cancelled() else task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None and not isinstance(error, NodeRefused | StoreUnusable):
            self.world.failed(f"node {self} ended", error)
        self.world.note(self.supervisor, f"ends: {error or 'done'}")
        self.supervisor.die()

    def _dead(self, why: str) -> None:
        """As ``end_everything``: at once, from any thread."""
        self.world.note(self.supervisor, f"ends everything: {why}")
        self._dying = True
        self.world.from_within(self.kill)

    def term(self) -> None:
        handler = self.supervisor.signals.get(signal.SIGTERM)
        if handler is None:
            self.kill()  # it had not begun to listen
        else:
            self.supervisor.post(handler)

    # --- the guard ------------------------------------------------------------------------

    def _look(self) -> None:
        if self._deadline.passed(int(self.world.loop.now * 1e9)):
            self.world.note(self.guard, "the supervisor is late: ending everything")
            self.kill()
        else:
            self.guard.post(self._look, delay_s=GUARD_LOOK_S)

    def _supervisor_died(self) -> None:
        self._dying = True
        self.guard.post(self.kill, delay_s=self.world.draw(0.0, 0.02))

    # --- what may happen to it ------------------------------------------------------------

    def kill(self) -> None:
        """All of it at once."""
        if self.ended:
            return
        self.ended, self._dying = True, True
        self.supervisor.die()
        for worker in list(self.workers):
            worker.die()
        self.guard.die()
        self.world.left(self)
        if not self._deadline.holds:
            instances.clear(self.host.run_dir, self.instance)
        self.close()

    def strike(self) -> None:
        """In the midst of something that it asks of the store."""
        seconds, self.frozen_by_strike_s = self.frozen_by_strike_s, 0.0
        if not seconds:
            self.kill()
            return
        self.stop(whole=True)
        self.world.later(self.go_on, seconds)

    def stop(self, *, whole: bool) -> None:
        """SIGSTOP to the supervisor, or to everything: as a machine that is frozen."""
        self.frozen = self.frozen or whole
        self.supervisor.stopped = True
        for process in [self.guard, *self.workers] if whole else ():
            process.stopped = True

    def go_on(self) -> None:
        self.supervisor.stopped = False
        if not self.frozen:
            return
        self.frozen = False
        for process in self.workers:
            process.stopped = False
        # The guard comes last: so much can a zombie do.
        late_s = self.world.draw(0.0, GUARD_LOOK_S)
        self._thawed_until = self.world.loop.now + late_s + 0.001
        self.world.later(self._thaw_guard, late_s)

    def _thaw_guard(self) -> None:
        self.guard.stopped = self.frozen

    def close(self) -> None:
        """Let go of what the real machine has of it. Idempotent."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            os.close(self._deadline.fd)
            self._lock_fd = -1
        for page in self.pages:
            page.close()
