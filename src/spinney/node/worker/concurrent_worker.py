"""The worker that runs many attempts at once: ``thread`` and ``async`` stages.

The main thread reads the socket. ``thread`` stages have a thread each, from a pool that grows on
demand; ``async`` stages are tasks of one event loop in a thread of its own, so that another thread reads the answer to
a handle's request, which blocks. An attempt that has ended sends its row; attempts that end meanwhile leave theirs to
it, and tasks that end in one turn of the event loop send once. A single row costs a message, a change of threads in the
supervisor and a transaction. When a task blocks the loop, the supervisor fetches finished rows by a signal
(``worker_startup.FLUSH_SIGNAL``). Which attempt blocks the loop, and for how long, is
measured (``loop_watch``), so that nobody is blamed for a time limit that another attempt made it exceed.

It guarantees less than a worker of one attempt at a time, which is why both exist: processes that an attempt left
behind cannot be told from its neighbours' and are ended when nothing else is running; output past Python's streams is
in the worker's log; an attempt that does not react to a cancel request is ended with the whole worker. Then the
supervisor sends ``end`` first, so that the others may finish. Attempts that still run at TERM are asked to stop, and
are reported as ``returned`` whatever their result, which may be incomplete."""

import asyncio
import ctypes
import inspect
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from spinney.define.job import Assignment, Job
from spinney.define.jobtype.job_types import Runner
from spinney.model.outcomes import Outcome
from spinney.node.worker import result_rows
from spinney.node.worker.attempt_output import AttemptOutput, current_output
from spinney.node.worker.attempt_tools import AttemptTools
from spinney.node.worker.loop_watch import LoopWatch
from spinney.node.worker.ports import ConcurrentPort, RequestMultiplexer
from spinney.node.worker.process_state import ProcessState, SavedDescriptors
from spinney.node.worker.running_attempt import RunningAttempt
from spinney.node.worker.sync import clock_ns, has_folder, synced
from spinney.node.workers import proctree
from spinney.node.workers.shared_page import CELL_RECALL, CELL_STACK
from spinney.node.workers.stack_dump import Stack, task_stack, thread_stacks
from spinney.node.workers.termination import end_process_on_error
from spinney.node.workers.wire import Channel
from spinney.tracing.current import attempt_context

_libc = ctypes.CDLL(None)


@end_process_on_error
def _run_or_end(call: Callable[..., Any], *args: Any) -> None:
    """Call it; an exception ends the process."""
    call(*args)


@end_process_on_error
def _require_end(attempt: RunningAttempt, task: "asyncio.Task[None]") -> None:
    """Raise what ended the task of an attempt before that was reported, which ends the process. A task is also
    cancelled, after the report, if its stage cancelled it without awaiting anything afterwards."""
    if not (attempt.stage_ended and task.cancelled()):
        task.result()


