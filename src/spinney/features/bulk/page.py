"""Verbs that take longer than a page should: they go on, and a page shows how far they are.

A run lives in this server. One that ends with it has done what it has done, all of it in the audit, and the same asked
again goes on with the rest (``spinney.features.bulk.service``).
"""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

from spinney.model.errors import SpinneyError
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report

PATIENCE_S = 1.5
"""So long the page waits before it shows how far it is."""
KEPT = 100


class Stopped(SpinneyError):
    """The server ended before all was done; ask for the same again, and it goes on with the rest."""


@dataclass(slots=True, kw_only=True, eq=False)
class BulkRun:
    """A bulk operation that a page has started: it goes on in a task while pages show how far it is."""

    id: str
    by: str
    plan: Plan
    back: str
    """Where its asker came from."""
    stop: threading.Event
    report: Report = field(default_factory=Report)
    error: SpinneyError | None = None
    task: "asyncio.Task[None] | None" = None

    @property
    def done(self) -> bool:
        return self.task is not None and self.task.done()

    def step(self, report: Report, step: BulkStep) -> None:
        """Told by ``Bulk.run`` in its thread. Raises Stopped when the server ends."""
        self.report = report
        if self.stop.is_set():
            raise Stopped(
                "the server stopped before all was done; submit the same request again to do the rest"
            )


class BulkRuns:
    """``async with``: leaving stops them between two steps."""

    def __init__(self) -> None:
        self._runs: dict[str, BulkRun] = {}
        self._stop = threading.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*(run.task for run in self._runs.values() if run.task), return_exceptions=True)

    async def begin(
        self, plan: Plan, by: str, back: str, work: Callable[[BulkRun], Awaitable[Report]]
    ) -> BulkRun:
        """Start it, and wait a moment for its end. Raises what ``work`` raises within that moment."""
        run = BulkRun(id=secrets.token_urlsafe(9), by=by, plan=plan, back=back, stop=self._stop)

        async def doing() -> None:
            try:
                run.report = await work(run)
            except SpinneyError as error:
                run.error = error

        run.task = asyncio.create_task(doing(), name=f"run {run.id}")
        self._keep(run)
        await asyncio.wait({run.task}, timeout=PATIENCE_S)
        if run.task.done():
            self._runs.pop(run.id, None)
            run.task.result()
            if run.error is not None:
                raise run.error
        return run

    def of(self, id_: str, by: str) -> BulkRun | None:
        """Return a run by its id, if this user has started it; None otherwise, or when it is no longer kept."""
        run = self._runs.get(id_)
        return run if run is not None and run.by == by else None

    def _keep(self, run: BulkRun) -> None:
        ended = [id_ for id_, kept in self._runs.items() if kept.done]
        for id_ in ended[: max(0, len(self._runs) - KEPT)]:
            del self._runs[id_]
        self._runs[run.id] = run
