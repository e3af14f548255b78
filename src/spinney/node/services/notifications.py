"""Receive notifications from the store, as soon as another process sends them.

It uses a connection of its own, whose socket the event loop watches. A lost connection is opened again, after delays
that grow and differ from node to node, so that not all nodes reconnect at once. Meanwhile, and where the store has no
notifications, the node polls."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

from spinney.model.errors import StoreUnusable
from spinney.node.retry_delays import RetryDelays
from spinney.store.contract import Listener
from spinney.store.parts import Store

log = logging.getLogger(__name__)

PAUSE_S = 0.5
"""Seconds before the first try to listen again; later pauses are longer, up to ``PAUSE_MAX_S``."""
PAUSE_MAX_S = 30.0
"""The longest pause; a connection that has lasted longer begins with the shortest again."""


class NotificationListener:
    """Wakes the node when a notification of the store arrives. ``run`` is its task."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        *,
        run_dir_id: str,
        on_wake: Callable[[], None],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """``run_dir_id``: a sender with this id has woken this node by a datagram already
        (``wakeup.local.run_dir_id``). ``on_wake`` is called in the event loop."""
        self._open_store, self._run_dir_id, self._on_wake = open_store, run_dir_id, on_wake
        self._pause, self._draw = pause, draw

    async def run(self) -> None:
        """Listen, and reconnect after delays that grow, until the task is cancelled."""
        delays = RetryDelays(PAUSE_S, PAUSE_MAX_S, self._draw)
        while True:
            began = time.monotonic()
            try:
                # In a thread, and not the reader's, so that nothing waits while a server does not answer.
                listener = await asyncio.to_thread(self._listen)
                if listener is None:
                    await asyncio.Event().wait()  # the store has no notifications
                else:
                    await self._receive(listener)
            except StoreUnusable as error:
                log.warning("cannot be woken through the store, and polls: %s", error)
            if time.monotonic() - began > PAUSE_MAX_S:
                delays.reset()
            await self._pause(delays.next_s())

    def _listen(self) -> Listener | None:
        """Open the connection that listens; None: this store has no notifications (SQLite). Raises
        StoreUnusable."""
        with closing(self._open_store()) as store:
            return store.listen()

    async def _receive(self, listener: Listener) -> None:
        """Receive notifications until the connection is lost, which raises StoreUnusable."""
        loop = asyncio.get_running_loop()
        lost: asyncio.Future[None] = loop.create_future()
        fileno = listener.fileno()

        def readable() -> None:
            try:
                senders = listener.poll()
            except StoreUnusable as error:
                loop.remove_reader(fileno)
                lost.set_exception(error)
                return
            if any(sender != self._run_dir_id for sender in senders):
                self._on_wake()

        loop.add_reader(fileno, readable)
        try:
            self._on_wake()  # for notifications before it listened
            await lost
        finally:
            # Else it is removed already, and the descriptor may be another file's by now.
            if lost.cancelled():
                loop.remove_reader(fileno)
            listener.close()
