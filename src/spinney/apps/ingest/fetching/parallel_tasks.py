"""Several tasks at once in threads, with the caller's own functions called in the caller's thread only."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from spinney.apps.ingest.fetching.errors import Halted
from spinney.apps.ingest.fetching.rules import Stopped
from spinney.apps.ingest.files.thread_pool import hands

T = TypeVar("T")
R = TypeVar("R")

TOLD_EVERY_S = 0.2
"""Progress is summed up this long, and it is asked this often whether to stop."""

GROW_S = 0.05
"""After so long there are twice as many hands. Threads that have the interpreter to share are no quicker: a few small
files from a server near by are there before a second one would be of use, also while the machine is busy."""

Gone = queue.SimpleQueue[None]
"""Told of each hand that has ended. Counts are not told here: to wake the caller for each chunk takes the interpreter
from who fetches."""


def together(
    tasks: Sequence[T],
    do: Callable[[T, Callable[[int], None]], R],
    *,
    at_once: int,
    halt: threading.Event,
    progress: Callable[[int], None],
    stopped: Callable[[], bool],
) -> list[R]:
    """What ``do(task, heard)`` returns for each task, in their order; ``heard`` takes counts for ``progress``.

    The first failure sets ``halt``, on which the others end soon, and is raised when they have. Raises
    Stopped when ``stopped`` says so.
    """
    gone: Gone = queue.SimpleQueue()
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

    def hire(there: int) -> int:
        """Twice as many hands, at most as many as there are tasks left; returns how many came."""
        left = len(tasks) - len(results) - there
        new = max(0, min(most - there, max(1, there), left))
        for _ in range(new):
            one = hands().submit(work)
            at_work.append(one)
            one.add_done_callback(lambda _: gone.put(None))
        return new

    try:
        called_off = _listen(gone, counts, hire, halt, progress, stopped)
    except BaseException:
        halt.set()
        raise
    finally:
        wait(at_work)
    if failures:
        raise failures[0]
    if called_off:
        raise Stopped("fetching was called off; what has come is kept, so start it again to go on from there")
    return [results[number] for number in range(len(tasks))]


def _listen(
    gone: Gone,
    counts: deque[int],
    hire: Callable[[int], int],
    halt: threading.Event,
    progress: Callable[[int], None],
    stopped: Callable[[], bool],
) -> bool:
    """Tell the caller what is heard until all hands are done; whether the caller called it off."""
    hands, called_off = hire(0), False
    at_work = hands
    told = grown = time.monotonic()
    while at_work:
        try:
            gone.get(timeout=GROW_S if hands else TOLD_EVERY_S)
            at_work -= 1
        except queue.Empty:
            pass
        if hands and time.monotonic() - grown >= GROW_S and not halt.is_set():
            new = hire(hands)
            at_work += new
            hands = hands + new if new else 0  # there is nothing for another one
            grown = time.monotonic()
        if at_work and time.monotonic() - told < TOLD_EVERY_S:
            continue
        if heard := sum(counts.popleft() for _ in range(len(counts))):
            progress(heard)
        if at_work and not called_off and stopped():
            called_off = True
            halt.set()
        told = time.monotonic()
    return called_off


def _shared(count: int) -> Iterator[int]:
    # next() of a range's iterator is one step of the interpreter, so that threads may share it.
    return iter(range(count))
