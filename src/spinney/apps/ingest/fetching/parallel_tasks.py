"""Runs several tasks at once in threads, while the caller's callbacks are called in the caller's thread only."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from spinney.apps.ingest.fetching.errors import Halted
from spinney.apps.ingest.fetching.rules import Stopped
from spinney.files.thread_pool import thread_pool

T = TypeVar("T")
R = TypeVar("R")

REPORT_EVERY_S = 0.2
"""The interval in which progress is reported, and the caller is asked whether to stop."""

GROW_S = 0.05
"""The interval after which the number of threads is doubled. Threads share the interpreter and are no quicker for small
tasks: a few small files from a near server are fetched before a second thread would help, also on a busy machine."""

EndedThreads = queue.SimpleQueue[None]
"""Gets an item for each thread that has ended. Counts are passed elsewhere, since waking the caller for each chunk
would take the interpreter from the fetching threads."""


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

    The first failure sets ``halt``, which ends the others soon, and is raised when they have ended. Raises
    Stopped when ``stopped`` returns True.
    """
    ended: EndedThreads = queue.SimpleQueue()
    counts: deque[int] = deque()
    results: dict[int, R] = {}
    failures: list[BaseException] = []
    at_work: list[Future[None]] = []
    numbers = _shared(len(tasks))

    def work() -> None:
        try:
            for number in numbers:
                if halt.is_set():
                    return
                results[number] = do(tasks[number], counts.append)
        except Halted:
            return
        except BaseException as error:
            failures.append(error)
            halt.set()
            raise

    most = max(1, min(at_once, len(tasks)))

    def add_threads(running: int) -> int:
        """Double the number of threads, up to the number of remaining tasks; return how many were added."""
        remaining = len(tasks) - len(results) - running
        new = max(0, min(most - running, max(1, running), remaining))
        for _ in range(new):
            future = thread_pool().submit(work)
            at_work.append(future)
            future.add_done_callback(lambda _: ended.put(None))
        return new

    try:
        is_stopped = _report_progress(ended, counts, add_threads, halt, progress, stopped)
    except BaseException:
        halt.set()
        raise
    finally:
        wait(at_work)
    if failures:
        raise failures[0]
    if is_stopped:
        raise Stopped(
            "fetching was stopped; the received bytes are kept, so that another start continues after them"
        )
    return [results[number] for number in range(len(tasks))]


def _report_progress(
    ended: EndedThreads,
    counts: deque[int],
    add_threads: Callable[[int], int],
    halt: threading.Event,
    progress: Callable[[int], None],
    stopped: Callable[[], bool],
) -> bool:
    """Report progress to the caller until all threads have ended; return whether the caller stopped them."""
    threads, is_stopped = add_threads(0), False
    at_work = threads
    reported_s = grown_s = time.monotonic()
    while at_work:
        try:
            ended.get(timeout=GROW_S if threads else REPORT_EVERY_S)
            at_work -= 1
        except queue.Empty:
            pass
        if threads and time.monotonic() - grown_s >= GROW_S and not halt.is_set():
            new = add_threads(threads)
            at_work += new
            threads = threads + new if new else 0  # there are no tasks for more
            grown_s = time.monotonic()
        if at_work and time.monotonic() - reported_s < REPORT_EVERY_S:
            continue
        if count := sum(counts.popleft() for _ in range(len(counts))):
            progress(count)
        if at_work and not is_stopped and stopped():
            is_stopped = True
            halt.set()
        reported_s = time.monotonic()
    return is_stopped


def _shared(count: int) -> Iterator[int]:
    # next() of a range's iterator is one step of the interpreter, so that threads may share it.
    return iter(range(count))
