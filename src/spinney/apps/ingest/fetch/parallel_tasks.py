"""Runs several tasks at once in threads, while the caller's callbacks are called in the caller's thread only."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar

from spinney.apps.ingest.fetch.errors import Halted
from spinney.apps.ingest.fetch.rules import Stopped
from spinney.files.thread_pool import thread_pool

T = TypeVar("T")
R = TypeVar("R")

REPORT_EVERY_S = 0.2
"""The interval in which progress is reported, and the caller is asked whether to stop."""

GROW_S = 0.05
"""The interval after which the number of threads is doubled. Threads share the interpreter and are no quicker for small
tasks: a few small files from a near server are fetched before a second thread would help, also on a busy machine."""


class ParallelTasks(Generic[T, R]):
    """Tasks that several threads take one after another."""

    def __init__(
        self,
        tasks: Sequence[T],
        do: Callable[[T, Callable[[int], None]], R],
        *,
        at_once: int,
        halt: threading.Event,
        progress: Callable[[int], None],
        stopped: Callable[[], bool],
    ) -> None:
        """``do(task, count)`` does a task in another thread, and should raise Halted soon after ``halt`` is set;
        ``count`` takes counts for ``progress``. ``at_once``: the most threads. ``progress`` and ``stopped`` are called
        in the caller's thread, every ``REPORT_EVERY_S`` seconds."""
        self._tasks, self._do, self._halt = tasks, do, halt
        self._progress, self._stopped = progress, stopped
        self._most = max(1, min(at_once, len(tasks)))
        # next() of a range's iterator is one step of the interpreter, so that threads may share it.
        self._numbers = iter(range(len(tasks)))
        self._counts: deque[int] = deque()
        """The counts that were not reported yet. They do not wake the caller, since waking it for each chunk would take
        the interpreter from the fetching threads."""
        self._results: dict[int, R] = {}
        self._failures: list[BaseException] = []
        self._futures: list[Future[None]] = []

    def run(self) -> list[R]:
        """Return the results of all tasks, in their order.

        The first failure sets ``halt``, which ends the others soon, and is raised when they have ended. So does
        an exception of a callback. Raises Stopped when ``stopped`` returns True. No thread is at work any more
        when this ends.
        """
        try:
            is_stopped = self._report_progress()
        except BaseException:
            self._halt.set()
            raise
        finally:
            wait(self._futures)
        if self._failures:
            raise self._failures[0]
        if is_stopped:
            raise Stopped(
                "fetching was stopped; the received bytes are kept, so that another start continues after them"
            )
        return [self._results[number] for number in range(len(self._tasks))]

    def _add(self) -> set[Future[None]]:
        """Double the number of threads, up to the number of remaining tasks; return those that were added."""
        running = len(self._futures)
        remaining = len(self._tasks) - len(self._results) - running
        for _ in range(min(self._most - running, max(1, running), remaining)):
            # One by one: where a thread cannot be started, those before it are still waited for.
            self._futures.append(thread_pool().submit(self._work))
        return set(self._futures[running:])

    def _work(self) -> None:
        """Take one task after another until there are none, another thread has failed, or the caller has
        stopped."""
        try:
            for number in self._numbers:
                if self._halt.is_set():
                    return
                self._results[number] = self._do(self._tasks[number], self._counts.append)
        except Halted:
            return
        except BaseException as error:
            self._failures.append(error)
            self._halt.set()
            raise

    def _report_progress(self) -> bool:
        """Report progress to the caller until all threads have ended; return whether the caller stopped them."""
        at_work = self._add()
        is_growing, is_stopped = bool(at_work), False
        reported_s = grown_s = time.monotonic()
        while at_work:
            at_work = wait(at_work, GROW_S if is_growing else REPORT_EVERY_S, FIRST_COMPLETED).not_done
            if is_growing and time.monotonic() - grown_s >= GROW_S and not self._halt.is_set():
                new = self._add()
                at_work |= new
                is_growing = bool(new)  # otherwise there are no tasks for more
                grown_s = time.monotonic()
            if at_work and time.monotonic() - reported_s < REPORT_EVERY_S:
                continue
            if count := sum(self._counts.popleft() for _ in range(len(self._counts))):
                self._progress(count)
            if at_work and not is_stopped and self._stopped():
                is_stopped = True
                self._halt.set()
            reported_s = time.monotonic()
        return is_stopped
