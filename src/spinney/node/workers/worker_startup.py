"""What a worker is told at its birth: one environment variable, taken out before user code starts."""

import os
import signal
from dataclasses import asdict, dataclass

import orjson

VARIABLE = "SPINNEY_WORKER"

FLUSH_SIGNAL = signal.SIGURG
"""Asks a worker that is in user code to say now what it keeps back: done rows, recalled attempts.
A signal that the kernel ignores unless a handler stands, so that it can never hurt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStartup:
    """Descriptors are numbers of inherited file descriptors."""

    parent_pid: int
    socket_fd: int
    page_fd: int
    lock_fd: int | None
    """The node's lock file: programs inherit it too, so that it is free only when all are gone."""
    boundary_token: str
    """Hexadecimal: what tells a mark in the output from output."""
    log: str
    """Name of the worker's log, where output goes that belongs to no attempt."""
    folder_root: str
    node: str
    pipe_watch_fd: int | None = None
    """Shows whether anything is in the worker's pipes (``boundaries.pipe_watch``)."""

    def to_env(self) -> dict[str, str]:
        return {VARIABLE: orjson.dumps(asdict(self)).decode()}


def take() -> WorkerStartup:
    """The handover of this process. Its variable is gone afterwards, and its descriptors are
    inherited no further. Raises KeyError when there is none."""
    given = WorkerStartup(**orjson.loads(os.environ.pop(VARIABLE)))
    for fd in (given.socket_fd, given.page_fd, given.lock_fd, given.pipe_watch_fd):
        if fd is not None:
            os.set_inheritable(fd, False)
    return given
