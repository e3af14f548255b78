"""A node of the demo's store, its death, and what shows a batch while it works."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import psutil

from spinney.errors import UsageError

LOOK_S = 0.03
PATIENCE_S = 600.0
_DRAIN_S = 30.0

Process = subprocess.Popen[bytes]


def spinney(*words: str) -> list[str]:
    """The arguments of a ``spinney`` command."""
    return [sys.executable, "-m", "spinney", *words]


@contextmanager
def node(log: TextIO) -> Iterator[Process]:
    """A node of the store that the environment names; drained at the end unless it has gone before."""
    command = spinney("node", "spinney.apps.ingest:app", "--name", "demo")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_DRAIN_S)
        except subprocess.TimeoutExpired:
            kill_whole(process)


def kill_whole(process: Process) -> int:
    """SIGKILL to the guard, the supervisor and every worker; returns how many there were.

    They are stopped first, so that none sees another die: it is as if the power went.
    """
    guard = psutil.Process(process.pid)
    everybody: list[psutil.Process] = []
    # Until no new ones are found: one that is stopped starts none.
    while new := [one for one in (guard, *guard.children(recursive=True)) if one not in everybody]:
        _each(psutil.Process.suspend, new)
        everybody += new
    _each(psutil.Process.kill, everybody)
    psutil.wait_procs(everybody, timeout=_DRAIN_S)
    process.wait(_DRAIN_S)
    return len(everybody)


def _each(act: Callable[[psutil.Process], None], processes: list[psutil.Process]) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            act(one)


def watch(batch: int, process: Process, enough: Callable[[], bool] = lambda: False) -> None:
    """Show a batch's progress until it has settled, or ``enough`` says so. Raises UsageError when the node ends."""
    display = subprocess.Popen(spinney("wait", str(batch)), stdin=subprocess.DEVNULL)
    try:
        until(lambda: display.poll() is not None or enough(), process, f"batch {batch} has not ended")
    finally:
        if display.poll() is None:
            display.send_signal(signal.SIGINT)
        display.wait(_DRAIN_S)


def until(look: Callable[[], bool], process: Process, otherwise: str) -> None:
    """Wait until ``look`` says so. Raises UsageError when the node ends, or it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if process.poll() is not None:
            raise UsageError("the node has ended; what it said is in node.log")
        if time.monotonic() > deadline:
            raise UsageError(f"{otherwise} in {PATIENCE_S:.0f} s; see node.log")
        time.sleep(LOOK_S)
