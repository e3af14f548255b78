"""The supervisor's side of one worker process: starting it, messages, ending it, detecting its death.

A ``Child`` belongs to the event loop that started it and reports through ``Events``. It detects the worker's death by a
pidfd, passes on the worker's last messages, ends the processes that it left behind, and only then calls ``exited``: an
attempt has ended when no descendant of it is left. The supervisor must be a child subreaper
(``proctree.become_subreaper``) for that, and must start nothing that is not in ``live_pids``."""

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from spinney.model.errors import SpinneyError
from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Schedule
from spinney.model.types import TypeSpec
from spinney.node.settings import NodeSettings
from spinney.node.workers import proctree
from spinney.node.workers.backlog import Backlog
from spinney.node.workers.boundaries import pipe_watch
from spinney.node.workers.shared_page import (
    CELL_CANCEL,
    CELL_RECALL,
    CELL_STACK,
    CONCURRENT_LINES,
    Running,
    SharedPage,
)
from spinney.node.workers.stack_memory import StackMemory
from spinney.node.workers.termination import signal_name
from spinney.node.workers.wire import WireError
from spinney.node.workers.worker_reports import Exit, Hello
from spinney.node.workers.worker_socket import WorkerSocket
from spinney.node.workers.worker_startup import FLUSH_SIGNAL, STACK_SIGNAL, WorkerStartup

log = logging.getLogger(__name__)

_LOOK_S = 0.02
"""How often it is checked whether a worker keeps rows back, or has ended, in seconds."""
_PIPE_BYTES = 256 * 2**10

Group = tuple[str, str, Sequence[Sequence[Any]]]
"""Type, stage and rows ``[job_id, fence, attempt, params, parent_id, root_id]``, with results behind them or not."""


class Events(Protocol):
    """Events of a worker, called in the loop's thread. Implementations must not block."""

    def hello(self, child: "Child", hello: Hello) -> None:
        """The worker is ready, or it ends with this error."""

    def done(self, child: "Child", rows: list[list[Any]]) -> None:
        """Attempts have ended; the package's docstring describes the rows."""

    def back(self, child: "Child", fences: list[int]) -> None:
        """Attempts are handed back without having begun."""

    def ask(self, child: "Child", number: int, fence: int, verb: str, args: dict[str, Any]) -> None:
        """A running attempt has sent a request, to be answered by ``child.answer(number, …)`` or ``child.refuse``."""

    def output(self, child: "Child", fence: int, stream: str, text: str) -> None:
        """An attempt in a ``--concurrent`` worker has printed something, which is for ``Pump.put``."""

    def blocked(self, child: "Child", blocker: int, late: list[int]) -> None:
        """A ``--concurrent`` worker, which is being ended, works for the attempt ``blocker`` in its event loop, so that
        cancel requests for the tasks of ``late`` have not been carried out. These are fences."""

    def exited(self, child: "Child", how: Exit) -> None:
        """The worker has ended and no process of it is left. This is the last event, and comes once.

        Its page is still mapped: when ``Pump.remove`` is done and its attempts are recorded, close the page
        (``child.page.close()``) and remove its file."""


