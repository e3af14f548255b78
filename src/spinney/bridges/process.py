"""A bridge's process, at most one of a host under its name, with the node of Spinney that runs its jobs beside it."""

import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from spinney.bridges.bridge import Bridge
from spinney.command_line import resolve_settings
from spinney.errors import BadName, Refused, UsageError
from spinney.jobs import names

if TYPE_CHECKING:
    from spinney.operations import Control

log = logging.getLogger("spinney.bridges")

PATIENCE_S = 60.0
"""How long a takeover waits for the other process, in seconds."""
WATCH_S = 3.0
"""How many seconds a report of another process is watched for; a bridge at work reports each second."""
_LOOK_S = 0.1
"""Seconds between two looks for the node that was started, and for a report of another process."""


def node_name(name: str) -> str:
    """Return the name of the node that runs the jobs of the bridge with this name. Raises UsageError for one that no
    node can have."""
    try:
        return names.name("node", name.replace(":", "-"))
    except BadName as error:
        raise UsageError(f"{error}; it is made of the system, its database and --name") from error


def types_at_work(control: "Control") -> set[str]:
    """Return the job types that an active node of this store has: entries of others need not be claimed yet,
    since their jobs would only wait."""
    return {name for node in control.store.nodes() if node.state == "active" for name in node.types}


@contextmanager
def sole(name: str, store: str | None, *, wait: bool) -> Iterator[None]:
    """Let this be the only process of this host that works under this name of a bridge while the block runs.
    ``wait``: the process that has the name was asked to end, so wait for up to a minute. Raises UsageError
    when another process keeps it.

    The store knows who took a name last (``Bridge.take``); this lock keeps two nodes of one name from running beside
    each other on one host. It is a file beside the folder root of the store, and ends with the process, however that
    ends."""
    path = resolve_settings(store).folders.parent / ".bridges" / f"{node_name(name)}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        give_up = time.monotonic() + (PATIENCE_S if wait else 0.0)
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= give_up:
                    raise UsageError(
                        f"another process works under this name (lock {path}); end it, or take over with --replace"
                    ) from None
                time.sleep(0.05)
        yield


def require_silent(bridge: Bridge) -> None:
    """Raise Refused when a process reports under this bridge's name within ``WATCH_S``. It may be one of another host,
    of which the lock of ``sole`` says nothing."""

    def seen_us() -> int | None:
        statuses = bridge.control.store.bridges.statuses()
        return next((each.seen_us for each in statuses if each.name == bridge.foreign.name), None)

    before_us, until_s = seen_us(), time.monotonic() + WATCH_S
    while time.monotonic() < until_s:
        time.sleep(_LOOK_S)
        if seen_us() != before_us:
            raise Refused(
                f"the bridge {bridge.foreign.name} has just reported, so it is at work, perhaps on another host; end "
                "it there, and try again"
            )


def work(
    bridge: Bridge, application: str, *, slots: int, drain: str, replace: bool, store: str | None
) -> int:
    """Run a bridge and the node for its jobs until a signal, or until the node ends; return the exit code, 0
    after a signal. ``application``: the module and name of the application that the node runs. ``drain``: how
    long running jobs may finish, as the command line has it.

    After SIGTERM or SIGINT nothing is claimed, and what ends is passed on until the node has drained; the
    rest is passed on after that. The name is taken when the node works, so that a node that cannot start leaves the
    process that has the name at work. ``replace``: that process is on this host and ends; wait for its lock. When
    another process takes the name, this one only waits for its node, from which the other's node has taken over.
    Raises UsageError when another process keeps the lock, or for a name that no node can have."""
    ended, own = threading.Event(), node_name(bridge.foreign.name)
    name, nodes = bridge.foreign.name, bridge.control.store.nodes
    before = {node.id for node in nodes()}
    with ExitStack() as stack:
        if not replace:
            stack.enter_context(sole(name, store, wait=False))
        options = ["--name", own, "--slots", str(slots), "--drain", drain]
        options += ["--store", store] if store else []
        process = _start_node(application, options, name)
        threading.Thread(target=_stop_with, args=(process, ended), daemon=True).start()

        def drain_node(*_: object) -> None:
            bridge.room = 0
            process.terminate()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drain_node)
        try:
            # The node may be refused, or fail to start: until it works, another process keeps the name.
            while not any(node.name == own and node.id not in before for node in nodes()):
                if ended.wait(_LOOK_S):
                    break
            else:
                if replace:
                    bridge.take()
                    stack.enter_context(sole(name, store, wait=True))
                bridge.run(ended)
                if ended.is_set():
                    bridge.flush()
        except BaseException:
            process.terminate()
            raise
    code = process.wait()
    if bridge.room and code not in (0, 2, -signal.SIGTERM):  # 2: it cannot start, and has said why
        log.error(
            "%s: its node %s has ended by itself (exit code %d), so the bridge ends, too; start the bridge again by "
            "its own command, which starts the node, or let systemd do it",
            name,
            own,
            code,
        )
    return 0 if code == -signal.SIGTERM else code


def _start_node(application: str, options: Sequence[str], bridge_name: str) -> "subprocess.Popen[bytes]":
    """Start the node of a bridge.

    The node outlives a bridge that is killed, and may be at work: the next bridge starts another, which takes over from
    it (``--replace``)."""
    command = [sys.executable, "-m", "spinney", "node", application, "--replace", *options]
    return subprocess.Popen(command, env=os.environ | {"SPINNEY_NODE_STARTER": bridge_name})


def _stop_with(node: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    """Wait for the node, and then let the bridge end: without a node its jobs would wait."""
    node.wait()
    ended.set()
