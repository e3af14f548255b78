"""Logging on a stream that nobody reads: a terminal that is stopped by Ctrl-S, a pipe to a program that hangs.

Writing to it would block for as long as that lasts, and with it the event loop of a node, or its guard, which writes a
line before it kills what has lost its leases. So a line that finds no room for ``PATIENCE_S`` is dropped, and those
behind it at once, until there is room again; then the log says how many are missing."""

import logging
import select
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
                text = f"{self._dropped} lines of this log had no reader and are missing\n{text}"
            self._dropped = 0 if write_line(self.stream, text, patience_s) else self._dropped + 1
        except Exception:  # noqa: BLE001 - as in every handler: a log that fails ends nothing
            self.handleError(record)


def write_line(stream: TextIO, line: str, patience_s: float = PATIENCE_S) -> bool:
    """Write a line to a stream that has a descriptor; return False where there was no room for all of it."""
    poll = select.poll()
    poll.register(stream, select.POLLOUT)
    data = f"{line}\n".encode(errors="backslashreplace")
    for start in range(0, len(data), select.PIPE_BUF):
        # Where there is room for anything, there is room for so many bytes.
        if not poll.poll(patience_s * 1000):
            return False
        stream.buffer.write(data[start : start + select.PIPE_BUF])
        stream.flush()
    return True
