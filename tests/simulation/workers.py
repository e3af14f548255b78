"""Workers and pumps of a simulated node: the process behind ``Child``, and the thread behind ``Pump``.

A worker keeps the real one's protocol (``spinney.node.workers``): lists come in, rows go out, its page says
what it runs, a recall gives back what has not begun, TERM and KILL end it. The page is real. What its stages do is
drawn (``scripts``), and what they ask of the store goes the real way, through the supervisor's ``Requests``.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from spinney.model.outcomes import Outcome
from spinney.node.workers.backlog import Backlog
from spinney.node.workers.child import Group
from spinney.node.workers.shared_page import (
    CELL_CANCEL,
    CELL_DONE,
    CELL_LINE,
    CELL_RECALL,
    Running,
    SharedPage,
)
from spinney.node.workers.worker_reports import Exit, Hello

from . import scripts
from .loop import PROCESS, Process

_pids = itertools.count(100)


class RequestRefused(Exception):
    """The supervisor answered a request of the attempt with an error."""


class SimStackMemory:
    """In the place of ``StackMemory``: what a worker has written about where it stands."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._answer = ("", False)

    def write(self, text: str, *, complete: bool) -> None:
        self._answer = (text, complete)

    def read(self) -> tuple[str, bool]:
        return self._answer


class SimChild:
    """In the place of ``spinney.node.workers.child.Child``: the supervisor's side, and the worker."""

    def __init__(
        self, *, name: str, events: Any, page: Path, log_file: Path, concurrent: bool = False, **_: Any
    ) -> None:
        self.name, self.concurrent, self.log_file = name, concurrent, log_file
        self.token, self.stdout_fd, self.stderr_fd = b"", -1, -1
        self.pid = self.rss_bytes = 0
        self.ready = self.ending = False
        self._events, self._page_path = events, page
        self._supervisor: Process = PROCESS.get()
        self._node = self._supervisor.machine
        self._world = self._node.world
        self._forced = False
        self._ended = asyncio.Event()
        self._lists = 0
        self._backlog = Backlog()
        self.stack_memory = SimStackMemory()

    @property
    def node(self) -> Any:
        return self._node

    @property
    def excused(self) -> bool:
        """For the oracle: see ``Place``."""
        return self.process.dead or bool(self._node.excused)

    # --- the supervisor's side ------------------------------------------------------------

    def start(self) -> None:
        if self._world.chance("no_start"):
            raise OSError(11, "no process can be started")
        self.page = SharedPage.create(self._page_path, lines=8 if self.concurrent else 1)
        self._node.pages.append(self.page)
        self.pid = self._node.host.next_pid()
        self.process = Process(self._supervisor.loop, f"{self._node}/{self.name}", self._node)
        self.process.on_death.append(self._died)
        self._node.workers.append(self.process)
        self._worker = Worker(self, self._world.rng.random())
        self.process.post(self._worker.run, delay_s=self._world.draw(0.02, 0.3))

    @property
    def alive(self) -> bool:
        return self.pid != 0 and not self._ended.is_set()

    def measure_memory(self) -> None:
        """Simulated workers never grow."""

    def running(self) -> list[Running]:
        return self.page.running() if self.alive else []

    def send_run(self, groups: Sequence[Group]) -> None:
        self._lists += 1
        self._to_worker("run", groups)

    def recall(self) -> None:
        if self.alive:
            self.page.cells[CELL_RECALL] = self._lists
            self._to_worker("flush", None)

    def blocking_fence(self) -> int:
        return (
            0 if self.concurrent or not self.alive else self._backlog.blocking_fence(self.page, self._lists)
        )

    def begins_nothing(self) -> bool:
        unheard = self.alive and not self._worker._greeted
        return unheard and self.page.cells[CELL_RECALL] == self._lists != 0

    def take_back(self, fences: Sequence[int]) -> None:
        self._backlog.take(fences)

    def request_cancel(self, fence: int) -> None:
        if self.concurrent:
            self._to_worker("cancel", fence)
        elif self.alive:
            self.page.cells[CELL_CANCEL] = fence

    def request_stacks(self, fence: int) -> None:
        self._to_worker("stacks", fence)

    def request_raw_stacks(self) -> None:
        self.stack_memory.write("threads", complete=False)

    def end(self) -> None:
        self.recall()
        self._to_worker("end", None)

    def answer(self, number: int, value: Any) -> None:
        self._to_worker("answer", (number, value, None))

    def refuse(self, number: int, error: Exception) -> None:
        self._to_worker("answer", (number, None, error))

    async def kill_attempt(self, grace_s: float) -> None:
        if not self.alive:
            return
        if not self._forced:
            self._forced = True
            if self._world.rng.random() < 0.5:
                self.process.post(self.process.die, delay_s=self._world.draw(0.0, 0.05))
        try:
            async with asyncio.timeout(grace_s):
                await self._ended.wait()
        except TimeoutError:
            self._supervisor.post(self.process.die)
        await self._ended.wait()

    async def wait(self) -> None:
        await self._ended.wait()

    def _to_worker(self, kind: str, what: Any) -> None:
        self.process.post(self._worker.heard, kind, what)

    def _died(self) -> None:
        """The kernel says so, to whoever is there to hear; what it had said still comes first."""
        for fence in list(self._worker.attempts):
            self._world.oracle.ended(fence)
        self._node.workers.remove(self.process)
        self._supervisor.post(self._bury, delay_s=self._world.draw(0.0, 0.01))

    def _bury(self) -> None:
        killed = self._forced or self._worker.broke
        how = Exit(
            code=None if killed else 0,
            signal="SIGKILL" if killed else None,
            running=tuple(self.page.running()),
            forced=self._forced,
        )
        self._ended.set()
        self._events.exited(self, how)

    # --- what the worker tells ------------------------------------------------------------

    def send(self, kind: str, *what: Any) -> None:
        self._supervisor.post(getattr(self, f"_hear_{kind}"), *what)

    def _hear_hello(self, hello: Hello) -> None:
        self.ready = hello.error is None
        self._events.hello(self, hello)

    def _hear_done(self, rows: list[list[Any]]) -> None:
        self._events.done(self, rows)

    def _hear_back(self, fences: list[int]) -> None:
        self._events.back(self, self._backlog.not_taken(fences))

    def _hear_ask(self, number: int, fence: int, verb: str, args: dict[str, Any]) -> None:
        self._events.ask(self, number, fence, verb, args)


