"""The supervisor's end of a worker's socket; it never blocks and belongs to the event loop."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from spinney.node.workers.wire import READ_BYTES, Decoder, pack


class WorkerSocket:
    """Passes every message to ``on_message``; data that do not fit into the socket wait in a buffer.

    ``on_broken`` is called once with the reason when a malformed message arrives, or one that ``on_message`` cannot
    handle; nothing more is read then."""

    def __init__(
        self, sock: socket.socket, on_message: Callable[[Any], None], on_broken: Callable[[Exception], None]
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._on_message, self._on_broken = on_message, on_broken
        self._decoder = Decoder()
        self._unsent = bytearray()
        self.has_received = False
        """Whether anything has come from the worker, be it a part of a message."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock, self._read)

    def send(self, message: Any) -> None:
        """Send a message at once, or as soon as the worker has read the earlier ones. It is dropped when the worker is
        gone, whose end is reported elsewhere."""
        if self._sock.fileno() < 0:
            return
        data = pack(message)
        if not self._unsent:
            data = data[self._write(data) :]
            if data:
                self._loop.add_writer(self._sock, self._writable)
        self._unsent += data

    def drain(self) -> None:
        """Pass on everything that has arrived: the last messages of a dead worker."""
        while self._sock.fileno() >= 0 and self._read():
            pass

    def close(self) -> None:
        """Close the socket to the worker, and stop watching it. Idempotent."""
        if self._sock.fileno() < 0:
            return
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()

    def _read(self) -> bool:
        """Read once; return whether there may be more. The end of the stream is ignored, because the process itself is
        watched: a descendant may keep the socket open longer, or close it earlier."""
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._loop.remove_reader(self._sock)
            return False
        self.has_received = True
        try:
            for message in self._decoder.feed(data):
                self._on_message(message)
        except Exception as error:  # noqa: BLE001 - nobody else would handle it
            self._loop.remove_reader(self._sock)
            self._on_broken(error)
            return False
        return True

    def _write(self, data: bytes | bytearray) -> int:
        try:
            return self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except ConnectionError:
            return len(data)  # the reader is gone

    def _writable(self) -> None:
        del self._unsent[: self._write(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._sock)
