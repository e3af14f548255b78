"""A node of the demo's store, its crash, and the display of a batch's progress.

The node and the display are programs of their own, started as a user would start them, so that the demo shows
what a user sees and a crash kills nothing else.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import psutil

from spinney.apps.demo_tools import COMMAND
from spinney.errors import UsageError

LOOK_S = 0.03
"""The pause between two looks at a condition, in seconds."""
PATIENCE_S = 600.0
"""How long a step of the demo may take, in seconds."""
_DRAIN_S = 30.0
"""How long a process may take to end, in seconds, before it is killed."""

Process = subprocess.Popen[bytes]


@contextmanager
def node(log: TextIO) -> Iterator[Process]:
    """Run a node of the store that the environment names, and yield its process.

    At the end the node is drained, unless it has ended before, and killed if that takes longer than
    ``_DRAIN_S``. Its output goes to ``log``.
    """
    command = [*COMMAND, "node", "spinney.apps.ingest:app", "--name", "demo"]
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
    """Kill the guard, the supervisor and every worker with SIGKILL, and return how many there were.

    They are stopped first, so that none sees another die, as in a power cut.
    """
    guard = psutil.Process(process.pid)
    everybody: list[psutil.Process] = []
    # Until there are no new ones: a stopped process starts none.
    while new := [child for child in (guard, *guard.children(recursive=True)) if child not in everybody]:
        everybody += new
        for each in new:
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                each.suspend()
    for each in everybody:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(everybody, timeout=_DRAIN_S)
    process.wait(_DRAIN_S)
    return len(everybody)


def watch(batch: int, process: Process, enough: Callable[[], bool] = lambda: False) -> None:
    """Show a batch's progress until it has settled, or ``enough`` returns True. Raises UsageError when the node
    ends."""
    display = subprocess.Popen([*COMMAND, "wait", str(batch)], stdin=subprocess.DEVNULL)
    try:
        until(lambda: display.poll() is not None or enough(), process, f"batch {batch} has not ended")
    finally:
        if display.poll() is None:
            display.send_signal(signal.SIGINT)
        display.wait(_DRAIN_S)


def until(look: Callable[[], bool], process: Process, failure: str) -> None:
    """Wait until ``look`` returns True.

    Raises UsageError when the node ends, or after ``PATIENCE_S`` seconds; ``failure`` is the beginning of
    that sentence.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if process.poll() is not None:
            raise UsageError("the node has ended; node.log has its output")
        if time.monotonic() > deadline:
            raise UsageError(f"{failure} in {PATIENCE_S:.0f} s; see node.log")
        time.sleep(LOOK_S)
