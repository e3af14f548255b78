"""The guard: the parent of all processes of a node. It runs no user code and imports little.

It starts the supervisor and then waits for one of three events:

* the supervisor ends, for any reason;
* the supervisor is late: the deadline that its heartbeat renews has passed by the boot clock;
* a signal: TERM, INT and HUP ask the node to end (the first drains, every further one stops at once).
  ``PARENT_GONE`` means that the process that started the node has died, and only drains.

The supervisor gets the first request as TERM and every further one as ``AT_ONCE``. Two signals of
one kind can merge into one before the receiver has run; two of different kinds cannot.

In the first two cases it kills every descendant, until none is left, and ends. Descendants cannot escape: the guard is
a child subreaper, so processes that detach themselves become its children. When the guard itself is killed, the
supervisor sees the end of the pipe whose other end only the guard has open, kills everything and ends
(``supervisor_main``)."""

import json
import logging
import os
import shlex
import signal
import sys

from spinney.host.unread_log import write_line
from spinney.model.values.store_urls import without_password
from spinney.model.values.times import now_us
from spinney.node import instance as instances
from spinney.node.instance import INSTANCE_VARIABLE, Instance
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.settings import NodeSettings
from spinney.node.workers import proctree
from spinney.node.workers.termination import signal_name

log = logging.getLogger(__name__)

EXIT_LOST = 1
"""The exit code of a node whose supervisor was killed or late."""

_LOOK_S = 0.25
_STILL_S = 2.0
"""A guard that has not looked for so many seconds stood still, and the node with it."""
PARENT_GONE = signal.SIGUSR2
"""The parent-death signal of a node that must drain when its parent dies (``proctree.die_with_parent``). It is not
TERM, because the kernel sends it once for each thread of the parent: several of them are still one death, whereas two
TERMs are two requests, however close they come."""
AT_ONCE = signal.SIGUSR1
"""The signal from the guard to the supervisor to stop at once."""
_REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AWAITED = {*_REQUESTS, PARENT_GONE, signal.SIGCHLD}
"""The signals that the guard fetches one by one."""


def guard(settings: NodeSettings) -> int:
    """Run a node until it ends; return its exit code. It must be called in the only thread."""
    instances.prepare_run_dir(settings.run_path())
    instance = Instance(name=settings.name, pid=os.getpid(), started_us=now_us())
    lock_fd = instances.hold(settings.run_path(), instance)
    proctree.become_subreaper()
    # From here on signals wait until they are fetched: none is lost between two checks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    try:
        deadline = Deadline.make()
        supervisor = _start(settings, instance, lock_fd, deadline)
        try:
            code = _watch(supervisor, deadline)
        finally:
            proctree.kill_descendants()
            if not deadline.holds:  # it has left, or never joined: no other node needs its traces
                instances.clear(settings.run_path(), instance)
        if code and deadline.holds:  # it had joined, and has not left
            _say_how_to_start(settings)
        return code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(lock_fd)


def _start(settings: NodeSettings, instance: Instance, lock_fd: int, deadline: Deadline) -> int:
    """Start the supervisor; return its pid. Its settings are in one memory file."""
    read_end, _stays_open = os.pipe()  # only the guard has it open: it is closed when the guard ends
    handover = {
        "settings": settings.to_json(),
        "instance": [instance.name, instance.pid, instance.started_us],
        "lock_fd": lock_fd,
        "deadline_fd": deadline.fd,
        "guard_fd": read_end,
    }
    note = os.memfd_create("spinney-handover")
    os.pwrite(note, json.dumps(handover).encode(), 0)
    passed = (lock_fd, deadline.fd, read_end, note)
    for fd in passed:
        os.set_inheritable(fd, True)
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "spinney.node.supervisor_main", str(note)],
        os.environ | {INSTANCE_VARIABLE: str(instance)},
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
        # A session of its own: Ctrl-C only reaches the guard, which forwards it as a request to drain.
        setsid=True,
        setsigmask=(),
        setsigdef=(*_REQUESTS, PARENT_GONE, AT_ONCE),
    )
    for fd in passed:
        os.set_inheritable(fd, False)
    os.close(read_end)
    os.close(note)
    return pid


def _watch(supervisor: int, deadline: Deadline) -> int:
    """Wait for the end of the supervisor, its lateness, or signals; return the exit code of the node. Signals
    are fetched one by one and handed on, so that each counts as one request."""
    draining, looked_ns = False, boot_ns()
    while True:
        received = signal.sigtimedwait(AWAITED, _LOOK_S)
        number = 0 if received is None else received.si_signo
        if number in _REQUESTS or (number == PARENT_GONE and not draining):
            log.info("%s: handed on to the supervisor", signal.Signals(number).name)
            # The supervisor is not reaped yet, so the pid is still its own.
            os.kill(supervisor, AT_ONCE if draining else signal.SIGTERM)
            draining = True
        still_s, looked_ns = (boot_ns() - looked_ns) / 1e9, boot_ns()
        code = _reap(supervisor)
        if code is not None and draining and not deadline.holds:
            return max(code, 0)  # the signal may have ended it before it had a handler
        if code is not None:
            return _explained(code, still_s)
        if deadline.passed(boot_ns()):
            log.error(
                "the supervisor has not renewed its lease in time%s; ending everything", _stood_still(still_s)
            )
            return EXIT_LOST


def _say_how_to_start(settings: NodeSettings) -> None:
    """Write how to start a node again that has ended by itself; it is the last line on the terminal."""
    store = without_password(settings.store)
    command = shlex.join(["spinney", "node", settings.app, "--name", settings.name, "--store", store])
    again = f"Start it again: {command} (with its other options), or let systemd do it (docs/spinney-node.service)"
    if settings.starter is not None:
        again = f"Start the bridge {settings.starter} again by its own command, which starts the node"
    write_line(
        sys.stderr,
        f"spinney: node {settings.name} has ended by itself, for the reason above; what it ran goes back to its queue. "
        f"{again}",
    )


def _reap(supervisor: int) -> int | None:
    """Reap every child that has ended; return the exit code of the supervisor when it is among them."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == supervisor:
            code = os.waitstatus_to_exitcode(status)


def _explained(code: int, still_s: float) -> int:
    """Return the exit code of a supervisor that has ended by itself; for one that a signal ended, return ``EXIT_LOST``
    and log the signal. A node on the same host kills what is left of one that stood still for longer than its lease."""
    if code >= 0:
        return code
    log.error("the supervisor died of %s%s; ending everything", signal_name(-code), _stood_still(still_s))
    return EXIT_LOST


def _stood_still(still_s: float) -> str:
    """Return what to add to a message when the guard itself has not run for this time, in seconds."""
    if still_s < _STILL_S:
        return ""
    return f", because this node stood still for {still_s:.0f} s: it was stopped, or its machine was suspended or hung"
