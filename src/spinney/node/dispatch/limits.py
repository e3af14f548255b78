"""Attempts that are ended early: by a time limit, or by a cancel request.

They are checked once a tick. A cancel request first goes to the attempt (``job.cancelled``); an attempt that has not
ended by itself within the stage's grace period is killed: TERM, grace, KILL, its worker with all processes that it
started. At its time limit an attempt of a ``process`` or ``program`` stage is killed at once, because user code cannot
be notified; ``async`` stages are cancelled first.

The same check finds attempts to be shown as running, and leases that wait behind a long attempt (they go back, because
another slot may have time for them; also without the worker's answer). Before a time limit ends an attempt, and when it
has lasted as long as its type sets, its stacks are taken."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from spinney.model.outcomes import Outcome
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.slots import PoolWorker, Task
from spinney.node.dispatch.worker_pool import WorkerPool
from spinney.node.workers import stack_taker
from spinney.node.workers.stack_taker import StackTaker

log = logging.getLogger(__name__)

SHOW_AFTER_S = 0.1
"""Attempts that run longer are marked as running in the store, in seconds."""
STACKS_S = 2.0
"""For how long the cancel of an overdue attempt waits for its stacks, in seconds: those of many attempts of one worker,
which are overdue together, are taken one after another."""


class Limits:
    """Checks running attempts, and remembers those that it has begun to end."""

    def __init__(
        self,
        pool: WorkerPool,
        dispatcher: Dispatcher,
        *,
        stacks: StackTaker,
        show: Callable[[Sequence[int]], object],
        long_s: float,
    ) -> None:
        """``show(fences)`` marks these attempts as running in the store. ``long_s``: an attempt that runs longer blocks
        the leases behind it."""
        self._pool, self._dispatcher, self._show, self._long_s = pool, dispatcher, show, long_s
        self._stacks = stacks
        self._cancel_at: dict[int, float] = {}
        """The time at which an overdue attempt is cancelled although its stacks have not been taken, by its fence."""
        self._force_at: dict[int, float] = {}

    def tick(self) -> None:
        """Check all running attempts once against their time limits and cancel requests, and end those whose time is
        over."""
        show: list[int] = []
        for worker in self._pool.workers:
            if worker.held:
                self._look(worker, show)
        if show:
            self._show(show)

    def cancel_requests(self, requests: Iterable[tuple[int, int]]) -> None:
        """End these attempts (job, fence), whose cancellation was requested."""
        for _, fence in requests:
            for worker in self._pool.workers:
                task = worker.held.get(fence)
                if task is not None and fence not in worker.endings:
                    self._on_cancel_request(worker, task)

    def stack_requests(self, fences: Iterable[int], on_taken: Callable[[int], None]) -> None:
        """Take the stacks of these attempts, which were requested. ``on_taken`` is called with each, at once where its
        attempt has ended."""
        for fence in fences:
            for worker in self._pool.workers:
                task = worker.held.get(fence)
                if task is not None and any(line.fence == fence for line in worker.child.running()):
                    self._take_stacks(worker, task, stack_taker.REQUESTED, on_taken)
                    break
            else:
                on_taken(fence)

    def _take_stacks(
        self, worker: PoolWorker, task: Task, kind: str, on_taken: Callable[[int], None] = lambda fence: None
    ) -> None:
        lease, stage = task.lease, task.lane.stage.name
        self._stacks.begin(worker.child, lease.job_id, stage, lease.fence, kind, on_taken=on_taken)

    def _on_cancel_request(self, worker: PoolWorker, task: Task) -> None:
        """Cancel an attempt. One that has begun is asked to end, and gets until the end of its stage's grace
        period; one that has not begun is recalled, and the store cancels its job when the lease goes back."""
        fence = task.lease.fence
        if not worker.child.concurrent and worker.child.page.fence() != fence:
            worker.child.recall()
            return
        log.info("cancelling job=%d fence=%d", task.lease.job_id, fence)
        worker.endings[fence] = (Outcome.CANCELLED, "cancelled while it ran")
        worker.child.request_cancel(fence)
        self._force_at[fence] = time.monotonic() + task.lane.stage.grace_s

    def _look(self, worker: PoolWorker, show: list[int]) -> None:
        """Check the running attempts of one worker: shown as running, blocking others, stacks due, time limit
        over, grace period over. ``show`` gets the fences that are to be shown as running, so that one call of
        the store does for all workers. Marks of attempts that have ended meanwhile are forgotten."""
        running = set()
        for line in worker.child.running():
            task = worker.held.get(line.fence)
            if task is None:
                continue
            running.add(line.fence)
            elapsed_s = line.elapsed_s
            if elapsed_s >= SHOW_AFTER_S and line.fence not in worker.shown_running:
                worker.shown_running.add(line.fence)
                if not task.lane.orphan:  # those were marked before they began
                    show.append(line.fence)
            if elapsed_s >= self._long_s and task.slot.held > 1:
                self._dispatcher.recall([task.slot])
            stack_after_s = task.lane.stage.stack_after_s
            if (
                stack_after_s is not None
                and elapsed_s >= stack_after_s
                and line.fence not in worker.stacks_taken
            ):
                worker.stacks_taken.add(line.fence)
                self._take_stacks(worker, task, stack_taker.AFTER)
            limit_s = task.lane.stage.timeout_s
            if limit_s is not None and elapsed_s >= limit_s and line.fence not in worker.endings:
                self._overdue(worker, task, limit_s)
            self._cancel_overdue(worker, task)
            self._force(worker, task)
        if len(worker.held) > 1 or not worker.child.ready:
            self._dispatcher.take_back(worker)
        worker.shown_running &= running
        worker.stacks_taken &= running
        for fence in [f for f in worker.endings if f not in worker.held]:
            del worker.endings[fence]
            self._cancel_at.pop(fence, None)
            self._force_at.pop(fence, None)

    def _overdue(self, worker: PoolWorker, task: Task, limit_s: float) -> None:
        """Begin to end an attempt whose time limit is over. As soon as its stacks are taken it is cancelled in a shared
        worker, where it has the grace period to end, and killed in a worker of its own."""
        fence = task.lease.fence
        log.warning("job=%d fence=%d exceeds its time limit of %g s", task.lease.job_id, fence, limit_s)
        worker.endings[fence] = (Outcome.TIMEOUT, f"exceeded its time limit of {limit_s:g} s")
        self._take_stacks(worker, task, stack_taker.TIMEOUT)
        if worker.child.concurrent:
            self._cancel_at[fence] = time.monotonic() + STACKS_S
        else:
            self._force_at[fence] = time.monotonic()

    def _cancel_overdue(self, worker: PoolWorker, task: Task) -> None:
        """Cancel an overdue attempt of a shared worker once its stacks are taken: a task that is cancelled leaves the
        place that they are to show."""
        fence = task.lease.fence
        cancel_at = self._cancel_at.get(fence)
        if cancel_at is None or (time.monotonic() < cancel_at and self._stacks.is_taking(fence)):
            return
        del self._cancel_at[fence]
        worker.child.request_cancel(fence)
        self._force_at[fence] = time.monotonic() + task.lane.stage.grace_s

    def _force(self, worker: PoolWorker, task: Task) -> None:
        """Kill an attempt that has had its time to end, unless its stacks are just being taken: the next tick
        tries again."""
        force_at = self._force_at.get(task.lease.fence)
        is_due = force_at is not None and time.monotonic() >= force_at
        if is_due and not self._stacks.is_taking(task.lease.fence):
            del self._force_at[task.lease.fence]
            self._pool.end_attempt(worker, task.lane.stage.grace_s)
