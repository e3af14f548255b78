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


def run_parallel(
    tasks: Sequence[T],
    do: Callable[[T, Callable[[int], None]], R],
    *,
    at_once: int,
    halt: threading.Event,
    progress: Callable[[int], None],
    stopped: Callable[[], bool],
) -> list[R]:
    """Return the results of ``do(task, count)`` for all tasks, in their order; ``count`` takes counts for
    ``progress``.

    ``at_once``: the most threads. ``progress`` and ``stopped`` are called in the caller's thread, every
    ``REPORT_EVERY_S`` seconds; ``do`` in others, and it should raise Halted soon after ``halt`` is set.

    The first failure sets ``halt``, which ends the others soon, and is raised when they have ended. So does
    an exception of a callback. Raises Stopped when ``stopped`` returns True. No thread is at work any more
    when this ends.
    """
    threads = _Threads(tasks, do, at_once, halt)
    try:
        is_stopped = _report_progress(threads, halt, progress, stopped)
    except BaseException:
        halt.set()
        raise
    finally:
        wait(threads.futures)
    if threads.failures:
        raise threads.failures[0]
    if is_stopped:
        raise Stopped(
            "fetching was stopped; the received bytes are kept, so that another start continues after them"
        )
    return [threads.results[number] for number in range(len(tasks))]


class _Threads(Generic[T, R]):
    """The threads of one call, and what they have done."""

    def __init__(
        self,
        tasks: Sequence[T],
        do: Callable[[T, Callable[[int], None]], R],
        at_once: int,
        halt: threading.Event,
    ) -> None:
        self._tasks, self._do, self._halt = tasks, do, halt
        self._most = max(1, min(at_once, len(tasks)))
        # next() of a range's iterator is one step of the interpreter, so that threads may share it.
        self._numbers = iter(range(len(tasks)))
        self.counts: deque[int] = deque()
        """The counts that were not reported yet. They do not wake the caller, since waking it for each chunk would take
        the interpreter from the fetching threads."""
        self.results: dict[int, R] = {}
        self.failures: list[BaseException] = []
        self.futures: list[Future[None]] = []

    def add(self, running: int) -> set[Future[None]]:
        """Double the number of threads, up to the number of remaining tasks; return those that were added."""
        remaining = len(self._tasks) - len(self.results) - running
        new = max(0, min(self._most - running, max(1, running), remaining))
        added = set()
        for _ in range(new):
            future = thread_pool().submit(self._work)
            # One by one: where a thread cannot be started, those before it are still waited for.
            self.futures.append(future)
            added.add(future)
        return added

    def _work(self) -> None:
        """Take one task after another until there are none, another thread has failed, or the caller has
        stopped."""
        try:
            for number in self._numbers:
                if self._halt.is_set():
                    return
                self.results[number] = self._do(self._tasks[number], self.counts.append)
        except Halted:
            return
        except BaseException as error:
            self.failures.append(error)
            self._halt.set()
            raise


def _report_progress(
    threads: _Threads[T, R],
    halt: threading.Event,
    progress: Callable[[int], None],
    stopped: Callable[[], bool],
) -> bool:
    """Report progress to the caller until all threads have ended; return whether the caller stopped them."""
    at_work = threads.add(0)
    growing, is_stopped = len(at_work), False
    reported_s = grown_s = time.monotonic()
    while at_work:
        at_work = wait(at_work, GROW_S if growing else REPORT_EVERY_S, FIRST_COMPLETED).not_done
        if growing and time.monotonic() - grown_s >= GROW_S and not halt.is_set():
            new = threads.add(growing)
            at_work |= new
            growing = growing + len(new) if new else 0  # there are no tasks for more
            grown_s = time.monotonic()
        if at_work and time.monotonic() - reported_s < REPORT_EVERY_S:
            continue
        if count := sum(threads.counts.popleft() for _ in range(len(threads.counts))):
            progress(count)
        if at_work and not is_stopped and stopped():
            is_stopped = True
            halt.set()
        reported_s = time.monotonic()
    return is_stopped
