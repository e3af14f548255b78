"""Verbs that take longer than a request: they go on inside the server, and a page shows how far they are.

A run exists only in the memory of this server. What a run has done when the server ends stays done and is in the audit;
the same request, given again, does the rest, except of a rerun (``spinney.features.bulk.service``).
"""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

from spinney.model.errors import SpinneyError
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report

PATIENCE_S = 1.5
"""How many seconds a page waits for the end of a run before it shows how far it is."""
KEPT = 100
"""How many runs are kept: when there are more, those that have ended are dropped, the oldest first."""


class Stopped(SpinneyError):
    """The server ended before all was done."""


@dataclass(slots=True, kw_only=True, eq=False)
class BulkRun:
    """A bulk operation that a page has started: it goes on in a task while pages show how far it is."""

    id: str
    """Random text, by which the address of the page names the run."""
    by: str
    """The name of the caller, who alone may see the run."""
    plan: Plan
    """What the run does, and to which jobs."""
    back: str
    """The address of the page from which the run was started."""
    stop: threading.Event
    """Set when the server ends; all runs of a server share it."""
    report: Report = field(default_factory=Report)
    """What has been done so far."""
    error: SpinneyError | None = None
    """Why the run ended early; None while it goes on, and when it did not."""
    task: "asyncio.Task[None] | None" = None
    """The task that carries the plan out; None until it is created."""

    @property
    def done(self) -> bool:
        """Whether the run has ended, with a result or an error."""
        return self.task is not None and self.task.done()

    def step(self, report: Report, step: BulkStep) -> None:
        """Note the report after a step; ``Bulk.run`` calls this in its thread. Raises Stopped when the server
        ends."""
        self.report = report
        if self.stop.is_set():
            rest = (
                "the same request would also run again what has completed since"
                if self.plan.order.verb is Verb.RERUN
                else "submit the same request again to do the rest"
            )
            raise Stopped(f"the server stopped before all was done; {rest}")


class BulkRuns:
    """The runs that pages of one server have started. Leaving ``async with`` stops each of them between two
    steps.

    It belongs to the event loop; a run itself works in a thread, and looks at ``BulkRun.stop`` after each
    step.
    """

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
        """Start ``work`` as a task, and wait up to ``PATIENCE_S`` seconds for its end. Returns the run, which is done
        or continues. Raises what ``work`` raises within that time; a later error is kept in ``BulkRun.error``."""
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
        """Keep a run, and drop ended ones, the oldest first, when there are more than ``KEPT``. Runs that go
        on are never dropped."""
        ended = [id_ for id_, kept in self._runs.items() if kept.done]
        for id_ in ended[: max(0, len(self._runs) - KEPT)]:
            del self._runs[id_]
        self._runs[run.id] = run
