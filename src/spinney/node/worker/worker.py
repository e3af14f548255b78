"""A worker process: ``python -m spinney.node.worker.worker MODULE:ATTRIBUTE [--concurrent]``.

Only the supervisor starts it (``child``). It loads the user's application, sends ``hello``, and serves until the
supervisor ends it or is gone, or a signal ends it."""

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO, cast

from spinney.host.standard_streams import reopened
from spinney.model.errors import SpinneyError
from spinney.node.worker.attempt_output import RoutedStream
from spinney.node.worker.ports import SerialChannel
from spinney.node.worker.process_state import CallRecorder, ProcessState
from spinney.node.workers import proctree, worker_startup
from spinney.node.workers.boundaries import BoundaryWriter
from spinney.node.workers.shared_page import SharedPage
from spinney.node.workers.stack_dump import StackDump
from spinney.node.workers.termination import Terminated, die_of, on_term, raise_terminated
from spinney.node.workers.wire import Channel
from spinney.node.workers.worker_startup import FLUSH_SIGNAL, WorkerStartup

if TYPE_CHECKING:
    from spinney.define.jobtype import JobType
    from spinney.node.worker.attempt_tools import AttemptTools

Serve = Callable[[], int]
"""Serves attempts until the end, and returns the exit code."""

EXIT_UNLOADABLE = 2
"""The application cannot be loaded."""
EXIT_GONE = 1
"""The supervisor is gone."""


_IOLBF = 1
"""The mode of stdio.h's ``setvbuf`` for line by line."""


def main() -> int:
    """Run the worker; return the exit code.

    The order matters: the process is bound to its supervisor before it loads anything, and functions and
    streams are replaced before user code is imported, which may keep references to them."""
    startup = worker_startup.take()
    proctree.die_with_parent(startup.parent_pid)
    proctree.become_subreaper()
    proctree.end_first_without_memory()
    proctree.keep_spare_descriptors()
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=startup.socket_fd), _signals())
    concurrent = "--concurrent" in sys.argv[2:]
    calls = CallRecorder()
    calls.watch()
    if concurrent:
        # Before user code may keep a reference to either.
        sys.stdout = cast(TextIO, RoutedStream("stdout", sys.stdout))
        sys.stderr = cast(TextIO, RoutedStream("stderr", sys.stderr))
    else:
        # Line by line, so that output can be read while a stage runs.
        cast(Any, sys.stdout).reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
        _line_buffer_c_output()
    try:
        prepare = _prepare_concurrent if concurrent else _prepare_serial
        serve = _load(sys.argv[1], channel, lambda types: prepare(types, startup, channel, calls))
        return EXIT_UNLOADABLE if serve is None else serve()
    except Terminated:
        die_of(signal.SIGTERM)
    except ConnectionError:
        return EXIT_GONE


def _line_buffer_c_output() -> None:
    """Let C code in this process write its standard output line by line, too, in order with what Python writes."""
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _IOLBF, 0)


def _signals() -> socket.socket:
    """Return a socket to which Python writes when a signal arrives, in any thread."""
    read_end, write_end = socket.socketpair()
    for end in (read_end, write_end):
        end.setblocking(False)
    # Detached, because it must stay open as long as the process.
    signal.set_wakeup_fd(write_end.detach(), warn_on_full_buffer=False)
    return read_end


def _load(target: str, channel: Channel, prepare: Callable[["Mapping[str, JobType]"], Serve]) -> Serve | None:
    """Load the application, prepare for its attempts, and send its job types to the supervisor. Return what serves
    until the end; None when the application cannot be loaded, or leaves too few files to be opened."""
    try:
        # Imported here, so that its errors are reported like those of the application.
        from spinney.app.loader import load_app
        from spinney.define.stage_guard import storeless

        # A stream that stays closed would give its number to the shared page, and what jobs print would go there.
        with storeless(), reopened():
            app = load_app(target)
        hello = {
            "store": app.named_store,
            "types": [kind.spec.to_json() for kind in app.types.values()],
            "queues": [queue.to_json() for queue in app.queues],
            "locks": [asdict(lock) for lock in app.locks],
            "schedules": [{"name": name, **schedule.to_json()} for name, schedule in app.schedules.items()],
        }
        run = prepare(app.types)
    except Terminated:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's module may call exit, too
        traceback.print_exc()
        sentence = f"loading {target!r} failed with {type(error).__name__}: {error}; fix it"
        if isinstance(error, SpinneyError):
            sentence = str(error)
        channel.send({"hello": {"error": sentence}})
        return None
    channel.send({"hello": hello})

    def serve() -> int:
        with storeless(app):
            return run()

    return serve


