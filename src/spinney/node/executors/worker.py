"""A worker process: ``python -m spinney.node.executors.worker MODULE:ATTRIBUTE [--many]``.

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
from spinney.node.executors import handover, proctree
from spinney.node.executors.asking import SerialPort
from spinney.node.executors.ending import Terminated, die_of, on_term, raise_terminated
from spinney.node.executors.handover import NUDGE, Handover
from spinney.node.executors.marks import Marker
from spinney.node.executors.page import Page
from spinney.node.executors.process_state import Calls, ProcessState
from spinney.node.executors.voices import Divided
from spinney.node.executors.wire import Channel

if TYPE_CHECKING:
    from spinney.app import Spinney
    from spinney.jobtype import JobType

EXIT_UNLOADABLE = 2
"""The application cannot be loaded."""
EXIT_GONE = 1
"""The supervisor is gone."""


def main() -> int:
    """Be a worker; returns the exit code."""
    given = handover.take()
    proctree.die_with_parent(given.parent_pid)
    proctree.become_subreaper()
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=given.socket_fd), _signals())
    many = "--many" in sys.argv[2:]
    calls = Calls()
    calls.watch()
    if many:
        # Before user code may keep a reference to either.
        sys.stdout = cast(TextIO, Divided("stdout", sys.stdout))
        sys.stderr = cast(TextIO, Divided("stderr", sys.stderr))
    else:
        # Line by line, so that output can be read while a stage runs.
        cast(Any, sys.stdout).reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    try:
        app = _load(sys.argv[1], channel)
        if app is None:
            return EXIT_UNLOADABLE
        from spinney.app import storeless  # loaded by now

        with storeless(app):
            return (_be_many if many else _be_serial)(app.types, given, channel, calls)
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


def _be_serial(types: "Mapping[str, JobType]", given: Handover, channel: Channel, calls: Calls) -> int:
    from spinney.node.executors.serial import Serial
    from spinney.node.executors.stages import Stages

    page = Page.attach(given.page_fd)
    pass_fds = () if given.lock_fd is None else (given.lock_fd,)
    serial = Serial(
        SerialPort(channel, page),
        page,
        _marker(given, page),
        Stages(types, pass_fds),
        folder_root=given.folder_root,
    )
    signal.signal(NUDGE, lambda *_: serial.nudged())
    signal.siginterrupt(NUDGE, False)
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


def _be_many(types: "Mapping[str, JobType]", given: Handover, channel: Channel, calls: Calls) -> int:
    from spinney.node.executors.many import Many
    from spinney.node.executors.stages import Stages

    page = Page.attach(given.page_fd)
    many = Many(
        channel,
        page,
        _marker(given, page),
        Stages(types),
        folder_root=given.folder_root,
        log_name=given.log,
    )
    terminated = threading.Event()

    def terminate() -> None:
        terminated.set()
        # A thread, because the handler may have interrupted whoever holds the host's lock.
        threading.Thread(target=many.terminate, name="terminate", daemon=True).start()

    signal.signal(NUDGE, lambda *_: many.nudged())
    on_term(terminate)
    many.run(ProcessState(calls, signals=False))
    if terminated.is_set():
        die_of(signal.SIGTERM)
    return 0


def _marker(given: Handover, page: Page) -> Marker:
    """Ready for the first attempt: what loading the application printed belongs to none."""
    marker = Marker(page, bytes.fromhex(given.mark), given.sight_fd)
    sys.stdout.flush()
    sys.stderr.flush()
    if marker.wrote():
        marker.set(0)
    return marker


if __name__ == "__main__":
    sys.exit(main())
