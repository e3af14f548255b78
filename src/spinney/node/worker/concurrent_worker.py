"""The worker that runs many attempts at once: ``thread`` and ``async`` stages.

The main thread reads the socket. ``thread`` stages have a thread each, from a pool that grows on
demand; ``async`` stages are tasks of one event loop in a thread of its own, so that a handle's
request, which blocks, finds its answer read. Whoever has ended sends its row; those who end
meanwhile leave theirs to him, and tasks that end in one turn of the event loop send once. A row by
itself is a message, a change of threads in the supervisor and a transaction. When a task holds the loop
up, the supervisor fetches by a signal (``worker_startup.FLUSH_SIGNAL``) what has ended.

Weaker than in a worker of one attempt at a time, and why there is that other one: processes that an
attempt left behind cannot be told from its neighbours' and are ended when nothing else is running;
what went past Python's streams is in the worker's log; an attempt that does not hear is ended with
the whole worker. Then the supervisor says ``end`` first, so that the others may finish. Those that TERM still finds
at work are told to stop, and whatever they end with is told as ``returned``: a result that comes behind that may be
half of one.
"""

import asyncio
import contextvars
import ctypes
import inspect
import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spinney.define.job import Assignment, Job
from spinney.model.outcomes import Outcome
from spinney.node.worker import result_rows
from spinney.node.worker.attempt_output import AttemptOutput, current_output
from spinney.node.worker.ports import ConcurrentPort, RequestMultiplexer
from spinney.node.worker.process_state import ProcessState
from spinney.node.worker.saved_descriptors import SavedDescriptors
from spinney.node.worker.stage_runners import Runner, StageRunners
from spinney.node.worker.sync import clock_ns, has_folder, synced
from spinney.node.workers import proctree
from spinney.node.workers.boundaries import BoundaryWriter
from spinney.node.workers.shared_page import SharedPage
from spinney.node.workers.wire import Channel

LEFTOVER_GRACE_S = 0.5
"""Between TERM and KILL for processes that are left when nothing is running."""

_libc = ctypes.CDLL(None)


@dataclass(slots=True, kw_only=True)
class _Attempt:
    given: Assignment
    line: int
    port: ConcurrentPort
    output: AttemptOutput
    started_us: int
    since_ns: int
    """The time of its beginning by the clock of ``sync``."""
    gone_bytes: int
    stopped: bool = False
    """It was told to stop with the worker, and not by name: what it ends with does not count."""
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    task: "asyncio.Task[None] | None" = None