class ConcurrentWorker:
    """The worker process of ``thread`` and ``async`` stages: it runs many attempts at a time, and sends their
    outcomes."""

    def __init__(self, channel: Channel, tools: AttemptTools, log_name: str) -> None:
        self._channel, self._requests = channel, RequestMultiplexer(channel)
        self._page, self._marker, self._stages = tools.page, tools.marker, tools.stages
        self._root, self._frames, self._stacks = tools.folder_root, tools.frames, tools.stacks
        self._folders, self._log_name = Path(tools.folder_root), log_name
        self._pid = os.getpid()
        self._helpers = frozenset(p.pid for p in proctree.descendants(os.getpid()))
        self._lock = threading.Lock()
        """Protects ``_running`` and ``_waiting``."""
        self._running: dict[int, RunningAttempt] = {}
        self._waiting: deque[tuple[str, str, list[Any]]] = deque()
        """Attempts that wait for a line on the page."""
        self._lines = list(range(tools.page.lines))
        self._lists = 0
        """How many lists of attempts have come."""
        self._ending = False
        self._done: deque[list[Any]] = deque()
        """Rows of attempts that have ended, until they are sent."""
        self._sending = threading.Lock()
        """Held by the thread that sends rows."""
        self._will_send = False
        """Whether the event loop sends rows at the end of its turn."""
        self._rows = result_rows.ResultSender()
        self._descriptors = SavedDescriptors()
        self._state: ProcessState
        self._pool = ThreadPoolExecutor(max_workers=tools.page.lines, thread_name_prefix="stage")
        self._pool.submit(int)  # its first thread, so that there is always one (``_submit``)
        self._loop = asyncio.new_event_loop()
        loop_thread = threading.Thread(target=self._run_loop, name="async stages", daemon=True)
        loop_thread.start()
        self._loop_watch = LoopWatch(
            self._loop, loop_thread, is_busy=self._has_tasks, on_blocked=self._on_blocked
        )

    @end_process_on_error
    def run(self, state: ProcessState) -> None:
        """Serve until the supervisor sends ``end`` and all running attempts have ended, or until it is gone. ``state``:
        the process state, which is restored whenever nothing runs."""
        self._state = state
        while (message := self._channel.receive()) is not None:
            match message:
                case {"run": groups}:
                    self._lists += 1
                    if self._page.cells[CELL_RECALL] >= self._lists:
                        self._requests.send({"back": [row[1] for _, _, rows in groups for row in rows]})
                        continue
                    for type_, stage, rows in groups:
                        self._take(type_, stage, rows)
                case {"answer": _}:
                    self._requests.answered(message)
                case {"cancel": fences}:
                    self._cancel(fences)
                case {"end": _}:
                    self._end()
        self._requests.fail_all()

    def on_flush_signal(self, interrupted: FrameType | None) -> None:
        """Write requested stacks, and send finished rows, because a task may block the event loop, which was to send
        them. It is called by a signal handler, in the main thread, at any point (``interrupted``); the supervisor
        repeats the signal."""
        fence = self._page.cells[CELL_STACK]
        if fence and os.getpid() == self._pid:
            self._page.cells[CELL_STACK] = 0
            self._stacks.write(self._stacks_of(fence, interrupted))
        if not self._requests.busy():
            self._send_done()

    def _stacks_of(self, fence: int, interrupted: FrameType | None) -> list[Stack]:
        """Return the stack of an attempt's thread or task, then those of threads and tasks that are no attempt's. The
        lock is not taken, because the handler may have interrupted its holder."""
        attempts = list(self._running.values())
        stacks, own = [], {attempt.task for attempt in attempts}
        subject = self._running.get(fence)
        if subject is not None and subject.task is not None:
            stacks.append(task_stack(subject.task, "task of the stage"))
        others = frozenset(
            attempt.thread for attempt in attempts if attempt is not subject and attempt.thread
        )
        pool = {t.ident for t in self._pool._threads if t.ident}
        idle = frozenset(pool) - {subject.thread if subject is not None else None}
        stacks += thread_stacks(interrupted, leave_out=others | idle)
        for task in asyncio.all_tasks(self._loop) - own:
            # By its function: its name may hold what another attempt has put there.
            stacks.append(task_stack(task, f"task {getattr(task.get_coro(), '__qualname__', '')}"))
        return stacks

    def terminate(self) -> None:
        """Stop all running attempts; ``run`` returns when they have ended. It must be called in a thread of its own,
        because a signal handler may have interrupted the holder of the lock."""
        with self._lock:
            self._ending = True
            stopped = [attempt for attempt in self._running.values() if not attempt.port.cancel_requested]
            for attempt in stopped:
                attempt.stopped = True
            now_s = time.monotonic()
            late = [attempt for attempt in self._running.values() if attempt.is_late(now_s)]
        blocker = self._loop_watch.working_for() if late else None
        if blocker is not None:
            self._requests.send({"blocked": blocker, "late": [attempt.assignment.fence for attempt in late]})
        self._cancel([attempt.assignment.fence for attempt in stopped])
        # Only now, so that the outcome of an attempt whose programs end does not count any more.
        proctree.kill_all(self._leftovers(), signal.SIGTERM)
        self._end()

    # --- beginning ------------------------------------------------------------------------

    def _take(self, type_: str, stage: str, rows: list[list[Any]]) -> None:
        """Begin the attempts of a list, as far as the page has lines for them; the others wait."""
        with self._lock:
            self._waiting.extend((type_, stage, row) for row in rows)
            self._begin_waiting()
        if self._ending:
            self._end()

    def _begin_waiting(self) -> None:
        """Begin waiting attempts; the caller holds the lock."""
        tasks: list[tuple[RunningAttempt, Runner]] = []
        while self._waiting and self._lines and not self._ending:
            type_, stage, row = self._waiting.popleft()
            attempt, runner = self._begin(type_, stage, row), self._stages.runner(type_, stage)
            attempt.is_async = inspect.iscoroutinefunction(runner)
            if attempt.is_async:
                tasks.append((attempt, runner))
            else:
                self._submit(attempt.context.run, self._run_in_thread, attempt, runner)
        if tasks:
            self._loop.call_soon_threadsafe(self._start_tasks, tasks)
            self._loop_watch.begin()

    def _submit(self, call: Callable[..., Any], *args: Any) -> None:
        """Call it in a thread of the pool. Where the system lets no more threads be started (``TasksMax``, ``ulimit
        -u``), the next thread of the pool that becomes free does it: the pool has queued the call before it fails."""
        with suppress(RuntimeError):
            self._pool.submit(_run_or_end, call, *args)

    def _begin(self, type_: str, stage: str, row: list[Any]) -> RunningAttempt:
        """Note an attempt as running, here and on the page, in a context of its own; the caller holds the
        lock. From now on a death of the worker concerns it."""
        job_id, fence, number, params, parent_id, root_id, *extras = row
        attempt = RunningAttempt(
            assignment=Assignment(
                job_id, fence, type_, stage, number, params, parent_id, root_id, self._folders, *extras
            ),
            line=self._lines.pop(),
            port=ConcurrentPort(self._requests, fence),
            output=AttemptOutput(fence, self._send_output),
            started_us=time.time_ns() // 1000,
            since_ns=clock_ns(),
            written_bytes=self._marker.written_bytes(),
        )
        if attempt.assignment.trace is not None:
            attempt.context = attempt_context(attempt.assignment.trace, fence)
        attempt.context.run(current_output.set, attempt.output)
        self._running[fence] = attempt
        self._page.begin(fence, attempt.started_us, line=attempt.line)
        return attempt

    # --- running --------------------------------------------------------------------------

    def _run_in_thread(self, attempt: RunningAttempt, runner: Runner) -> None:
        """Run a ``thread`` stage to its end; this is the work of one thread of the pool, within the attempt's
        context."""
        assignment, attempt.thread = attempt.assignment, threading.get_ident()
        try:
            value = runner(assignment.params, Job(assignment, attempt.port, self._stages.types))
            detail = result_rows.value_detail(assignment.stage, value)
        except BaseException as error:  # noqa: BLE001 - any exception ends the attempt
            detail = self._caught(attempt, error)
        self._leave_fork()
        self._end_in_thread(attempt, detail)

    @end_process_on_error
    def _run_loop(self) -> None:
        """Run the event loop as long as the process lives. ``stop``, and SystemExit and KeyboardInterrupt in a task
        that a stage started, would end it for all attempts; they are that attempt's alone, whose task holds the
        exception."""
        while not self._loop.is_closed():
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    @end_process_on_error
    def _start_tasks(self, begun: list[tuple[RunningAttempt, Runner]]) -> None:
        """Start attempts as tasks; this runs in the event loop, once for all that begin together."""
        for attempt, runner in begun:
            attempt.task = self._loop.create_task(self._run_as_task(attempt, runner), context=attempt.context)
            attempt.task.add_done_callback(partial(_require_end, attempt))

    async def _run_as_task(self, attempt: RunningAttempt, runner: Runner) -> None:
        """Run an ``async`` stage to its end. A CancelledError is a cancellation only if one was requested;
        otherwise the stage has cancelled itself, which is an error."""
        assignment = attempt.assignment
        try:
            if attempt.port.cancel_requested:
                # Not by cancelling the task: one that has not begun would end without a row.
                raise asyncio.CancelledError
            value = await runner(assignment.params, Job(assignment, attempt.port, self._stages.types))
            detail = result_rows.value_detail(assignment.stage, value)
        except asyncio.CancelledError as error:
            if attempt.port.cancel_requested:
                detail = result_rows.refusal_detail(Outcome.CANCELLED, "cancelled while it was running")
            else:
                detail = result_rows.error_detail(
                    error,
                    message="the stage cancelled its own task; return or raise Fail instead",
                    redact=self._stages.redactor(assignment.type, assignment.params).text,
                )
        except BaseException as error:  # noqa: BLE001 - as above
            detail = self._caught(attempt, error)
        self._leave_fork()
        attempt.stage_ended = True
        if attempt.document is not None or has_folder(self._root, assignment.job_id):
            # The disk may be slow. Nothing is awaited: a cancel request that comes now must not break this off.
            self._submit(self._end_in_thread, attempt, detail)
            return
        self._finish(attempt, detail)
        if not self._will_send:
            self._will_send = True
            self._loop.call_soon(self._send_of_this_turn)

    # --- ending ---------------------------------------------------------------------------

    def _caught(self, attempt: RunningAttempt, error: BaseException) -> result_rows.Detail:
        """Return the detail of an attempt that raised, and capture the frames of a failure."""
        assignment = attempt.assignment
        redactor = self._stages.redactor(assignment.type, assignment.params)
        detail = result_rows.exception_detail(assignment.stage, error, redactor, assignment.params)
        attempt.document = self._frames.capture(error, detail, assignment.type, assignment.stage, redactor)
        return detail

    def _leave_fork(self) -> None:
        """End this process if user code forked it and the fork has returned into the worker's code."""
        if os.getpid() != self._pid:
            os._exit(1)

    def _end_in_thread(self, attempt: RunningAttempt, detail: result_rows.Detail | None) -> None:
        """Sync an attempt's files, keep the frames of its failure, and report its end. It runs in a thread of
        the pool, because a disk may be slow."""
        assignment = attempt.assignment
        job_id = assignment.job_id
        if has_folder(self._root, job_id):
            detail = synced(detail, self._root, job_id, attempt.since_ns)
        if attempt.document is not None:
            self._frames.write(job_id, assignment.stage, assignment.fence, attempt.document)
        self._finish(attempt, detail)
        self._send_done()
        self._stop_if_ended()

    def _finish(self, attempt: RunningAttempt, detail: result_rows.Detail | None) -> None:
        """Make the row of an attempt that has ended, take it off the page, and begin those that wait for a
        line. The last running attempt also restores the process: leftover processes, descriptors and state
        can be nobody else's then. When that fails the worker ends."""
        fence = attempt.assignment.fence
        if attempt.stopped:
            detail = result_rows.refusal_detail(Outcome.RETURNED, "stopped with its worker")
        attempt.output.finish()
        _libc.fflush(None)
        more_fields: result_rows.Detail = {}
        if attempt.output.has_output:
            more_fields["output"] = True
        if self._marker.written_bytes() > attempt.written_bytes:
            more_fields["log"] = self._log_name
        if attempt.blocked_s:
            more_fields["blocked"] = [attempt.blocked_s, attempt.blocker]
        if more_fields:
            detail = (detail or {"outcome": Outcome.OK}) | more_fields
        is_unusable = False
        with self._lock:
            if len(self._running) == 1:
                self._end_leftovers()
                state = self._state
                is_unusable = (
                    not self._descriptors.restore()
                    or (state.changed and not state.restore())
                    or state.leaks_files()
                )
                self._ending |= is_unusable
            ended_us = time.time_ns() // 1000
            row = [fence, attempt.started_us, ended_us]
            self._done.append(row if detail is None else [*row, detail])
            self._page.finish(line=attempt.line)
            del self._running[fence]
            self._lines.append(attempt.line)
            self._begin_waiting()
        if is_unusable:
            self._end()

    def _leftovers(self) -> list[proctree.Proc]:
        """Return the processes below this one, without those that the application started when it was
        loaded."""
        return [proc for proc in proctree.descendants(os.getpid()) if proc.pid not in self._helpers]

    def _end_leftovers(self) -> None:
        """End remaining child processes: only the caller's attempt is running, so they belong to no other."""
        if proctree.reap() and self._leftovers():
            proctree.end_descendants(spare=self._helpers)

    @end_process_on_error
    def _send_of_this_turn(self) -> None:
        """Send the rows of all tasks that ended in this turn of the event loop."""
        self._will_send = False
        self._send_done()
        self._stop_if_ended()

    def _send_done(self) -> None:
        """Send finished rows, unless another thread does: that one sends also those that come meanwhile, because it
        checks again when it is done."""
        while self._done and self._sending.acquire(blocking=False):
            try:
                self._send_rows()
            finally:
                self._sending.release()

    def _send_rows(self) -> None:
        """Send all rows that there are, in one message; the caller holds ``_sending``."""
        sent = [self._done.popleft() for _ in range(len(self._done))]
        if sent:
            self._rows.send(self._requests.send, sent)

    def _send_output(self, fence: int, stream: str, text: str) -> None:
        self._requests.send({"output": [fence, stream, text]})

    def _cancel(self, fences: list[int]) -> None:
        """Make ``job.cancelled`` true for these attempts, and cancel their tasks. Attempts that have ended
        are passed over."""
        for fence in fences:
            attempt = self._running.get(fence)
            if attempt is not None:
                attempt.port.cancel_requested = True
                if attempt.is_async:
                    attempt.cancel_requested_s = attempt.cancel_requested_s or time.monotonic()
                    self._loop.call_soon_threadsafe(self._cancel_task, attempt, attempt.task)

    def _cancel_task(self, attempt: RunningAttempt, task: "asyncio.Task[None] | None") -> None:
        """Cancel the task of an attempt; this runs in the event loop. ``task``: the task, if there was one when that
        was requested; a later one looks for the request itself."""
        attempt.cancel_requested_s = None
        if task is not None:
            task.cancel()

    def _has_tasks(self) -> bool:
        return any(attempt.is_async for attempt in list(self._running.values()))

    def _on_blocked(self, seconds: float, fence: int) -> None:
        """Note for all other attempts in the event loop that the one with this fence has blocked it."""
        blocker = self._running.get(fence)
        if blocker is None:
            return
        name = f"stage {blocker.assignment.stage} of job {blocker.assignment.job_id}"
        now_us = time.time_ns() // 1000
        for attempt in list(self._running.values()):
            if attempt.is_async and attempt is not blocker:
                # An attempt that began during the blocking was blocked from its own start on.
                attempt.blocked_s += min(seconds, (now_us - attempt.started_us) / 1e6)
                attempt.blocker = name

    def _end(self) -> None:
        """Take no more attempts, hand back those that have not begun, and stop when the running ones have
        ended. It may be called again, by any thread."""
        with self._lock:
            self._ending = True
            back = [row[1] for _, _, row in self._waiting]
            self._waiting.clear()
        if back:
            self._requests.send({"back": back, "ending": True})
        # The loop's turn may never end, when a task blocks it.
        self._send_done()
        self._stop_if_ended()

    def _stop_if_ended(self) -> None:
        """Stop reading the socket, which ends ``run``, when nothing runs any more and all rows are sent."""
        if self._ending and not self._running:
            with self._sending:  # after a thread that is sending
                self._send_rows()
            self._channel.stop_reading()