class Child:
    """One worker process as its supervisor sees it: what it runs, what it sends, and how it ends."""

    def __init__(
        self,
        *,
        name: str,
        settings: NodeSettings,
        events: Events,
        page: Path,
        log_file: Path,
        live_pids: set[int],
        concurrent: bool = False,
        lock_fd: int | None = None,
        open_files: int | None = None,
        start_task: Callable[[Coroutine[Any, Any, None]], object] = asyncio.ensure_future,
    ) -> None:
        """``page``: the path of its page file. ``log_file``: its output outside attempts (``Pump.add``).
        ``live_pids``: the pids of all live children of this supervisor, which all share; each adds itself, and removes
        itself when it has been reaped. ``open_files``: its soft limit of open files; None: this process's own.
        ``start_task`` starts the task that reports the exit, and must handle a failure of it: ``exited`` is not called
        then."""
        self.name, self.concurrent = name, concurrent
        self.token = secrets.token_bytes(16)
        """The token of marks in the output, for ``Pump.add``."""
        self.log_file = log_file
        self.pid = 0
        self.stdout_fd = -1
        """The read end of its stdout, which the pump closes."""
        self.stderr_fd = -1
        self.rss_bytes = 0
        """Its resident memory at its last report."""
        self.ready = False
        """Whether it has sent ``hello`` without an error."""
        self.ending = False
        """Whether it has handed back attempts because it is ending, although it was not told to."""
        self.outstanding = 0
        """The number of attempts sent to it that it has neither reported nor handed back."""
        self._settings, self._page_path, self._start_task = settings, page, start_task
        self._events, self._live_pids = events, live_pids
        self._lock_fd, self._open_files = lock_fd, open_files
        self._lists = 0
        """How many lists of attempts were sent to it."""
        self._recalled_unheard = 0
        """The last list that was recalled at the last look, if nothing had come from it by then."""
        self._backlog = Backlog()
        self._done_rows = 0
        self._done_rows_before = 0
        """``_done_rows`` at the last look for rows that are kept back."""
        self._timer: asyncio.TimerHandle | None = None
        self._forced = False
        """Whether ``kill_attempt`` is ending it."""
        self._ended = asyncio.Event()

    def start(self) -> None:
        """Start the process. Raises OSError when that is impossible; nothing is left of the try then."""
        self._loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as anyway:
            self.page = SharedPage.create(self._page_path, lines=CONCURRENT_LINES if self.concurrent else 1)
            on_failure.callback(self._page_path.unlink, missing_ok=True)
            on_failure.callback(self.page.close)
            self.stack_memory = StackMemory()
            on_failure.callback(self.stack_memory.close)
            own_socket, worker_socket = socket.socketpair()
            on_failure.callback(own_socket.close)
            anyway.callback(worker_socket.close)
            pipes = []
            for _ in ("stdout", "stderr"):
                read_end, write_end = _pipe()
                on_failure.callback(os.close, read_end)
                anyway.callback(os.close, write_end)
                pipes.append((read_end, write_end))
            watch = anyway.enter_context(pipe_watch(end for end, _ in pipes))
            self._process = self._spawn(worker_socket.fileno(), pipes[0][1], pipes[1][1], watch.fileno())
            on_failure.callback(self._process.wait)
            on_failure.callback(self._process.kill)
            self._pidfd = os.pidfd_open(self._process.pid)
            on_failure.pop_all()
        self.pid = self._process.pid
        self._live_pids.add(self.pid)
        self._proc = proctree.identify(self.pid)
        self.stdout_fd, self.stderr_fd = pipes[0][0], pipes[1][0]
        self._worker_socket = WorkerSocket(own_socket, self._received, self._broken)
        self._loop.add_reader(self._pidfd, self._died)

    # --- messages to it --------------------------------------------------------------------

    def send_run(self, groups: Sequence[Group]) -> None:
        """Send it attempts to run, in this order, behind those that it has."""
        self._lists += 1
        self.outstanding += sum(len(rows) for _, _, rows in groups)
        self._worker_socket.send({"run": groups})
        self._look_later()

    def answer(self, number: int, value: Any) -> None:
        """Answer a request of a running attempt."""
        self._worker_socket.send({"answer": number, "value": value})

    def refuse(self, number: int, error: Exception) -> None:
        """Answer a request with an exception, which the attempt raises."""
        self._worker_socket.send({"answer": number, "error": [type(error).__name__, str(error)]})

    def recall(self) -> None:
        """Recall all attempts that were sent so far and have not begun; ``back`` reports them.

        A worker in user code answers as soon as its interpreter checks signals: at once, unless it is inside a long
        call of C code. Attempts that it has not read yet it only hands back after the running one. So check
        ``blocking_fence``, too."""
        if self.alive:
            self.page.cells[CELL_RECALL] = self._lists
            self._signal(FLUSH_SIGNAL)

    def blocking_fence(self) -> int:
        """Return the attempt behind which no sent attempt begins any more, because they were recalled, so that they can
        be taken back without the worker's answer. 0: there is none, or it is not known yet (call again later)."""
        return (
            0 if self.concurrent or not self.alive else self._backlog.blocking_fence(self.page, self._lists)
        )

    def begins_nothing(self) -> bool:
        """Return whether nothing that was sent to it will ever begin, because all of it was recalled while it loaded
        the application: it says hello before it reads a list, and looks at the recall before it begins one. To be
        called once a tick: it is known at the second call, before which its socket has been looked at."""
        if not self.alive or self._worker_socket.has_received:
            return False
        before, self._recalled_unheard = self._recalled_unheard, self.page.cells[CELL_RECALL]
        return before == self._recalled_unheard == self._lists != 0

    def take_back(self, fences: Sequence[int]) -> None:
        """Note that these attempts are taken back: the worker's own messages about them are ignored."""
        self._backlog.take(fences)
        self.outstanding -= len(fences)

    def request_cancel(self, fence: int) -> None:
        """Make ``job.cancelled`` true for this attempt (and cancel its task if it is async)."""
        if self.concurrent:
            self._worker_socket.send({"cancel": [fence]})
        elif self.alive:
            self.page.cells[CELL_CANCEL] = fence

    def request_stacks(self, fence: int) -> None:
        """Let the worker write where it stands, for this attempt, into ``stack_memory``."""
        if self.alive:
            self.page.cells[CELL_STACK] = fence
            self._signal(FLUSH_SIGNAL)

    def request_raw_stacks(self) -> None:
        """As ``request_stacks``, by a worker whose interpreter does not handle signals: the threads' stacks alone."""
        if self.ready:
            self._signal(STACK_SIGNAL)

    def end(self) -> None:
        """Ask the worker to finish running attempts, hand back the rest and exit."""
        self.recall()
        self._worker_socket.send({"end": True})

    # --- its state --------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Return whether the process has been started and has not ended completely."""
        return self.pid != 0 and not self._ended.is_set()

    def measure_memory(self) -> None:
        """Measure its resident memory; an idle worker does not report it."""
        self.rss_bytes = proctree.rss_bytes(self.pid) if self.alive else 0

    def running(self) -> list[Running]:
        """Return the attempts that have begun in it and have not ended; empty when it has exited."""
        return self.page.running() if self.alive else []

    async def wait(self) -> None:
        """Wait until it has ended and no process of it is left."""
        await self._ended.wait()

    # --- killing an attempt, ending the process -------------------------------------------

    async def kill_attempt(self, grace_s: float) -> None:
        """End the worker and all its descendants: TERM, ``grace_s`` seconds, KILL. In a ``--concurrent`` worker only
        the worker itself gets TERM and passes it on to its descendants, after it has noted whose results that
        invalidates.

        Returns when no process is left and ``exited`` has been called. It may be called twice; the shorter grace
        applies."""
        if not self.alive:
            return
        if not self._forced:
            self._forced = True
            processes = self._remaining()
            proctree.kill_all(processes[:1] if self.concurrent else processes, signal.SIGTERM)
        deadline = self._loop.time() + grace_s
        while self.alive and self._loop.time() < deadline and self._remaining():
            await self._wait_for_end(deadline - self._loop.time())
            # When another thread has received TERM, this wakes the main thread, which runs the handler.
            self._signal(FLUSH_SIGNAL)
        warn_at = self._loop.time() + proctree.WARN_S
        while self.alive and (remaining := self._remaining()):
            proctree.kill_all(remaining, signal.SIGKILL)
            await self._wait_for_end(_LOOK_S)
            if self._loop.time() > warn_at:
                proctree.log_unended(remaining)
                warn_at += proctree.WARN_S
        await self._ended.wait()

    def _remaining(self) -> list[proctree.Proc]:
        """Return the worker with its descendants; when it is dead, the processes that it left to this one."""
        if self.pid not in self._live_pids:
            return proctree.strays(self._live_pids)
        own = [] if self._proc is None else [self._proc]
        return own + proctree.descendants(self.pid)

    async def _wait_for_end(self, timeout_s: float) -> None:
        """Wait a little for the end. It is polled, because processes may still fork."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LOOK_S, timeout_s)):
                await self._ended.wait()

    # --- messages from it ---------------------------------------------------------------

    def _received(self, message: Any) -> None:
        """Pass a message of the worker on as an event. Raises WireError for one that is of no known kind."""
        match message:
            case {"done": rows}:
                self.rss_bytes = message.get("rss", self.rss_bytes)
                self._done_rows += len(rows)
                self.outstanding -= len(rows)
                self._events.done(self, rows)
            case {"ask": number, "fence": fence, "verb": verb, "args": args}:
                self._events.ask(self, number, fence, verb, args)
            case {"back": fences, **more}:
                self.ending |= "ending" in more
                back = self._backlog.not_taken(fences)
                self.outstanding -= len(back)
                self._events.back(self, back)
            case {"output": [fence, stream, text]}:
                self._events.output(self, fence, stream, text)
            case {"blocked": blocker, "late": fences}:
                self._events.blocked(self, blocker, fences)
            case {"hello": hello}:
                self._greeted(hello)
            case _:
                raise WireError(f"worker {self.name} sent {list(message)!r}; does it run another version?")

    def _broken(self, error: Exception) -> None:
        """Kill a worker whose messages cannot be read, or whose event failed: nobody knows what it runs."""
        unforeseen = None if isinstance(error, SpinneyError) else error
        log.error(
            "worker %s is ended because it cannot be understood: %s", self.name, error, exc_info=unforeseen
        )
        self._signal(signal.SIGKILL)

    def _greeted(self, hello: dict[str, Any]) -> None:
        """Report that the worker is ready, or why it is not; kill one whose description of its application cannot be
        read."""
        try:
            greeting = Hello(
                store=hello.get("store"),
                types=tuple(map(TypeSpec.from_json, hello.get("types", ()))),
                queues=tuple(QueueSpec.from_json(queue) for queue in hello.get("queues", ())),
                locks=tuple(LockCapacity(**lock) for lock in hello.get("locks", ())),
                schedules=tuple(Schedule.from_json(s["name"], s) for s in hello.get("schedules", ())),
                error=hello.get("error"),
            )
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it becomes one sentence
            why = (
                f"its description of the application cannot be read ({type(error).__name__}: {error}); "
                f"see that node and application use the same version of spinney"
            )
            if isinstance(error, SpinneyError):
                why = str(error)
            greeting = Hello(error=f"the worker cannot serve: {why}")
            self._signal(signal.SIGKILL)
        self.ready = greeting.error is None
        self._events.hello(self, greeting)

    def _look_later(self) -> None:
        """Look for rows that are kept back in a moment, and as often as that finds attempts in the worker."""
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        """Fetch rows that a worker keeps back. It does so for quick attempts, to send many at once. When one behind
        them then takes long (or blocks the event loop of a ``--concurrent`` worker), the page shows that more have
        ended than were reported."""
        self._timer = None
        if not self.alive or self.outstanding <= 0:
            return
        kept_back = self.page.done() > self._done_rows == self._done_rows_before
        # The first signal may have come before the worker read the list.
        recalled = (
            not self.concurrent and self.page.cells[CELL_RECALL] == self._lists and self.outstanding > 1
        )
        if kept_back or recalled:
            self._signal(FLUSH_SIGNAL)
        self._done_rows_before = self._done_rows
        self._look_later()

    def _signal(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended, which is reported elsewhere."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._pidfd, number)

    # --- its end --------------------------------------------------------------------------

    def _died(self) -> None:
        """Read its last messages, reap it, and start what follows its exit; the pidfd says that it is dead."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        self._worker_socket.drain()
        self._worker_socket.close()
        code = self._process.wait()  # returns at once, because the process is dead
        self._live_pids.discard(self.pid)
        self._exit_task = self._start_task(self._after_exit(code))

    async def _after_exit(self, code: int) -> None:
        """End its remaining processes, and report the exit. Processes that are being killed keep their grace period,
        unless another worker dies meanwhile: it is not known to which worker a stray belongs."""
        look = proctree.strays if self._forced else proctree.reap_strays
        while look(self._live_pids):  # noqa: ASYNC110 - no event tells the end of what may still multiply
            await asyncio.sleep(_LOOK_S / 4)
        how = Exit(
            code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else None,
            running=tuple(self.page.running()),
            unreported=max(0, self.page.done() - self._done_rows),
            forced=self._forced,
        )
        if self._timer is not None:
            self._timer.cancel()
        self.stack_memory.close()
        self._ended.set()
        self._events.exited(self, how)

    def _spawn(self, socket_fd: int, out_fd: int, err_fd: int, pipe_watch_fd: int) -> subprocess.Popen[bytes]:
        """Start the process with its ends of the socket and the pipes."""
        handover = WorkerStartup(
            parent_pid=os.getpid(),
            socket_fd=socket_fd,
            page_fd=self.page.fd,
            lock_fd=self._lock_fd,
            open_files=self._open_files,
            boundary_token=self.token.hex(),
            log=self.log_file.name,
            folder_root=str(Path(self._settings.folders)),
            postmortem_bytes=self._settings.postmortem_bytes,
            postmortem_depth=self._settings.postmortem_depth,
            stack_fd=self.stack_memory.fd,
            pipe_watch_fd=pipe_watch_fd,
        )
        concurrent = ["--concurrent"] if self.concurrent else []
        lock = [] if self._lock_fd is None else [self._lock_fd]
        return subprocess.Popen(
            [sys.executable, "-m", "spinney.node.worker.worker", self._settings.app, *concurrent],
            stdin=subprocess.DEVNULL,
            stdout=out_fd,
            stderr=err_fd,
            pass_fds=[socket_fd, self.page.fd, self.stack_memory.fd, pipe_watch_fd, *lock],
            env=os.environ | handover.to_env(),
            start_new_session=True,
        )


def _pipe() -> tuple[int, int]:
    """Return a pipe large enough that a worker need not wait for the pump; smaller where the kernel refuses that
    size."""
    ends = os.pipe()
    try:
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        log.debug("pipes of this user have their default size")
    return ends