class ConcurrentWorker:
    """The host and what it holds."""

    def __init__(
        self,
        channel: Channel,
        page: SharedPage,
        marker: BoundaryWriter,
        stages: StageRunners,
        *,
        folder_root: str,
        log_name: str,
    ) -> None:
        self._channel, self._asker = channel, RequestMultiplexer(channel)
        self._page, self._marker, self._stages = page, marker, stages
        self._root, self._folders, self._log_name = folder_root, Path(folder_root), log_name
        self._pid = os.getpid()
        self._helpers = frozenset(p.pid for p in proctree.descendants(os.getpid()))
        self._lock = threading.Lock()
        """Over what runs and what waits."""
        self._running: dict[int, _Attempt] = {}
        self._waiting: deque[tuple[str, str, list[Any]]] = deque()
        """What finds no line on the page."""
        self._lines = list(range(page.lines))
        self._ending = False
        self._done: deque[list[Any]] = deque()
        self._sending = threading.Lock()
        """Whoever sends rows holds it."""
        self._will_send = False
        """The event loop will, when its turn is over."""
        self._rows = result_rows.ResultSender()
        self._descriptors = SavedDescriptors()
        self._state: ProcessState
        self._pool = ThreadPoolExecutor(max_workers=page.lines, thread_name_prefix="stage")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="async stages", daemon=True).start()

    def send(self, message: Any) -> None:
        """Send something to the supervisor; from any thread."""
        self._asker.send(message)

    def run(self, state: ProcessState) -> None:
        """Serve until the supervisor says end and everything that was begun has ended, or it is gone. ``state``: what
        is put back whenever nothing runs."""
        self._state = state
        while (message := self._channel.receive()) is not None:
            match message:
                case {"run": groups}:
                    for type_, stage, given in groups:
                        self._take(type_, stage, given)
                case {"answer": _}:
                    self._asker.answered(message)
                case {"cancel": fences}:
                    self._cancel(fences)
                case {"end": _}:
                    self._end()
        self._asker.gone()

    def on_flush_signal(self) -> None:
        """Say what is kept back: a task may hold the event loop up, which was to send it. Called by a signal's
        handler, in the main thread, anywhere; the supervisor asks again."""
        if not self._asker.busy():
            self._send_done()

    def terminate(self) -> None:
        """Stop everything that runs, and have ``run`` return when it has ended. Own thread, please:
        a signal's handler may have interrupted whoever holds the lock."""
        with self._lock:
            self._ending = True
            stopped = [attempt for attempt in self._running.values() if not attempt.port.cancel_requested]
            for attempt in stopped:
                attempt.stopped = True
        self._cancel([attempt.given.fence for attempt in stopped])
        # Only now: what an attempt makes of the end of its programs does not count any more.
        proctree.kill_all(self._leftovers(), signal.SIGTERM)
        self._end()

    # --- beginning ------------------------------------------------------------------------

    def _take(self, type_: str, stage: str, given: list[list[Any]]) -> None:
        with self._lock:
            self._waiting.extend((type_, stage, row) for row in given)
            self._begin_waiting()
        if self._ending:
            self._end()

    def _begin_waiting(self) -> None:
        """Under the lock."""
        tasks: list[tuple[_Attempt, Runner]] = []
        while self._waiting and self._lines and not self._ending:
            type_, stage, row = self._waiting.popleft()
            attempt, runner = self._begin(type_, stage, row), self._stages.runner(type_, stage)
            if inspect.iscoroutinefunction(runner):
                tasks.append((attempt, runner))
            else:
                self._pool.submit(attempt.context.run, self._run_in_thread, attempt, runner)
        if tasks:
            self._loop.call_soon_threadsafe(self._start_tasks, tasks)

    def _begin(self, type_: str, stage: str, row: list[Any]) -> _Attempt:
        job_id, fence, number, params, parent_id, root_id = row
        attempt = _Attempt(
            given=Assignment(job_id, fence, type_, stage, number, params, parent_id, root_id, self._folders),
            line=self._lines.pop(),
            port=ConcurrentPort(self._asker, fence),
            output=AttemptOutput(fence, self._tell),
            started_us=time.time_ns() // 1000,
            since_ns=clock_ns(),
            gone_bytes=self._marker.gone(),
        )
        attempt.context.run(current_output.set, attempt.output)
        self._running[fence] = attempt
        self._page.begin(fence, attempt.started_us, line=attempt.line)
        return attempt

    # --- running --------------------------------------------------------------------------

    def _run_in_thread(self, attempt: _Attempt, runner: Runner) -> None:
        given = attempt.given
        try:
            value = runner(given.params, Job(given, attempt.port, self._stages.types))
            detail = result_rows.value_detail(given.stage, value)
        except BaseException as error:  # noqa: BLE001 - whatever it was, it is that attempt's end
            detail = result_rows.exception_detail(
                given.stage, error, self._stages.redactor(given.type, given.params), given.params
            )
        self._leave_fork()
        self._end_in_thread(attempt, detail)

    def _start_tasks(self, begun: list[tuple[_Attempt, Runner]]) -> None:
        for attempt, runner in begun:
            attempt.task = self._loop.create_task(self._run_as_task(attempt, runner), context=attempt.context)

    async def _run_as_task(self, attempt: _Attempt, runner: Runner) -> None:
        given = attempt.given
        try:
            if attempt.port.cancel_requested:
                # Not by cancelling the task: one that has not begun would end without a word.
                raise asyncio.CancelledError
            value = await runner(given.params, Job(given, attempt.port, self._stages.types))
            detail = result_rows.value_detail(given.stage, value)
        except asyncio.CancelledError as error:
            if attempt.port.cancel_requested:
                detail = result_rows.refusal_detail(Outcome.CANCELLED, "cancelled while it was running")
            else:
                detail = result_rows.error_detail(
                    error, message="the stage cancelled its own task; return or raise Fail instead"
                )
        except BaseException as error:  # noqa: BLE001 - as above
            detail = result_rows.exception_detail(
                given.stage, error, self._stages.redactor(given.type, given.params), given.params
            )
        self._leave_fork()
        if has_folder(self._root, given.job_id):
            # The disk may be slow. Nothing is awaited: a cancel that comes now must not break this off.
            self._pool.submit(self._end_in_thread, attempt, detail)
            return
        self._finish(attempt, detail)
        if not self._will_send:
            self._will_send = True
            self._loop.call_soon(self._send_of_this_turn)

    # --- ending ---------------------------------------------------------------------------

    def _leave_fork(self) -> None:
        """Where user code forked, and the child came back to where only the worker may be: end it."""
        if os.getpid() != self._pid:
            os._exit(1)

    def _end_in_thread(self, attempt: _Attempt, detail: result_rows.Detail | None) -> None:
        job_id = attempt.given.job_id
        if has_folder(self._root, job_id):
            detail = synced(detail, self._root, job_id, attempt.since_ns)
        self._finish(attempt, detail)
        self._send_done()
        self._stop_if_ended()

    def _finish(self, attempt: _Attempt, detail: result_rows.Detail | None) -> None:
        fence = attempt.given.fence
        if attempt.stopped:
            detail = result_rows.refusal_detail(Outcome.RETURNED, "stopped with its worker")
        attempt.output.flush()
        _libc.fflush(None)
        more: result_rows.Detail = {}
        if attempt.output.has_output:
            more["output"] = True
        if self._marker.gone() > attempt.gone_bytes:
            more["log"] = self._log_name
        if more:
            detail = (detail or {"outcome": Outcome.OK}) | more
        worn = False
        with self._lock:
            if len(self._running) == 1:
                self._end_leftovers()
                state = self._state
                worn = (
                    not self._descriptors.restore()
                    or (state.changed and not state.restore())
                    or state.leaks_files()
                )
                self._ending |= worn
            ended_us = time.time_ns() // 1000
            row = [fence, attempt.started_us, ended_us]
            self._done.append(row if detail is None else [*row, detail])
            self._page.finish(line=attempt.line)
            del self._running[fence]
            self._lines.append(attempt.line)
            self._begin_waiting()
        if worn:
            self._end()

    def _leftovers(self) -> list[proctree.Proc]:
        return [proc for proc in proctree.descendants(os.getpid()) if proc.pid not in self._helpers]

    def _end_leftovers(self) -> None:
        """Nothing but the caller is running: what is still below belongs to nobody."""
        if proctree.reap() and self._leftovers():
            proctree.kill_tree(os.getpid(), LEFTOVER_GRACE_S, spare=self._helpers)

    def _send_of_this_turn(self) -> None:
        self._will_send = False
        self._send_done()
        self._stop_if_ended()

    def _send_done(self) -> None:
        # Who finds somebody at it leaves his row to him, who looks again when he is through.
        while self._done and self._sending.acquire(blocking=False):
            try:
                self._send_rows()
            finally:
                self._sending.release()

    def _send_rows(self) -> None:
        sent = [self._done.popleft() for _ in range(len(self._done))]
        if sent:
            self._rows.send(self.send, sent)

    def _tell(self, fence: int, stream: str, text: str) -> None:
        self.send({"output": [fence, stream, text]})

    def _cancel(self, fences: list[int]) -> None:
        for fence in fences:
            attempt = self._running.get(fence)
            if attempt is not None:
                attempt.port.cancel_requested = True
                if attempt.task is not None:
                    self._loop.call_soon_threadsafe(attempt.task.cancel)

    def _end(self) -> None:
        with self._lock:
            self._ending = True
            back = [row[1] for _, _, row in self._waiting]
            self._waiting.clear()
        if back:
            self.send({"back": back})
        # Its turn may never be over, when a task holds the event loop up.
        self._send_done()
        self._stop_if_ended()

    def _stop_if_ended(self) -> None:
        if self._ending and not self._running:
            with self._sending:  # behind whoever is at it
                self._send_rows()
            self._channel.stop_reading()
