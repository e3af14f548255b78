"""The event loop of the simulated world: virtual time, many processes, one thread, an order that a seed decides.

Every process has an asyncio loop of its own in the real world. Here one loop serves them all, and a context
variable says whose callback it is: what a process schedules belongs to it. Within a process callbacks run in the
order in which they were scheduled, as asyncio promises; which process goes next is drawn. A process that is
stopped (SIGSTOP) keeps its callbacks for later, one that is dead loses them. Time stands still while anything
can run, but for some microseconds a step, and then jumps to the next timer.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

PROCESS: ContextVar["Process"] = ContextVar("process")
"""Whose code runs."""

STEP_S = 5e-6
"""What each callback takes: so nothing spins for ever in one instant."""


class Lane:
    """Callbacks of one thread of a process, first come first served."""

    def __init__(self, process: "Process") -> None:
        self.process = process
        self.ready: deque[asyncio.Handle] = deque()


class Process:
    """A process of a simulated machine, or a part of the world that is none (its context is its own)."""

    def __init__(self, loop: "SimLoop", name: str, machine: Any = None) -> None:
        self.name, self.machine, self.loop = name, machine, loop
        self.stopped = self.dead = False
        self.signals: dict[int, Callable[[], object]] = {}
        self.context = copy_context()
        self.context.run(PROCESS.set, self)
        self.lanes: list[Lane] = []
        self.main = self.lane()
        self.on_death: list[Callable[[], object]] = []

    def lane(self) -> Lane:
        """One more thread."""
        made = Lane(self)
        self.lanes.append(made)
        self.loop.lanes.append(made)
        return made

    def post(
        self, callback: Callable[..., object], *args: Any, delay_s: float = 0.0, lane: Lane | None = None
    ) -> None:
        """Have it run this in its own context, in a while."""
        self.loop.post(lane or self.main, callback, args, delay_s)

    def die(self) -> None:
        """At this instruction, whatever it was about to do."""
        if self.dead:
            return
        self.dead = True
        for lane in self.lanes:
            lane.ready.clear()
            self.loop.lanes.remove(lane)
        for listener in self.on_death:
            listener()

    def __str__(self) -> str:
        return self.name


class SimLoop(asyncio.AbstractEventLoop):
    """See the module's docstring. Only what the node's code uses is there."""

    def __init__(self, rng: random.Random, on_trouble: Callable[[str, BaseException | None], None]) -> None:
        self.rng, self._on_trouble = rng, on_trouble
        self.now = 1000.0
        self.lanes: list[Lane] = []
        self.steps = 0
        self._timers: list[tuple[float, int, Lane, asyncio.Handle]] = []
        self._order = itertools.count()
        self._closed = False
        self.readers: dict[int, tuple[Process, Callable[[], object]]] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        """All of them, so that no coroutine of a dead process is collected, and its ``finally`` run, while others
        live."""

    # --- running --------------------------------------------------------------------------

    def step(self) -> bool:
        """Run one callback; False when nothing is left, now or later."""
        timers = self._timers
        while True:
            while timers and timers[0][0] <= self.now:
                _, _, lane, handle = heapq.heappop(timers)
                if not lane.process.dead:
                    lane.ready.append(handle)
            able = [lane for lane in self.lanes if lane.ready and not lane.process.stopped]
            if able:
                break
            if not timers:
                return False
            self.now = max(self.now, timers[0][0])
        lane = able[0] if len(able) == 1 else able[int(self.rng.random() * len(able))]
        handle = lane.ready.popleft()
        self.steps += 1
        self.now += STEP_S
        if not handle.cancelled():
            handle._run()
        return True

    def post(
        self, lane: Lane, callback: Callable[..., object], args: tuple[Any, ...], delay_s: float
    ) -> None:
        if self._closed or lane.process.dead:
            return
        handle = asyncio.Handle(callback, args, self, lane.process.context.copy())
        if delay_s > 0:
            heapq.heappush(self._timers, (self.now + delay_s, next(self._order), lane, handle))
        else:
            lane.ready.append(handle)

    # --- what asyncio asks of a loop ------------------------------------------------------

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        process = context.get(PROCESS)
        if process is None or process.dead or self._closed:
            handle.cancel()
        else:
            process.main.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        process = context.get(PROCESS)
        if process is None or process.dead or self._closed:
            handle.cancel()
        else:
            heapq.heappush(self._timers, (when, next(self._order), process.main, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the heap until its time has come."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: None, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """What somebody hands to a thread of the pool is done in one go, a little later."""
        done = self.create_future()

        def work() -> None:
            try:
                value = func(*args)
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(value)

        self.call_later(self.rng.random() * 0.002, work)
        return done

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:
        PROCESS.get().signals[sig] = lambda: callback(*args)

    def add_reader(self, fd: int, callback: Any, *args: Any) -> None:
        """The ends of simulated connections alone: see ``ears``."""
        self.readers[fd] = PROCESS.get(), lambda: callback(*args)

    def remove_reader(self, fd: int) -> bool:
        return self.readers.pop(fd, None) is not None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self._on_trouble(context.get("message", ""), context.get("exception"))

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Whatever code still runs when coroutines are thrown away schedules nothing any more."""
        self._closed = True
        for task in self._tasks:
            if task.done():
                task.cancelled() or task.exception()  # somebody has looked
            else:
                _throw_away(task.get_coro())
        self._tasks.clear()
        self._timers.clear()
        for lane in self.lanes:
            lane.ready.clear()


def _throw_away(coroutine: Any) -> None:
    """Its ``finally`` blocks run, now that they can do nothing any more. Those that wait for something are asked
    again."""
    for _ in range(100):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001 - whatever they say, nobody is there to hear it
            continue
        return
