"""A bridge's process, with the node of Spinney that runs its jobs beside it."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.bridges.bridge import Bridge
from spinney.bridges.sole import sole
from spinney.command_line import resolve_settings

if TYPE_CHECKING:
    from spinney.operations import Control


def types_at_work(control: "Control") -> set[str]:
    """Return the job types that an active node of this store has: entries of others need not be claimed yet,
    since their jobs would only wait."""
    return {name for node in control.store.nodes() if node.state == "active" for name in node.types}


class Node:
    """The node of Spinney that runs a bridge's jobs: a process of its own, which outlives a bridge that is
    killed. The next bridge starts another, which takes over from it."""

    def __init__(self, application: str, name: str, slots: int, drain: str, store: str | None) -> None:
        """``name``: the bridge's, of which the node's and the lock's are made. ``drain``: how long running
        jobs may finish, as the command line has it."""
        self.command = [
            sys.executable,
            "-m",
            "spinney",
            "node",
            application,
            "--name",
            name.replace(":", "-"),
        ]
        self.command += ["--slots", str(slots), "--drain", drain, *(["--store", store] if store else [])]
        self.command.append("--replace")  # a killed bridge leaves its node, which may be at work
        self.lock = lock_path(name, store)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the node, and return its process, which drains at SIGTERM."""
        return subprocess.Popen(self.command)


def lock_path(name: str, store: str | None) -> Path:
    """Return the file that the one process of this host has locked which works under a bridge's name. It lies
    beside the folder root of the store."""
    return resolve_settings(store).folders.parent / ".bridges" / f"{name.replace(':', '-')}.lock"


def work(bridge: Bridge, node: Node, *, replace: bool) -> int:
    """Run the node and the bridge until a signal, or until the node ends; return the exit code, 0 after a
    signal.

    After SIGTERM or SIGINT nothing is claimed, and what ends is passed on until the node has drained; the
    rest is passed on after that. ``replace``: first take the name, so that the process that has it ends, and
    wait for its lock. When another process takes the name, this one only waits for its node, from which the
    other's node takes over. Raises UsageError when another process keeps the lock."""
    ended = threading.Event()
    if replace:
        bridge.take()
    with sole(node.lock, wait=replace):
        process = node.start()
        threading.Thread(target=_stop_with, args=(process, ended), daemon=True).start()

        def drain(*_: object) -> None:
            bridge.room = 0
            process.terminate()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drain)
        try:
            bridge.run(ended)
        except BaseException:
            process.terminate()
            raise
        if ended.is_set():
            bridge.flush()
    code = process.wait()
    return 0 if code == -signal.SIGTERM else code


def _stop_with(process: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    """Wait for the node, and then let the bridge end: without a node its jobs would wait."""
    process.wait()
    ended.set()
