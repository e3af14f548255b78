"""Threads that work a list of tasks off, where the machine refuses one of them."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from spinney.apps.ingest.fetch import parallel_tasks


def test_threads_that_were_started_are_waited_for_when_another_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given rounds of 1, 1 and 2 more threads, when the last of them cannot be started, then the third has ended, too,
    before the error is raised."""
    halt = threading.Event()
    begun: list[int] = []
    ended: list[int] = []
    with ThreadPoolExecutor(8) as pool:
        refused = iter([False, False, False, True])

        class Refusing:
            def submit(self, work: Callable[[], None]) -> "Future[None]":
                if next(refused):
                    raise RuntimeError("can't start new thread")
                return pool.submit(work)

        def fetch(number: int, count: Callable[[int], None]) -> None:
            begun.append(number)
            halt.wait(60)
            threading.Event().wait(0.2 * number)  # a call that does not wait for the last one ends meanwhile
            ended.append(number)

        monkeypatch.setattr(parallel_tasks, "thread_pool", Refusing)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            parallel_tasks.ParallelTasks(
                range(10), fetch, at_once=8, halt=halt, progress=lambda count: None, stopped=lambda: False
            ).run()
        assert (sorted(ended), len(ended)) == (sorted(begun), 3)
