"""The settings of a worker at its start, in one environment variable, which is removed before user code starts."""

import os
import resource
import signal
from dataclasses import asdict, dataclass

import orjson

VARIABLE = "SPINNEY_WORKER"

FLUSH_SIGNAL = signal.SIGURG
"""Asks a worker that is in user code to send what it keeps back: done rows, recalled attempts. The kernel ignores this
signal unless there is a handler, so that it can never do harm."""

STACK_SIGNAL = signal.SIGRTMIN + 5
"""Lets a worker write the stacks of its threads at once, although its interpreter handles no signals because a thread
is inside a long call of C code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStartup:
    """The settings of a worker. Descriptors are numbers of inherited file descriptors."""

    parent_pid: int
    socket_fd: int
    page_fd: int
    """The worker's shared page."""
    stack_fd: int
    """Memory where the worker writes its stacks when they are requested."""
    lock_fd: int | None
    """The node's lock file: programs inherit it too, so that it is free only when all have ended."""
    open_files: int | None = None
    """The soft limit of open files that the worker and its programs get; None: the one that it starts with."""
    boundary_token: str
    """The token of marks in the output, in hexadecimal."""
    log: str
    """The name of the worker's log, for output that belongs to no attempt."""
    folder_root: str
    postmortem_bytes: int
    """The most bytes that are kept of the frames of one failure; 0: none."""
    postmortem_depth: int
    """How many levels of the parts of a variable are kept."""
    pipe_watch_fd: int
    """The epoll that shows whether anything is in the worker's pipes (``boundaries.pipe_watch``)."""

    def to_env(self) -> dict[str, str]:
        """Return the environment variable that ``take`` reads in the worker."""
        return {VARIABLE: orjson.dumps(asdict(self)).decode()}


def take() -> WorkerStartup:
    """Return the settings of this process. Their variable is removed, their descriptors are not inherited further,
    and its limit of open files is in force. Raises KeyError when there are none."""
    startup = WorkerStartup(**orjson.loads(os.environ.pop(VARIABLE)))
    for fd in (startup.socket_fd, startup.page_fd, startup.lock_fd, startup.stack_fd, startup.pipe_watch_fd):
        if fd is not None:
            os.set_inheritable(fd, False)
    if startup.open_files is not None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (startup.open_files, hard))
    return startup