class Worker:
    """What runs in the worker's process."""

    def __init__(self, child: SimChild, draw: float) -> None:
        self._child, self._draw = child, draw
        self.attempts: dict[int, asyncio.Task[Any]] = {}
        self.broke = False
        """It died of itself."""
        self._waiting: deque[tuple[int, str, str, Sequence[Any]]] = deque()
        self._kept: list[list[Any]] = []
        self._lists = 0
        self._numbers = itertools.count(1)
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._greeted = self._ending = False
        self._wished: set[int] = set()
        self._deaf = draw < 0.3
        """It hands back nothing while an attempt runs."""
        self.types: dict[int, str] = {}

    @property
    def world(self) -> Any:
        return self._child._world

    def run(self) -> None:
        """Report that the application is loaded, and begin."""
        self._greeted = True
        self._child.send("hello", self.world.application.hello())
        if self.world.chance("worker_dies"):
            self._child.process.post(self._break, delay_s=self.world.draw(0.0, 3.0))
        self._next()

    def heard(self, kind: str, what: Any) -> None:
        match kind:
            case "run":
                self._lists += 1
                self._waiting += [(self._lists, t, s, row) for t, s, rows in what for row in rows]
                self._next()
            case "answer":
                number, value, error = what
                request = self._requests.pop(number, None)
                if request is not None and not request.done():
                    request.set_result(value) if error is None else request.set_exception(
                        RequestRefused(str(error))
                    )
            case "flush":
                if self._deaf and self.attempts and not self._child.concurrent:
                    return  # as in a long call of C code
                self._send_done()
                self._send_back()
            case "cancel":
                self._wished.add(what)
            case "stacks":
                if not self._deaf:
                    self._child.stack_memory.write(f"where {what} stands", complete=True)
            case "end":
                self._ending = True
                self._next()

    def cancelled(self, fence: int) -> bool:
        return fence in self._wished or self._child.page.cells[CELL_CANCEL] == fence

    async def ask(self, fence: int, verb: str, **args: Any) -> Any:
        """Send a request of an attempt and return the answer. Raises RequestRefused."""
        number = next(self._numbers)
        self._requests[number] = asyncio.get_running_loop().create_future()
        self._child.send("ask", number, fence, verb, args)
        return await self._requests[number]

    # --- one attempt after the other ------------------------------------------------------

    def _next(self) -> None:
        if not self._greeted:
            return
        self._send_back()
        while self._waiting and (self._child.concurrent or not self.attempts):
            self._begin(*self._waiting.popleft()[1:])
        if not self.attempts:
            self._send_done()
            if self._ending:
                self._child.process.die()

    def _begin(self, type_: str, stage: str, row: Sequence[Any]) -> None:
        job_id, fence, attempt = row[0], row[1], row[2]
        page, host = self._child.page, self._child._node.host
        line = (
            next(n for n in range(page.lines) if not page.cells[CELL_LINE + 3 * n])
            if self._child.concurrent
            else 0
        )
        started_us = host.wall_us()
        page.begin(fence, started_us, line=line)
        self.world.note(self._child.process, f"begins job={job_id} {type_}.{stage} fence={fence}")
        self.world.oracle.began(job_id, fence, self._child)
        script = scripts.Script(self, row, type_, stage, attempt)
        attempt_ = asyncio.get_running_loop().create_task(self._attempt(script, fence, started_us, line))
        attempt_.add_done_callback(self._over)
        self.attempts[fence] = attempt_

    async def _attempt(self, script: "scripts.Script", fence: int, started_us: int, line: int) -> None:
        try:
            detail = await script.run()
        except RequestRefused as error:
            detail = {"outcome": Outcome.ERROR, "message": str(error)}
        page = self._child.page
        self.world.oracle.ended(fence)
        self.world.note(self._child.process, f"ends fence={fence} {detail or 'ok'}")
        page.cells[CELL_DONE] += 1
        row = [fence, started_us, self._child._node.host.wall_us()]
        self._kept.append(row if detail is None else [*row, detail])
        if self._child.concurrent or self.world.rng.random() < 0.8:
            self._send_done()
        page.cells[CELL_LINE + 3 * line] = 0
        del self.attempts[fence]
        # Between two attempts the kernel may let others run.
        self._child.process.post(self._next)

    def _over(self, attempt: "asyncio.Task[None]") -> None:
        if not attempt.cancelled() and (error := attempt.exception()) is not None:
            self.world.failed("an attempt", error)

    def _send_done(self) -> None:
        if self._kept:
            rows, self._kept = self._kept, []
            self._child.send("done", rows)
            for row in rows:
                if len(row) > 3 and row[3].get("output") and not self._child.concurrent:
                    self._child._node.pump.mark(row[0])

    def _send_back(self) -> None:
        recalled = self._child.page.cells[CELL_RECALL]
        back = [row[1] for ordinal, _, _, row in self._waiting if ordinal <= recalled or self._ending]
        if back:
            gone = set(back)
            self._waiting = deque(w for w in self._waiting if w[3][1] not in gone)
            self._child.send("back", back)

    def _break(self) -> None:
        self.broke = True
        self._child.process.die()


class SimPump:
    """In the place of ``Pump``: says after a while that the output of an attempt is in its files."""

    def __init__(self, on_output_written: Callable[[int, str | None], None], **_: Any) -> None:
        self._on_marked = on_output_written
        self._process: Process = PROCESS.get()
        self._process.machine.pump = self
        self._lane = self._process.lane()
        self._last = 0.0

    def _in_order(self, what: Callable[[], object]) -> None:
        now = self._process.loop.now
        self._last = max(self._last, now + self._process.machine.world.draw(0.0, 0.02))
        self._process.post(what, delay_s=self._last - now + 1e-7, lane=self._lane)

    def mark(self, fence: int) -> None:
        self._in_order(lambda: self._on_marked(fence, None))

    def end(self, child: str, fence: int) -> None:
        self.mark(fence)

    def add(self, child: Any, locate: Any) -> None:
        """It has no pipes."""

    def put(self, child: str, fence: int, stream: str, text: str) -> None:
        """Nothing is printed."""

    def remove(self, child: str) -> "Future[dict[int, str]]":
        done: Future[dict[int, str]] = Future()
        self._in_order(lambda: done.set_result({}))
        return done

    def close(self) -> None:
        """It has no thread."""
