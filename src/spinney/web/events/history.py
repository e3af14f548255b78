"""Throughput and depth of the queues over the last minutes, for charts: as measured since this server
started.

It is kept in memory alone, so that it costs the store one query for each sample, which requests share by the
cache. ``spinney.node.services.throughput_history`` has the longer history, in the store."""

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass

from spinney.model.errors import SpinneyError
from spinney.model.operators.stats import Stats
from spinney.web.background import BackgroundLoop
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

EVERY_S = 10.0
"""The least time between two samples, in seconds."""
SHARE = 50
"""A look is followed by a pause of at least this many times what it took."""
KEPT = 61
"""How many samples are kept: those of ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The throughput and depth of all queues, as measured at one moment."""

    at_us: int
    """When it was measured, in microseconds since 1970 UTC."""
    rate: float
    """Finished attempts a second, over all queues."""
    pending: int
    """How many jobs were pending, over all queues."""
    running: int
    """How many slots were occupied, over all queues."""
    queues: dict[str, tuple[int, int, float]]
    """Pending, occupied slots, and rate of each queue."""


class History(BackgroundLoop):
    """Takes a sample every ``EVERY_S`` seconds while its ``async with`` block lasts; the latest ``KEPT`` are kept."""

    def __init__(self, stores: StorePool) -> None:
        self._stores = stores
        self.samples: deque[Sample] = deque(maxlen=KEPT)

    async def _run(self) -> None:
        """Take samples until cancelled. One that cannot be taken is left out."""
        while True:
            begun = time.monotonic()
            try:
                self.samples.append(
                    sample(await self._stores.run(self._stores.stats_cache.of_all, long=True))
                )
            except SpinneyError as error:
                log.debug("no sample: %s", error)  # requests meet the same error, and report it
            except Exception:
                log.exception("a fault in the sampling")
            took_s = time.monotonic() - begun
            await asyncio.sleep(max(EVERY_S, SHARE * took_s))


def sample(stats: Stats) -> Sample:
    """Return the figures that charts need of these statistics. A rate that is not known counts as 0."""
    return Sample(
        at_us=stats.at_us,
        rate=stats.rate or 0.0,
        pending=sum(q.pending for q in stats.queues),
        running=sum(q.running for q in stats.queues),
        queues={q.queue: (q.pending, q.running, q.rate or 0.0) for q in stats.queues},
    )
