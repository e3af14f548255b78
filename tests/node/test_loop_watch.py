"""Who blocks an event loop, and who only has much to do in it."""

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from spinney.node.worker.attempt_output import AttemptOutput, current_output
from spinney.node.worker.loop_watch import BLOCKED_S, LOOK_S, LoopWatch


def context_of(fence: int) -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(current_output.set, AttemptOutput(fence, lambda *output: None))
    return context


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def reports_of(loop: asyncio.AbstractEventLoop, calls: list[tuple[int, Callable[[], Any]]]) -> list[int]:
    """Make these calls in one turn of the loop, each for the attempt with its fence, and return the fences that were
    reported to block it."""
    ended, reports = threading.Event(), []
    thread = threading.Thread(target=loop.run_forever)
    watch = LoopWatch(
        loop,
        thread,
        is_busy=lambda: not ended.is_set(),
        on_blocked=lambda seconds, fence: reports.append(fence),
    )
    for fence, call in calls:
        loop.call_soon(call, context=context_of(fence))
    loop.call_soon(ended.set)
    loop.call_soon(loop.call_soon, loop.stop)
    watch.begin()
    thread.start()
    thread.join()
    return reports


def test_many_callbacks_in_one_turn_block_nobody(loop: asyncio.AbstractEventLoop) -> None:
    each_s = LOOK_S / 2
    calls = [(fence, lambda: time.sleep(each_s)) for fence in range(1, round(4 * BLOCKED_S / each_s))]
    assert reports_of(loop, calls) == []


def test_one_callback_that_takes_long_blocks_the_others(loop: asyncio.AbstractEventLoop) -> None:
    calls = [(1, lambda: None), (2, lambda: time.sleep(3 * BLOCKED_S)), (3, lambda: None)]
    assert set(reports_of(loop, calls)) == {2}


def test_a_callback_that_ends_at_this_moment_is_nobodys(loop: asyncio.AbstractEventLoop) -> None:
    watch = LoopWatch(
        loop, threading.current_thread(), is_busy=lambda: False, on_blocked=lambda *report: None
    )
    returning: list[int | None] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if event == "return" and frame.f_code is asyncio.Handle._run.__code__:
            returning.append(watch.working_for())
        return trace

    handle = asyncio.Handle(lambda: returning.append(watch.working_for()), (), loop, context_of(1))
    tracer = sys.gettrace()
    sys.settrace(trace)
    try:
        handle._run()
    finally:
        sys.settrace(tracer)
    assert returning == [1, None]