def _prepare_serial(
    types: "Mapping[str, JobType]", startup: WorkerStartup, channel: Channel, calls: CallRecorder
) -> Serve:
    """Prepare to serve one attempt at a time. A worker with threads left ends without waiting for them."""
    from spinney.node.worker.serial_worker import SerialWorker

    tools = _tools(startup, types)
    serial = SerialWorker(SerialChannel(channel, tools.page), tools)
    signal.signal(FLUSH_SIGNAL, lambda _, frame: serial.on_flush_signal(frame))
    signal.siginterrupt(FLUSH_SIGNAL, False)
    on_term(raise_terminated)
    state = ProcessState(calls, signals=True)

    def serve() -> int:
        try:
            serial.run(state)
        except Terminated:
            serial.last_words()
            raise
        if serial.threads_left:
            # Python would wait for them, perhaps for ever.
            os._exit(0)
        return 0

    return serve


def _prepare_concurrent(
    types: "Mapping[str, JobType]", startup: WorkerStartup, channel: Channel, calls: CallRecorder
) -> Serve:
    """Prepare to serve many attempts at a time. After TERM the process dies of that signal, so that the supervisor sees
    the cause."""
    from spinney.node.worker.concurrent_worker import ConcurrentWorker
    from spinney.node.worker.threads import LeftoverThreads

    concurrent = ConcurrentWorker(channel, _tools(startup, types), startup.log)
    terminated = threading.Event()

    def terminate() -> None:
        terminated.set()
        # A thread, because the handler may have interrupted the holder of the worker's lock.
        threading.Thread(target=concurrent.terminate, name="terminate", daemon=True).start()

    signal.signal(FLUSH_SIGNAL, lambda _, frame: concurrent.on_flush_signal(frame))
    on_term(terminate)
    threads, state = LeftoverThreads(), ProcessState(calls, signals=False)

    def serve() -> int:
        concurrent.run(state)
        if terminated.is_set():
            die_of(signal.SIGTERM)
        # With daemon threads alone the process may end as usual: Python does not wait for them, and runs the functions
        # of atexit, of which one may flush what such a thread has collected.
        if not threads.have_ended(daemons=False):
            with contextlib.suppress(OSError, ValueError):  # closed by user code
                sys.stdout.flush()
                sys.stderr.flush()
            # Python would wait for the other threads, perhaps for ever. All rows have been sent.
            os._exit(0)
        return 0

    return serve


def _tools(startup: WorkerStartup, types: "Mapping[str, JobType]") -> "AttemptTools":
    """Return the objects that the worker needs for its attempts. It is imported only here, after the application."""
    from spinney.node.worker.attempt_tools import AttemptTools
    from spinney.node.worker.failure_frames import FailureFrames
    from spinney.node.worker.stage_runners import StageRunners

    page = SharedPage(startup.page_fd)
    marker = BoundaryWriter(page, bytes.fromhex(startup.boundary_token), startup.pipe_watch_fd)
    sys.stdout.flush()
    sys.stderr.flush()
    if marker.wrote():
        marker.set(0)  # output of loading the application belongs to no attempt
    return AttemptTools(
        page=page,
        marker=marker,
        stages=StageRunners(
            types,
            () if startup.lock_fd is None else (startup.lock_fd,),
            keeps_frames=startup.postmortem_bytes > 0,
        ),
        frames=FailureFrames(
            startup.folder_root, types, most_bytes=startup.postmortem_bytes, depth=startup.postmortem_depth
        ),
        stacks=StackDump(startup.stack_fd),
        folder_root=startup.folder_root,
    )


if __name__ == "__main__":
    sys.exit(main())
