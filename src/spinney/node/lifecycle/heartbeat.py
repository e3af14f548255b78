"""The heartbeat: a thread and a store connection of its own, which nothing else can hold up.

Each beat that the store has taken renews the guard's deadline. Observers count the lease period of this
node, which is in its row (``recovery`` has the whole protocol), from the moment at which they see the
counter move, which is never before the beat began; so the deadline lies a margin short of a lease period
behind the *beginning* of the beat, and whatever happens, everything below the guard is dead before
anybody may call the node dead.

A beat that fails (the disk is full, the database is away) renews nothing: the node goes on, and
the guard ends it when the time is up; why it fails is logged, so that the last lines before tell.
Where another program has the database locked (a ``sqlite3`` shell), nobody can beat; the store is asked
to let nobody write before this node has beaten (``Store.keep_out``). As long as it does so, nobody can
find the node dead, so that the deadline is renewed without a beat.
A beat that the store refuses means that the node has been declared dead: everything stops at once.
"""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from spinney.model.errors import SpinneyError, StoreLocked
from spinney.model.fleet import Load
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.lifecycle.load import measure_load
from spinney.node.retry_delays import RetryDelays
from spinney.store.contract import Store

log = logging.getLogger(__name__)

_SAYS_A_PERIOD = 4
"""How often in a lease period it is said why beats fail: the last time shortly before the guard acts."""

MARGIN = 0.2
"""The part of the lease period that the guard has for killing."""


def good_until_ns(began_ns: int, lease_period_s: float) -> int:
    """How long (boot clock) a node may go on after a beat, or its joining, that began then."""
    return began_ns + int(lease_period_s * (1 - MARGIN) * 1e9)


class Heartbeat:
    """``with Heartbeat(...)``: beats until left. ``on_dead`` is called, in its thread, when refused."""

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
        load: Callable[[], Load | None] = measure_load,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``load`` and ``health``: what is told with each beat; asked in its thread."""
        self._load, self._trouble = load, trouble
        self._open_store, self._node_id, self._deadline = open_store, node_id, deadline
        self._lease_period_s = lease_period_s
        self._beat_s, self._now_us, self._on_dead = beat_s, now_us, on_dead
        self._leave = threading.Event()
        self.held_up = False
        """Another program has the database locked, so that nobody can beat."""
        self._say_again_ns = 0
        """When (boot clock) it is to be said again why beats fail; 0: they do not."""

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
            store = self._open_store()
            try:
                again = RetryDelays(self._beat_s, self._beat_s)
                while not self._leave.is_set() and self._beat(store):
                    # All nodes of a database that comes back must not come at once.
                    self._leave.wait(again.next_s() if self._say_again_ns else self._beat_s)
            finally:
                store.close()
        except Exception as error:  # noqa: BLE001 - a heart that stops for any reason stops the node
            self._on_dead(f"the heartbeat has stopped: {error}")

    def _beat(self, store: Store) -> bool:
        began_ns = boot_ns()
        if self._deadline.passed(began_ns):
            # The guard has not looked yet: the machine has stood still. A beat now would keep alive a node that
            # somebody may just have found dead, and whose leases he is about to take away.
            self._on_dead("this node has not beaten in time; its work goes on elsewhere")
            return False
        try:
            alive = store.beat(
                self._node_id, load=self._load(), trouble=self._trouble(), now_us=self._now_us()
            )
        except StoreLocked as error:
            self.held_up = True
            self._failed(error)
            self._go_on_without(store)
            return True
        except (SpinneyError, OSError) as error:
            self._failed(error)
            return True
        self.held_up = False
        if alive:
            self._say_again_ns = 0
            self._deadline.renew(good_until_ns(began_ns, self._lease_period_s))
        else:
            self._on_dead("another node has declared this one dead; its work goes on elsewhere")
        return alive

    def _go_on_without(self, store: Store) -> None:
        try:
            if store.keep_out(self._node_id):
                self._deadline.renew(good_until_ns(boot_ns(), self._lease_period_s))
        except (SpinneyError, OSError) as error:
            log.debug("nobody can be kept out: %s", error)

    def _failed(self, error: Exception) -> None:
        now_ns = boot_ns()
        if now_ns < self._say_again_ns:
            log.debug("beat failed node=%s: %s", self._node_id, error)
            return
        self._say_again_ns = now_ns + int(self._lease_period_s / _SAYS_A_PERIOD * 1e9)
        ending = "it goes on" if self.held_up else "the guard ends it unless that is mended"
        log.error("this node cannot beat, and %s: %s", ending, error)
