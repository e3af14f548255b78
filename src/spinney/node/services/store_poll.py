"""Poll the store: wake-ups may be lost, but polling detects every commit."""

import asyncio
import logging

from spinney.model.errors import StoreUnusable
from spinney.node.retry_delays import RetryDelays
from spinney.node.signals import NodeSignals
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)


class StorePoll:
    """``run`` is its task. Calls ``committed`` whenever the store's signature has changed."""

    def __init__(self, reader: StoreThread, *, poll_s: float, signals: NodeSignals) -> None:
        self._reader, self._poll_s, self._signals = reader, poll_s, signals

    async def run(self) -> None:
        """Poll, for ever."""
        last, delays = -1, RetryDelays(self._poll_s)
        while True:
            try:
                signature = await self._reader.call(lambda store: store.signature())
            except StoreUnusable as error:
                log.debug("cannot look at the store: %s", error)
                await asyncio.sleep(delays.next_s())
                continue
            delays.reset()
            if signature != last:
                last = signature
                self._signals.committed()
            await asyncio.sleep(self._poll_s)
