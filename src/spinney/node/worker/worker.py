"""A worker process: ``python -m spinney.node.worker.worker MODULE:ATTRIBUTE [--concurrent]``.

Started by the supervisor only (``child``). Loads the user's application, says hello, and serves
until it is told to end, the supervisor is gone, or a signal ends it.
"""

import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO, cast

from spinney.model.errors import SpinneyError
from spinney.node.worker.attempt_output import RoutedStream
from spinney.node.worker.ports import SerialPort
from spinney.node.worker.process_state import CallRecorder, ProcessState
from spinney.node.workers import proctree, worker_startup
from spinney.node.workers.boundaries import BoundaryWriter
from spinney.node.workers.shared_page import SharedPage
from spinney.node.workers.termination import Terminated, die_of, on_term, raise_terminated
from spinney.node.workers.wire import Channel
from spinney.node.workers.worker_startup import FLUSH_SIGNAL, WorkerStartup

if TYPE_CHECKING:
    from spinney.app import Spinney
    from spinney.define.jobtype import JobType

EXIT_UNLOADABLE = 2
"""The application cannot be loaded."""
EXIT_GONE = 1
"""The supervisor is gone."""


def main() -> int:
    """Be a worker; returns the exit code."""
    given = worker_startup.take()
    proctree.die_with_parent(given.parent_pid)
    proctree.become_subreaper()
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=given.socket_fd), _signals())
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
    try:
        app = _load(sys.argv[1], channel)
        if app is None:
            return EXIT_UNLOADABLE
        from spinney.app import storeless  # loaded by now

        with storeless(app):
            return (_run_concurrent if concurrent else _run_serial)(app.types, given, channel, calls)
    except Terminated:
        die_of(signal.SIGTERM)
    except ConnectionError:
        return EXIT_GONE


def _signals() -> socket.socket:
    """Where Python says that a signal has come, in whatever thread."""
    here, there = socket.socketpair()
    for end in (here, there):
        end.setblocking(False)
    # Detached, because it must stay open as long as the process.
    signal.set_wakeup_fd(there.detach(), warn_on_full_buffer=False)
    return here


def _load(target: str, channel: Channel) -> "Spinney | None":
    """The application, its job types introduced to the supervisor; None when it cannot be loaded."""
    try:
        # Imported here, so that what is wrong with it is told like what is wrong with the user's.
        from spinney.app import load_app, storeless

        with storeless():
            app = load_app(target)
        hello = {
            "pid": os.getpid(),
            "types": [kind.spec.to_json() for kind in app.types.values()],
            "queues": [queue.to_json() for queue in app.queues],
            "locks": [lock.to_json() for lock in app.locks],
            "schedules": [{"name": name, **made.to_json()} for name, made in app.schedules.items()],
        }
    except BaseException as error:  # noqa: BLE001 - a user's module may call exit, too
        traceback.print_exc()
        said = str(error) if isinstance(error, SpinneyError) else f"{type(error).__name__}: {error}"
        sentence = (
            said if isinstance(error, SpinneyError) else f"loading {target!r} failed with {said}; mend it"
        )
        channel.send({"hello": {"pid": os.getpid(), "error": sentence}})
        return None
    channel.send({"hello": hello})
    return app


def _run_serial(
    types: "Mapping[str, JobType]", given: WorkerStartup, channel: Channel, calls: CallRecorder
) -> int:
    from spinney.node.worker.serial_worker import SerialWorker
    from spinney.node.worker.stage_runners import StageRunners

    page = SharedPage.attach(given.page_fd)
    pass_fds = () if given.lock_fd is None else (given.lock_fd,)
    serial = SerialWorker(
        SerialPort(channel, page),
        page,
        _marker(given, page),
        StageRunners(types, pass_fds),
        folder_root=given.folder_root,
    )
    signal.signal(FLUSH_SIGNAL, lambda *_: serial.on_flush_signal())
    signal.siginterrupt(FLUSH_SIGNAL, False)
    on_term(raise_terminated)
    try:
        serial.run(ProcessState(calls, signals=True))
    except Terminated:
        serial.last_words()
        raise
    if serial.threads_left:
        # Python would wait for them, perhaps for ever.
        os._exit(0)
    return 0


def _run_concurrent(
    types: "Mapping[str, JobType]", given: WorkerStartup, channel: Channel, calls: CallRecorder
) -> int:
    from spinney.node.worker.concurrent_worker import ConcurrentWorker
    from spinney.node.worker.stage_runners import StageRunners

    page = SharedPage.attach(given.page_fd)
    concurrent = ConcurrentWorker(
        channel,
        page,
        _marker(given, page),
        StageRunners(types),
        folder_root=given.folder_root,
        log_name=given.log,
    )
    terminated = threading.Event()

    def terminate() -> None:
        terminated.set()
        # A thread, because the handler may have interrupted whoever holds the host's lock.
        threading.Thread(target=concurrent.terminate, name="terminate", daemon=True).start()

    signal.signal(FLUSH_SIGNAL, lambda *_: concurrent.on_flush_signal())
    on_term(terminate)
    concurrent.run(ProcessState(calls, signals=False))
    if terminated.is_set():
        die_of(signal.SIGTERM)
    return 0


def _marker(given: WorkerStartup, page: SharedPage) -> BoundaryWriter:
    """Ready for the first attempt: what loading the application printed belongs to none."""
    marker = BoundaryWriter(page, bytes.fromhex(given.boundary_token), given.pipe_watch_fd)
    sys.stdout.flush()
    sys.stderr.flush()
    if marker.wrote():
        marker.set(0)
    return marker


if __name__ == "__main__":
    sys.exit(main())
