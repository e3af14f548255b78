"""The worker that runs one attempt at a time: ``process``, ``cold`` and ``program`` stages.

The loop is the hot path: a list of small jobs comes in, a list of rows goes out, and between two attempts it does only
what the guarantees need:

1. is it recalled? then everything that has not begun goes back;
2. write fence and time on the page, run the stage in a context of its own (``contextvars``), make its row;
3. flush Python's and C's buffers; restore standard streams, working directory and ``process_state``;
   end the processes that the attempt left behind; set a mark if anything was written; sync its folder;
4. pass the row on, then remove the fence from the page. The row is sent at once when the attempt took
   longer than a millisecond or the list is empty, else with others.

Rows that wait behind a long attempt are fetched by a signal (``worker_startup.FLUSH_SIGNAL``), whose handler interrupts
user code and sends them; so does a recall. State that cannot be restored, a thread or a process that was left behind,
and many open files end this worker after that attempt: the jobs behind it go back, and another worker takes its place.
All sending is under one lock; a handler that finds it taken returns, and the supervisor repeats the signal."""

import _thread
import contextlib
import ctypes
import os
import sys
import time
from contextvars import copy_context
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from spinney.define.job import Assignment, Job
from spinney.model.outcomes import Outcome
from spinney.node.worker import result_rows
from spinney.node.worker.attempt_tools import AttemptTools
from spinney.node.worker.ports import SerialChannel, SerialPort
from spinney.node.worker.process_state import ProcessState, SavedDescriptors
from spinney.node.worker.sync import FolderlessJobs, clock_ns, has_folder, opened, synced
from spinney.node.worker.threads import LeftoverThreads
from spinney.node.workers import proctree
from spinney.node.workers.shared_page import CELL_DONE, CELL_LINE, CELL_RECALL, CELL_STACK
from spinney.node.workers.stack_dump import thread_stacks
from spinney.node.workers.termination import Terminated
from spinney.tracing.current import attempt_context

_TRACE_AT = 1
"""The index of a job's trace among the extras of its row."""
_QUICK_US = 1000
"""A row of an attempt that took longer is sent at once, in microseconds."""
_KEEP_US = 2000
"""Rows of quick attempts are kept for so long at most, in microseconds, and up to ``_KEEP_ROWS`` of them."""
_KEEP_ROWS = 100

# Calls that keep the interpreter's lock: they take less time than releasing it. Their arguments are small integers and
# NULL, which need no declared types: checking those would cost a third more.
_libc = ctypes.PyDLL(None)
_fflush, _waitpid = _libc.fflush, _libc.waitpid


