"""Logging on a stream that nobody reads: a terminal that is stopped by Ctrl-S, a pipe to a program that hangs.

Writing to it would block for as long as that lasts, and with it the event loop of a node, or its guard, which writes a
line before it kills what has lost its leases. So a line that finds no room for ``PATIENCE_S`` is dropped, and those
behind it at once, until there is room again; then the log says how many are missing."""

import logging
import os
import select
import socket
import stat
import time
from typing import TextIO

PATIENCE_S = 1.0
"""How long a reader may take that is only slow."""


class UnblockedHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream that has a descriptor, as far as it takes them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of this record, or count it as dropped."""
        try:
            text, patience_s = self.format(record), 0.0 if self._dropped else PATIENCE_S
            if self._dropped:
                text = f"{self._dropped} lines of this log could not be written\n{text}"
            self._dropped = 0 if write_line(self.stream, text, patience_s) else self._dropped + 1
        except Exception:  # noqa: BLE001 - as in every handler: a log that fails ends nothing
            self.handleError(record)


def write_line(stream: TextIO, line: str, patience_s: float = PATIENCE_S) -> bool:
    """Write a line to a stream that has a descriptor; return False where there was no room for all of it."""
    data = f"{line}\n".encode(errors="backslashreplace")
    stream.flush()
    kind = os.fstat(stream.fileno()).st_mode
    again = stream.isatty() or stat.S_ISFIFO(kind)
    fd = _opened_again(stream.fileno()) if again else os.dup(stream.fileno())
    try:
        write = _sent if stat.S_ISSOCK(kind) else os.write
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        until_s = time.monotonic() + patience_s
        while data:
            # A pipe or a socket that has room for anything has room for so many bytes.
            if not poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
                return False
            try:
                data = data[write(fd, data[: select.PIPE_BUF]) :]
            except BlockingIOError:  # another process of this node has taken the room
                if time.monotonic() >= until_s:
                    return False
    except OSError:  # among others its reader is gone, or its disk is full
        return False
    finally:
        os.close(fd)
    return True


def _sent(fd: int, data: bytes) -> int:
    """Send to a socket, as that of systemd's journal, what it takes without blocking; return how many bytes."""
    with socket.socket(fileno=os.dup(fd)) as connection:
        return connection.send(data, socket.MSG_DONTWAIT)


def _opened_again(fd: int) -> int:
    """Return a descriptor of a terminal or a pipe on which writing does not block: a terminal may have room for a part
    of a line, and another process may take the room of a pipe. The setting belongs to this descriptor alone, and not to
    the shell that has the terminal, too. A terminal of another user, as after ``su``, cannot be opened again."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.dup(fd)
