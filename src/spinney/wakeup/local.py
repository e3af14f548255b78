"""Wake-ups between processes of one host: a datagram says "look at the store".

Every node binds ``wakeup-<node>.<pid>.sock`` in the run-time directory; a process that has committed something that
nodes should see sends an empty datagram to each. A wake-up carries and guarantees nothing: a lost one costs a poll
interval, a superfluous one costs a query. So senders never wait, never fail, and remove the sockets of dead nodes."""

import asyncio
import contextlib
import os
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

from spinney.host.boot import boot_id

_PREFIX, _SUFFIX = "wakeup-", ".sock"
_ADDRESS_BYTES = 107
"""The longest address of a socket; through its directory's descriptor, longer paths work, too."""

_TICK_NS = 2_000_000_000
"""More than the resolution of a file system's time stamps: with small inodes it has whole seconds only."""


def run_dir_id(run_dir: Path | str) -> str:
    """Return an id that tells this run-time directory from all others, of other hosts and containers, too; empty while
    there is none.

    A node with the same id as the sender has got the datagram, and need not be woken through the store as well.
    """
    try:
        status = os.stat(run_dir)  # noqa: PTH116 - paths and texts alike
    except OSError:
        return ""
    return f"{_host()}:{status.st_dev}:{status.st_ino}"


@cache
def _host() -> str:
    return f"{socket.gethostname()}:{boot_id()}"


def wake_local_nodes(run_dir: Path | str, *, but: str | None = None) -> None:
    """Wake every node of this host that serves the store of ``run_dir``, except the socket ``but``."""
    # Without a directory no node has ever run here. Or this process can open no more files.
    with contextlib.suppress(OSError):
        if names := [name for name in _sockets(run_dir) if name != but]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                _wake_in(os.fspath(run_dir), names, sender)


class LocalWaker:
    """Wakes the nodes of this host again and again: those that it already knows without reading the directory, so that
    it is fast enough where every tenth of a millisecond counts. It is not thread-safe."""

    def __init__(self, run_dir: Path | str) -> None:
        self._run_dir = os.fspath(run_dir)
        self._sender: socket.socket | None = None
        self._names: list[str] = []
        self._seen_ns = 0
        """The modification time of the directory when it was read; 0: unknown."""
        self._known_names: list[str] = []
        self._woken: list[str] = []

    def wake_known(self) -> None:
        """Wake the nodes that were in the directory the last time."""
        self._woken = self._known_names
        if self._sender is not None:
            for name in self._known_names:
                _wake(self._sender, f"{self._run_dir}/{name}")

    def wake_rest(self) -> None:
        """Wake all nodes that ``wake_known`` has not woken since the last time."""
        woken, self._woken = self._woken, []
        try:
            self._look()
            if self._sender is None:
                self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                # An application need not be closed; without this, Python would warn about the socket.
                weakref.finalize(self, self._sender.close)
            if rest := [name for name in self._names if name not in woken]:
                _wake_in(self._run_dir, rest, self._sender)
        except OSError:
            self._names, self._seen_ns = [], 0
        self._known_names = self._names if _addressable(self._run_dir, self._names) else []

    def _look(self) -> None:
        changed_ns = os.stat(self._run_dir).st_mtime_ns  # noqa: PTH116 - a text
        if changed_ns == self._seen_ns:
            return
        self._names = _sockets(self._run_dir)
        # A change within the resolution of the time stamp would be missed.
        self._seen_ns = changed_ns if time.time_ns() - changed_ns > _TICK_NS else 0

    def close(self) -> None:
        """Close the socket; the waker may be used again."""
        if self._sender is not None:
            self._sender.close()
        self._sender, self._known_names = None, []


def _sockets(run_dir: Path | str) -> list[str]:
    return [n for n in os.listdir(run_dir) if n.startswith(_PREFIX) and n.endswith(_SUFFIX)]  # noqa: PTH208 - no need of a Path for each


def _wake_in(folder: str, names: Sequence[str], sender: socket.socket) -> None:
    if not _addressable(folder, names):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _wake_in(f"/proc/self/fd/{descriptor}", names, sender)
        finally:
            os.close(descriptor)
        return
    for name in names:
        _wake(sender, f"{folder}/{name}")


def _addressable(folder: str, names: Sequence[str]) -> bool:
    return len(os.fsencode(folder)) + 1 + max(map(len, names), default=0) <= _ADDRESS_BYTES


def _wake(sender: socket.socket, address: str) -> None:
    try:
        sender.sendto(b"", socket.MSG_DONTWAIT, address)
    except ConnectionRefusedError:
        with contextlib.suppress(OSError):
            os.unlink(address)  # noqa: PTH108 - a text
    except OSError:
        return  # the node's queue is full (so it is awake), or it has just ended


@contextmanager
def bound_socket(run_dir: Path, name: str) -> Iterator[socket.socket]:
    """Bind the node's own socket, which exists while the context lasts."""
    folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.setblocking(False)
            receiver.bind(f"/proc/self/fd/{folder}/{name}")
            try:
                yield receiver
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


@asynccontextmanager
async def received_wakeups(run_dir: Path, name: str, on_wakeup: Callable[[], None]) -> AsyncIterator[None]:
    """Call ``on_wakeup`` in the event loop for every burst of wake-ups, while the context lasts."""
    loop = asyncio.get_running_loop()
    with bound_socket(run_dir, name) as receiver:
        loop.add_reader(receiver, _drain, receiver, on_wakeup)
        try:
            yield
        finally:
            loop.remove_reader(receiver)


def _drain(receiver: socket.socket, on_wakeup: Callable[[], None]) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            receiver.recv(1)
    on_wakeup()