class SerialWorker:
    """The worker's loop and its state."""

    def __init__(self, channel: SerialChannel, tools: AttemptTools) -> None:
        self._channel = channel
        self._page, self._marker, self._stages = tools.page, tools.marker, tools.stages
        self._root, self._frames, self._stacks = tools.folder_root, tools.frames, tools.stacks
        self._folders = Path(self._root)
        self._document: bytes | None = None
        """The frames of the attempt that has just failed, until its folder is synced."""
        self._forked = False
        """Whether this is a process that user code forked from the worker."""
        os.register_at_fork(after_in_child=self._note_fork)
        self._out, self._err = sys.stdout, sys.stderr
        self._descriptors = SavedDescriptors()
        self._helpers = frozenset(p.pid for p in proctree.descendants(os.getpid()))
        """Processes that the application started when it was loaded, before any attempt."""
        self._folderless = FolderlessJobs(tools.folder_root)
        self._lists = 0
        self._ordinal = 0
        self._groups: list[list[Any]] = []
        """The rest of the current list in reverse order: [type, stage, rows in reverse order]."""
        self._done: list[list[Any]] = []
        self._kept_since_us = 0
        self._rows = result_rows.ResultSender()
        self._stop = False
        self.threads_left = False
        """Whether threads of an attempt are still running."""

    def run(self, state: ProcessState) -> None:
        """Serve until the supervisor sends ``end`` or is gone, or until this process must not continue. ``state``: the
        process state, which is restored after each attempt."""
        self._state, self._threads = state, LeftoverThreads()
        while not self._stop and (message := self._channel.receive()) is not None:
            if "run" in message:
                self._lists += 1
                self._ordinal = self._lists
                self._groups = message["run"][::-1]
                self._run_list()
            elif "end" in message:
                return
        if self.threads_left:
            # After the mark that ends the last attempt's output: what follows it goes to the worker's log.
            self._err.write(
                f"{self._threads} still run after the attempt that started them, so this worker is replaced; "
                f"join threads before a stage returns, or start them when the application is loaded\n"
            )
            self._flush()

    def on_flush_signal(self, interrupted: FrameType | None) -> None:
        """Write requested stacks, and send finished rows. It is called by a signal handler, in the main thread, at any
        point; ``interrupted``: where that is."""
        if self._page.cells[CELL_STACK] and not self._forked:
            self._page.cells[CELL_STACK] = 0
            self._stacks.write(thread_stacks(interrupted))
        if self._forked or not self._channel.lock.acquire(blocking=False):
            return
        try:
            self._send_done()
            if self._page.cells[CELL_RECALL] >= self._ordinal:
                self._send_back()
        finally:
            self._channel.lock.release()

    def last_words(self) -> None:
        """Send finished rows before TERM ends this process, unless the signal has interrupted just that: then
        half of a message may be sent, and nothing can follow it."""
        if self._channel.lock.acquire(blocking=False):
            self._send_done()

    # --- the loop -------------------------------------------------------------------------

    def _run_list(self) -> None:
        """Run the attempts of one message, group by group, until all have run, the list is recalled, or this
        process must not continue. Then send the rows that are left, and hand back what has not begun."""
        self._folderless.forget()
        # Before anything is written there, and not for longer: the file system may be unmounted.
        root = opened(self._root)
        while self._groups and not self._stop:
            type_, stage, waiting = self._groups[-1]
            waiting.reverse()
            self._run_group(type_, stage, waiting, root)
            if waiting:
                break  # recalled: attempts that have not begun go back below
            if self._groups:
                self._groups.pop()
        if root is not None:
            with contextlib.suppress(OSError):  # closed by user code
                os.close(root)
        with self._channel.lock:
            self._send_done()
            self._send_back()
        self._stop |= self._state.leaks_files()

    def _run_group(self, type_: str, stage: str, waiting: list[Any], descriptor: int | None) -> None:
        """Run the attempts of one stage: the hot path, in the steps that the module's docstring lists.
        ``waiting`` has the rows in reverse order, and keeps those that have not begun; ``descriptor``: that of the
        folder root."""
        # Local names for what is looked up thousands of times a second.
        cells, channel, types, ordinal = self._page.cells, self._channel, self._stages.types, self._ordinal
        begin, wrote, now_ns = self._page.begin, self._marker.wrote, time.time_ns
        root, folders, folderless = self._root, self._folders, self._folderless
        restore_place, calls, environ = self._descriptors.restore, self._state.calls, self._state.environ
        count_threads, threads_before = _thread._count, self._threads.count
        runner, unused = self._stages.blocking(type_, stage), self._unused_handle(type_, stage, folders)
        while waiting and not (cells[CELL_RECALL] >= ordinal or self._stop):
            job_id, fence, attempt, params, parent_id, root_id, *extras = waiting.pop()
            started_us, since_ns = now_ns() // 1000, clock_ns()
            begin(fence, started_us)
            channel.fence = fence
            job = unused or Job(
                Assignment(
                    job_id, fence, type_, stage, attempt, params, parent_id, root_id, folders, *extras
                ),
                SerialPort(channel, fence),
                types,
            )
            try:
                context = (
                    attempt_context(extras[_TRACE_AT], fence) if len(extras) > _TRACE_AT else copy_context()
                )
                value = context.run(runner, params, job)
                detail = None if value is None else result_rows.value_detail(stage, value)
            except BaseException as error:  # noqa: BLE001 - any exception ends the attempt
                detail = self._caught(type_, stage, params, error)
            if self._forked:
                self._leave_fork(None)
            self._flush()
            if not restore_place() or (
                (calls.noted or os.environ is not environ) and not self._state.restore()
            ):
                self._stop = True  # the next attempt would not find what it may expect
            if count_threads() > threads_before and not self._threads.have_ended():
                self._stop = self.threads_left = True
            if _waitpid(-1, None, os.WNOHANG) != -1:
                self._end_leftovers()
            if job.folder_requested or (job_id not in folderless and has_folder(root, job_id)):
                detail = synced(detail, root, job_id, since_ns, descriptor)
            if detail is not None and self._document is not None:
                self._frames.write(job_id, stage, fence, self._document)
                self._document = None
            if wrote():
                self._marker.set(fence)
                detail = (detail or {"outcome": Outcome.OK}) | {"output": True}
            ended_us = now_ns() // 1000
            channel.fence = 0
            cells[CELL_DONE] += 1
            # Reported before it is removed from the page: if the worker dies while sending it, it must count as begun.
            self._report(
                [fence, started_us, ended_us] if detail is None else [fence, started_us, ended_us, detail]
            )
            cells[CELL_LINE] = 0

    def _unused_handle(self, type_: str, stage: str, folders: Path) -> Job | None:
        """Return the one handle that is passed to all attempts of a function that takes none; None: it takes one."""
        if self._stages.takes_handle(type_, stage):
            return None
        assignment = Assignment(0, 0, type_, stage, 0, "{}", None, 0, folders)
        return Job(assignment, SerialPort(self._channel, 0), self._stages.types)

    # --- the end of an attempt ------------------------------------------------------------

    def _caught(self, type_: str, stage: str, params: str, error: BaseException) -> result_rows.Detail:
        """Return the detail of an attempt that raised, and capture the frames of a failure. Raises Terminated
        again, which ends the worker; a forked process ends here."""
        if self._forked:
            self._leave_fork(error)
        if isinstance(error, Terminated):
            # Its output is flushed first, so that the pump assigns it to this attempt.
            self._flush()
            raise error
        redactor = self._stages.redactor(type_, params)
        detail = result_rows.exception_detail(stage, error, redactor, params)
        self._document = self._frames.capture(error, detail, type_, stage, redactor)
        return detail

    def _note_fork(self) -> None:
        self._forked = True

    def _leave_fork(self, error: BaseException | None) -> NoReturn:
        """End a process that user code forked, and that has returned into the worker's code."""
        code = 0 if error is None else 1
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        self._flush()
        os._exit(code)

    def _flush(self) -> None:
        """Flush what was printed, Python's buffers and C's, and put the worker's own streams back. Streams
        that the attempt has closed are made anew."""
        if sys.stdout is not self._out or sys.stderr is not self._err:
            for replaced in (sys.stdout, sys.stderr):
                # A user's own object may raise whatever it likes.
                with contextlib.suppress(Exception):
                    replaced.flush()
            sys.stdout, sys.stderr = self._out, self._err
        try:
            self._out.flush()
            self._err.flush()
        except (OSError, ValueError):
            # The attempt has closed them, and their buffers are lost: the next one gets new ones.
            self._descriptors.restore()
            self._out = sys.stdout = _line_by_line(1)
            self._err = sys.stderr = _line_by_line(2)
        _fflush(None)

    def _end_leftovers(self) -> None:
        """End the processes that an attempt left running, because it has ended only when no descendant is left; and
        this process, because it may share state with them."""
        if not proctree.reap():
            return
        if all(p.pid in self._helpers for p in proctree.descendants(os.getpid())):
            return
        self._stop = True
        proctree.end_descendants()

    # --- sending rows --------------------------------------------------------------------------

    def _report(self, row: list[Any]) -> None:
        """Pass on the row of an attempt: it is sent at once if the attempt was not quick, or if many rows or
        old ones are kept."""
        done, ended_us = self._done, row[2]
        if not done:
            self._kept_since_us = ended_us
        done.append(row)
        if (
            ended_us - row[1] > _QUICK_US
            or len(done) >= _KEEP_ROWS
            or ended_us - self._kept_since_us > _KEEP_US
        ):
            with self._channel.lock:
                self._send_done()

    def _send_done(self) -> None:
        """Send finished rows; the caller holds the lock."""
        if not self._done:
            return
        sent, self._done = self._done, []
        self._rows.send(self._channel.send, sent)

    def _send_back(self) -> None:
        """Hand back the attempts of the list that have not begun; the caller holds the lock."""
        back = [row[1] for group in self._groups for row in group[2]]
        for group in self._groups:
            group[2].clear()
        if back:
            self._channel.send({"back": back})


def _line_by_line(fd: int) -> TextIO:
    """Return a text stream for this descriptor that writes each line at once, and does not close the
    descriptor."""
    return os.fdopen(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
