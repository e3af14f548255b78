"""The progress that running attempts report, written to the store a few times a second at most."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from spinney.model.errors import SpinneyError, StoreUnavailable
from spinney.model.jobs import Lease
from spinney.model.values.texts import without_nul
from spinney.node.store_thread import StoreThread

EVERY_S = 0.2
"""The least time between two writes of an attempt's progress, in seconds."""


class _Report(NamedTuple):
    lease: Lease
    fraction: float
    message: str | None


class ProgressWriter:
    """Writes the first report of an attempt at once, and of those that follow within ``EVERY_S`` the latest after that
    time, so that the store has what an attempt reports before it works for an hour. ``spawn`` starts a task."""

    def __init__(self, writer: StoreThread, spawn: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        self._writer, self._spawn = writer, spawn
        self._deferred: dict[int, _Report | None] = {}
        """The latest report that is to be written, by the fences of attempts whose last write is younger than
        ``EVERY_S``."""

    async def report(self, lease: Lease, fraction: float, message: str | None) -> None:
        """Write the progress of an attempt, or note it for later; the end (1.0) is written at once. Nothing is written
        while the database is away. Raises StaleFence when the attempt has lost its lease."""
        report, fence = _Report(lease, fraction, without_nul(message)), lease.fence
        is_soon = fence in self._deferred
        if is_soon and fraction < 1.0:
            self._deferred[fence] = report
            return
        self._deferred[fence] = None
        if not is_soon:
            self._spawn(self._write_deferred(fence))
        # It is only for display: no attempt waits for the database.
        with suppress(StoreUnavailable):
            await self._write(report)

    async def _write_deferred(self, fence: int) -> None:
        """Write the latest report every ``EVERY_S`` as long as there are new ones."""
        while True:
            await asyncio.sleep(EVERY_S)
            report = self._deferred.pop(fence)
            if report is None:
                return
            self._deferred[fence] = None
            with suppress(SpinneyError):  # the attempt may have ended
                await self._write(report)

    async def _write(self, report: _Report) -> None:
        job_id, fence = report.lease.job_id, report.lease.fence
        await self._writer.call(lambda store: store.progress(job_id, fence, report.fraction, report.message))
