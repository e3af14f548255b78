"""Wake-ups between processes of one host: a datagram says "look at the store".

Every node binds ``nudge-<node>.<pid>.sock`` in the run-time directory; whoever committed something
that a node should see sends an empty datagram to each. A nudge carries nothing and promises
nothing: a lost one costs a poll interval, one too many costs a look. So senders never wait, never
fail, and clear away the sockets of the dead.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

_PREFIX, _SUFFIX = "nudge-", ".sock"


def socket_name(node: str, pid: int) -> str:
    """The name of a node's socket in the run-time directory."""
    return f"{_PREFIX}{node}.{pid}{_SUFFIX}"


def place(run_dir: Path | str) -> str:
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


def nudge_all(run_dir: Path | str, *, but: str | None = None) -> None:
    """Wake every node of this host that serves the store of ``run_dir``, except the socket ``but``."""
    try:
        folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return  # no directory: no node has ever run here
    try:
        names = [n for n in os.listdir(folder) if n.startswith(_PREFIX) and n.endswith(_SUFFIX) and n != but]  # noqa: PTH208 - by descriptor
        if names:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                for name in names:
                    _nudge(sender, folder, name)
    finally:
        os.close(folder)


def _nudge(sender: socket.socket, folder: int, name: str) -> None:
    try:
        # Socket addresses end at 107 bytes; through the directory's descriptor no path is too long.
        sender.sendto(b"", f"/proc/self/fd/{folder}/{name}")
    except ConnectionRefusedError:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
    except OSError:
        return  # its queue is full (so it is awake), or it left just now


@contextmanager
def bound(run_dir: Path, name: str) -> Iterator[socket.socket]:
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
async def nudged(run_dir: Path, name: str, on_nudge: Callable[[], None]) -> AsyncIterator[None]:
    """Call ``on_nudge`` in the event loop for every burst of nudges, while the context lasts."""
    loop = asyncio.get_running_loop()
    with bound(run_dir, name) as receiver:
        loop.add_reader(receiver, _drain, receiver, on_nudge)
        try:
            yield
        finally:
            loop.remove_reader(receiver)


def _drain(receiver: socket.socket, on_nudge: Callable[[], None]) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            receiver.recv(1)
    on_nudge()
