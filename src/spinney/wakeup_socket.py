"""Wake-ups between processes of one host: a datagram says "look at the store".

Every node binds ``wakeup-<node>.<pid>.sock`` in the run-time directory; whoever committed something
that a node should see sends an empty datagram to each. A wake-up carries nothing and promises
nothing: a lost one costs a poll interval, one too many costs a look. So senders never wait, never
fail, and clear away the sockets of the dead.
"""

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

_PREFIX, _SUFFIX = "wakeup-", ".sock"
_ADDRESS_BYTES = 107
"""No socket's address is longer; through its directory's descriptor no path is too long."""

_TICK_NS = 2_000_000_000
"""More than two times are apart that a file system can tell from each other: where inodes are small it knows whole
seconds only."""


def socket_name(node: str, pid: int) -> str:
    """The name of a node's socket in the run-time directory."""
    return f"{_PREFIX}{node}.{pid}{_SUFFIX}"


def run_dir_id(run_dir: Path | str) -> str:
    """Tells this run-time directory from all others, of other hosts and containers, too; empty while there is none.

    Who shares a sender's place has got his datagram, and need not be woken otherwise as well.
    """
    try:
        found = os.stat(run_dir)  # noqa: PTH116 - paths and texts alike
    except OSError:
        return ""
    return f"{_host()}:{found.st_dev}:{found.st_ino}"


@cache
def _host() -> str:
    return f"{socket.gethostname()}:{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def wake_local_nodes(run_dir: Path | str, *, but: str | None = None) -> None:
    """Wake every node of this host that serves the store of ``run_dir``, except the socket ``but``."""
    try:
        if names := [name for name in _sockets(run_dir) if name != but]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                _wake_in(os.fspath(run_dir), names, sender)
    except OSError:
        return  # no directory: no node has ever run here. Or this process can open no more files


class LocalWaker:
    """Wakes the same nodes again and again: those that it has found before at once, without looking for them, so that
    it may be done where every tenth of a millisecond counts. Not for two threads at once."""

    def __init__(self, run_dir: Path | str) -> None:
        self._run_dir = os.fspath(run_dir)
        self._sender: socket.socket | None = None
        self._there: list[str] = []
        self._seen_ns = 0
        """Of when the directory is in which these were; 0: of some other time."""
        self._known: list[str] = []
        self._woken: list[str] = []

    def wake_known(self) -> None:
        """Those that were there the last time."""
        self._woken = self._known
        if self._sender is not None:
            for name in self._known:
                _wake(self._sender, f"{self._run_dir}/{name}")

    def wake_rest(self) -> None:
        """All whom ``wake_known`` has not woken since the last time."""
        received_wakeups, self._woken = self._woken, []
        try:
            self._look()
            if self._sender is None:
                self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                # An application that nobody closes is no mistake, of which Python would warn.
                weakref.finalize(self, self._sender.close)
            if rest := [name for name in self._there if name not in received_wakeups]:
                _wake_in(self._run_dir, rest, self._sender)
        except OSError:
            self._there, self._seen_ns = [], 0
        self._known = self._there if _addressable(self._run_dir, self._there) else []

    def _look(self) -> None:
        changed_ns = os.stat(self._run_dir).st_mtime_ns  # noqa: PTH116 - a text
        if changed_ns == self._seen_ns:
            return
        self._there = _sockets(self._run_dir)
        # What changes in the same tick of the kernel's clock would not be seen.
        self._seen_ns = changed_ns if time.time_ns() - changed_ns > _TICK_NS else 0

    def close(self) -> None:
        """It may be used again."""
        if self._sender is not None:
            self._sender.close()
        self._sender, self._known = None, []


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
        return  # its queue is full (so it is awake), or it left just now


@contextmanager
def bound_socket(run_dir: Path, name: str) -> Iterator[socket.socket]:
    """The node's own socket, there while the context lasts."""
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
