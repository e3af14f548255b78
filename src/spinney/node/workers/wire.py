"""Messages between supervisor and worker: JSON preceded by its length in four bytes, big endian.

``pack`` encodes one, ``Decoder`` splits a stream for a non-blocking reader, ``Channel`` is the blocking end of a
worker."""

import contextlib
import select
import socket
from collections import deque
from typing import Any

import orjson

from spinney.model.errors import SpinneyError

LIMIT_BYTES = 64 * 2**20
"""The longest message. Lists are split long before; a longer one is a mistake or an attack."""

_HEAD_BYTES = 4
READ_BYTES = 64 * 2**10
"""The size of one read. For a larger one the allocator requests pages from the kernel each time, which costs several
times as much as reading a message (31 instead of 6 us for 20 kB, 17 instead of 3 for 200 bytes)."""


class WireError(SpinneyError):
    """Supervisor and worker do not understand each other; see that both run the same version."""


def pack(message: Any) -> bytes:
    """Return the bytes of one message. Raises WireError when it is too long, TypeError when it is no JSON."""
    body = orjson.dumps(message)
    if len(body) > LIMIT_BYTES:
        raise WireError(
            f"a message of {len(body)} bytes exceeds the limit of {LIMIT_BYTES}; "
            f"send less at once, or put it into a file in the job's folder"
        )
    return len(body).to_bytes(_HEAD_BYTES, "big") + body


class Decoder:
    """Splits a stream of bytes into messages, whatever pieces it arrives in."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Return the messages that are complete with these bytes. Raises WireError for malformed ones."""
        self._buffer += data
        messages: list[Any] = []
        start = 0
        with memoryview(self._buffer) as view:
            while (body := start + _HEAD_BYTES) <= len(view):
                length = int.from_bytes(view[start:body], "big")
                if length > LIMIT_BYTES:
                    raise WireError(f"a message of {length} bytes was announced; this is no worker's stream")
                if body + length > len(view):
                    break
                try:
                    messages.append(orjson.loads(view[body : body + length]))
                except orjson.JSONDecodeError as error:
                    raise WireError(f"a message is no JSON ({error}); this is no worker's stream") from error
                start = body + length
        del self._buffer[:start]
        return messages


class Channel:
    """The blocking end of a socket: one thread reads; writers are excluded by the caller's lock.

    It also waits for signals. The kernel may deliver a signal of the process to another thread, when one is just
    pending for the main thread, which then would stay in the system call until a message comes, without running
    Python's handler. Blocking signals in the other threads is no solution: programs that stages start from there would
    inherit that, and would not react to TERM. But in whichever thread the signal arrives, Python writes it to the
    wakeup descriptor."""

    def __init__(self, sock: socket.socket, signals: socket.socket | None = None) -> None:
        """``signals``: the read end of the descriptor passed to ``signal.set_wakeup_fd``; the main thread must read
        then."""
        self._sock = sock
        self._signals = signals
        self._poll = select.poll()
        for readable in filter(None, (sock, signals)):
            self._poll.register(readable, select.POLLIN)
        self._decoder = Decoder()
        self._inbox: deque[Any] = deque()

    def send(self, message: Any) -> None:
        """Write one whole message. Raises OSError when the other side is gone."""
        self._sock.sendall(pack(message))

    def receive(self) -> Any | None:
        """Return the next message; None when the other side is gone."""
        while not self._inbox:
            if self._signals is not None and not self._ready(self._signals):
                continue
            try:
                data = self._sock.recv(READ_BYTES)
            except ConnectionError:
                return None
            if not data:
                return None
            self._inbox.extend(self._decoder.feed(data))
        return self._inbox.popleft()

    def _ready(self, signals: socket.socket) -> bool:
        """Return whether the socket can be read. It returns after signals, too, so that their handlers run."""
        ready = [fd for fd, _ in self._poll.poll()]
        if signals.fileno() in ready:
            with contextlib.suppress(BlockingIOError):  # another call has read them
                signals.recv(READ_BYTES)
        return self._sock.fileno() in ready

    def stop_reading(self) -> None:
        """Let ``receive`` return None when all that has arrived is read; from any thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)
