"""Write where a worker's threads and tasks stand into memory that its supervisor reads, while the worker goes on.

The worker writes them when it handles the supervisor's signal, as soon as its interpreter checks signals. Where a
thread is inside a long call of C code, ``faulthandler`` writes them at once on a second signal, with fewer details."""

import faulthandler
import gc
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import AsyncGeneratorType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.node.workers.stack_memory import END, MOST_BYTES
from spinney.node.workers.worker_startup import STACK_SIGNAL

if TYPE_CHECKING:
    import asyncio

_OWN = str(Path(__file__).parents[2]) + os.sep
"""The package's own code, whose frames below a stage are left out."""

_COROUTINE_FIELDS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))

Position = tuple[FrameType, int]
"""A frame and the line at which it stands."""


class Stack(NamedTuple):
    """The stack of one thread or asyncio task."""

    name: str
    positions: Sequence[Position]
    """The positions of the frames, the outermost first."""


class StackDump:
    """The memory where a worker writes its stacks."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        faulthandler.register(STACK_SIGNAL, file=fd, all_threads=True)

    def write(self, stacks: Sequence[Stack]) -> None:
        """Write these stacks; the mark at their end says that nothing is missing."""
        text = "\n".join(f"{stack.name}:\n{''.join(_lines(stack.positions))}" for stack in stacks)
        data = text.encode("utf-8", "backslashreplace")[: MOST_BYTES - len(END)]
        os.pwrite(self._fd, data + END, 0)


def thread_stacks(interrupted: FrameType | None, *, leave_out: frozenset[int] = frozenset()) -> list[Stack]:
    """Return the stacks of this process's threads. ``interrupted``: where a signal handler has interrupted the main
    thread, in which it runs. ``leave_out``: the identifiers of threads."""
    frames = sys._current_frames()
    main = threading.main_thread().ident
    if main is not None and interrupted is not None:
        frames[main] = interrupted
    stacks = []
    for thread in threading.enumerate():
        if thread.ident in frames and thread.ident not in leave_out:
            stacks.append(Stack(f"thread {thread.name}", [*traceback.walk_stack(frames[thread.ident])][::-1]))
    return stacks


def task_stack(task: "asyncio.Task[Any]", name: str) -> Stack:
    """Return the stack of a task: its coroutine, and those that it waits for."""
    return Stack(name, list(_awaited(task.get_coro())))


def _awaited(coroutine: Any) -> Iterator[Position]:
    seen: set[int] = set()  # an awaitable may refer to what waits for it
    while coroutine is not None and id(coroutine) not in seen:
        seen.add(id(coroutine))
        for frame_name, awaited_name in _COROUTINE_FIELDS:
            frame = getattr(coroutine, frame_name, None)
            if frame is not None:
                yield frame, frame.f_lineno
                coroutine = getattr(coroutine, awaited_name, None)
                break
        else:
            # What ``anext`` returns has no fields: ``async for``, and ``async with`` of an ``asynccontextmanager``.
            referents = gc.get_referents(coroutine)
            coroutine = next((each for each in referents if isinstance(each, AsyncGeneratorType)), None)


def _lines(positions: Sequence[Position]) -> list[str]:
    """Return the lines of a stack, without the worker's own frames below the stage's; all when there are no others."""
    first = next((n for n, (frame, _) in enumerate(positions) if not _is_own(frame)), 0)
    summary = traceback.StackSummary.extract(iter(positions[first:]), lookup_lines=True)
    return traceback.format_list(summary)


def _is_own(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    if name.startswith((_OWN, "<frozen ")) or name == threading.__file__:
        return True
    loops = sys.modules.get("asyncio.base_events")  # a worker without coroutines never loads it
    return loops is not None and name == loops.__file__
