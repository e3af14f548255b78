"""The heartbeat: a thread with a store connection of its own, so that nothing else can delay it.

Each beat that the store has accepted renews the guard's deadline. Observers measure the lease period of this node,
which is in its row (``recovery`` has the whole protocol), from the moment at which they see a new counter, which is
never before the beat began; so the deadline is a lease period less a margin after the *beginning* of the beat, and in
any case everything below the guard is dead before an observer may declare the node dead.

A beat that fails (the disk is full, the database does not answer) renews nothing: the node continues, and the guard
ends it when the time is up; the cause is logged, so that the last lines explain it. Where another program has the
database locked (a ``sqlite3`` shell), no node can beat; the store then lets no other process write before this node has
beaten (``Store.keep_out``). As long as that holds, no observer can find the node dead, so the deadline is renewed
without a beat. When the store refuses a beat, the node has been declared dead, and when the store was replaced by
another file or by an older copy, its leases are in no store any more: everything stops at once."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from spinney.model.errors import SpinneyError, StoreLocked, StoreReplaced
from spinney.model.fleet import Load
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.retry_delays import RetryDelays
from spinney.store.parts import Store

log = logging.getLogger(__name__)

_SAYS_A_PERIOD = 4
"""How often in a lease period the cause of failing beats is logged: the last time shortly before the guard acts."""

MARGIN = 0.2
"""The part of the lease period that the guard has for killing."""


def good_until_ns(began_ns: int, lease_period_s: float) -> int:
    """Return until when (boot clock) a node may continue after a beat, or a join, that began at ``began_ns``."""
    return began_ns + int(lease_period_s * (1 - MARGIN) * 1e9)


class Heartbeat:
    """Beats within ``with Heartbeat(...)``. ``on_dead`` is called, in its thread, when a beat is refused."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        node_id: int,
        *,
        deadline: Deadline,
        lease_period_s: float,
        beat_s: float,
        now_us: Callable[[], int],
        on_dead: Callable[[str], None],
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``trouble`` is called in its thread; each beat stores what it returns."""
        self._trouble = trouble
        self._open_store, self._node_id, self._deadline = open_store, node_id, deadline
        self._lease_period_s = lease_period_s
        self._beat_s, self._now_us, self._on_dead = beat_s, now_us, on_dead
        self._leave = threading.Event()
        self.held_up = False
        """Another program has the database locked, so that no node can beat."""
        self._say_again_ns = 0
        """When (boot clock) the cause of failing beats is logged again; 0: they do not fail."""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._open_store()) as store:
                again = RetryDelays(self._beat_s, self._beat_s)
                while not self._leave.is_set() and self._beat(store):
                    # When a database comes back, its nodes must not all beat at once.
                    self._leave.wait(again.next_s() if self._say_again_ns else self._beat_s)
        except Exception as error:  # noqa: BLE001 - a heartbeat that stops for any reason stops the node
            self._on_dead(f"the heartbeat has stopped: {error}")

    def _beat(self, store: Store) -> bool:
        """Beat once; return whether to go on. A beat that fails for now returns True: the guard's deadline
        decides. False: this node is dead or its store was replaced, and ``on_dead`` was called."""
        began_ns = boot_ns()
        if self._deadline.passed(began_ns):
            # The guard has not checked yet, because the machine was suspended. A beat now would keep a node alive that
            # an observer may just have found dead, and whose leases it is about to take away.
            self._on_dead(
                "this node has not beaten in time; its jobs go on at other nodes, or here when it is started again"
            )
            return False
        try:
            alive = store.beat(
                self._node_id, load=_measure_load(), trouble=self._trouble(), now_us=self._now_us()
            )
        except StoreLocked as error:
            self.held_up = True
            self._failed(error)
            self._go_on_without(store)
            return True
        except StoreReplaced as error:
            self._on_dead(str(error))
            return False
        except (SpinneyError, OSError) as error:
            self._failed(error)
            return True
        self.held_up = False
        if alive:
            self._say_again_ns = 0
            self._deadline.renew(good_until_ns(began_ns, self._lease_period_s))
        else:
            self._on_dead(
                "this node was declared dead; its jobs go on at other nodes, or here when it is started again"
            )
        return alive

    def _go_on_without(self, store: Store) -> None:
        try:
            if store.keep_out(self._node_id):
                self._deadline.renew(good_until_ns(boot_ns(), self._lease_period_s))
        except (SpinneyError, OSError) as error:
            log.debug("other writers cannot be kept out: %s", error)

    def _failed(self, error: Exception) -> None:
        """Log the cause of a failing beat: at once, and ``_SAYS_A_PERIOD`` times in a lease period while it
        lasts."""
        now_ns = boot_ns()
        if now_ns < self._say_again_ns:
            log.debug("beat failed node=%s: %s", self._node_id, error)
            return
        self._say_again_ns = now_ns + int(self._lease_period_s / _SAYS_A_PERIOD * 1e9)
        ending = "it continues" if self.held_up else "the guard ends it unless that is fixed"
        log.error("this node cannot beat, and %s: %s", ending, error)


def _measure_load() -> Load | None:
    """Return the current load of the host, which the kernel measures anyway; None where it does not report it."""
    try:
        memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return Load(
            one_minute=round(os.getloadavg()[0], 2),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=_bytes(memory["MemTotal"]),
            memory_free_bytes=_bytes(memory["MemAvailable"]),
        )
    except (OSError, KeyError, ValueError):
        return None


def _bytes(text: str) -> int:
    """Return the bytes of a value of ``/proc/meminfo``, such as ``  16384 kB``."""
    return int(text.split()[0]) * 1024
