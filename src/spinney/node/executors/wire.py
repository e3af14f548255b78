"""Messages between supervisor and worker: JSON behind its length in four bytes, big endian.

``pack`` makes one, ``Decoder`` takes a stream apart for whoever reads without blocking, ``Channel``
is the blocking end that a worker has.
"""

import contextlib
import socket
from collections import deque
from typing import Any

import orjson

from spinney.model.errors import SpinneyError

LIMIT_BYTES = 64 * 2**20
"""The longest message. Lists are cut long before; what exceeds it is a mistake or an attack."""

_HEAD_BYTES = 4
READ_BYTES = 64 * 2**10
"""Read at once. For more the allocator asks the kernel for pages each time, which costs several times what reading a
message does (31 instead of 6 us for 20 kB, 17 instead of 3 for 200 bytes)."""


class WireError(SpinneyError):
    """Supervisor and worker do not understand each other; see that both run the same version."""


def pack(message: Any) -> bytes:
    """The bytes of one message. Raises WireError when it is too long, TypeError when it is no JSON."""
    body = orjson.dumps(message)
    if len(body) > LIMIT_BYTES:
        raise WireError(
            f"a message of {len(body)} bytes exceeds the limit of {LIMIT_BYTES}; "
            f"send less at once, or put it into a file in the job's folder"
        )
    return len(body).to_bytes(_HEAD_BYTES, "big") + body


class Decoder:
    """Takes a stream of bytes apart into messages, however it was cut."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes. Raises WireError on what is no message."""
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
    """The blocking end of a socket: one thread reads, any that holds the caller's lock writes."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = Decoder()
        self._inbox: deque[Any] = deque()

    def send(self, message: Any) -> None:
        """Write one message, whole. Raises OSError when the other side is gone."""
        self._sock.sendall(pack(message))

    def receive(self) -> Any | None:
        """The next message; None when the other side is gone."""
        while not self._inbox:
            try:
                data = self._sock.recv(READ_BYTES)
            except ConnectionError:
                return None
            if not data:
                return None
            self._inbox.extend(self._decoder.feed(data))
        return self._inbox.popleft()

    def stop_reading(self) -> None:
        """Have ``receive`` say None once what has arrived is read; from any thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)
