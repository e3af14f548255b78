"""Assign stdout and stderr of a ``--concurrent`` worker to attempts.

``sys.stdout`` and ``sys.stderr`` are replaced by streams that check in whose context they are called: an attempt's text
goes to the supervisor as messages, line by line; text that is written outside an attempt, or past Python
(``sys.stdout.buffer``, C code, programs), goes to the original stream, which is the worker's log."""

import io
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TextIO

_FLUSH_CHARS = 8192
"""A line that is longer is sent before it has ended, so that a progress bar without line ends takes little
memory."""

_MESSAGE_CHARS = 2**20
"""A longer text is sent in several messages, whose length is limited (``wire.LIMIT_BYTES``): a character takes at most
six bytes."""
_PRINTED_MOST = 1000
"""How many texts may wait for the thread that sends before further ones have to wait."""
_PATIENCE_S = 1.0
"""How long they do, in seconds."""

SendOutput = Callable[[int, str, str], None]
"""A function that sends fence, name of the stream, and text."""


class AttemptOutput:
    """Text that one attempt has printed and that is not sent yet. Several of its threads may print at once.

    Printing never waits for a thread that is sending, which takes the text over. The printing code may be a finalizer
    that the garbage collector runs in the middle of the sending, in the same thread or in one for which the sending
    thread waits."""

    __slots__ = ("_lock", "_printed", "_send", "_unsent", "fence", "has_output")

    def __init__(self, fence: int, send: SendOutput) -> None:
        self.fence, self._send = fence, send
        self.has_output = False
        """Whether it has printed anything."""
        self._printed: deque[tuple[str, str] | None] = deque()
        """Stream and text in the order of printing; None: all before it is to be sent, also lines without an end."""
        self._unsent: dict[str, str] = {}
        """The beginning of a line that is not sent yet, by stream. Only the holder of the lock uses it."""
        self._lock = threading.Lock()
        """Held while sending."""

    def write(self, stream: str, text: str) -> None:
        """Add printed text. Complete lines are sent at once; the rest waits for its end, for ``flush``, or
        until it is long. Whatever cannot be encoded is replaced."""
        self.has_output = True
        # Characters that UTF-8 cannot encode (halves of surrogate pairs) must not break a message.
        self._printed.append((stream, text.encode("utf-8", "replace").decode()))
        self._send_printed()

    def flush(self) -> None:
        """Send the output that is still buffered, of both streams, or leave that to the thread that is sending."""
        self._printed.append(None)
        self._send_printed()

    def finish(self) -> None:
        """Send the output that is still buffered, after a thread that is sending. It is called when the attempt ends,
        before its row is sent."""
        with self._lock:
            self._printed.append(None)
            while self._printed:
                self._send_next()

    def _send_printed(self) -> None:
        # A thread that prints faster than another one sends waits for it, but not for ever: see the class.
        patience_s = _PATIENCE_S if len(self._printed) > _PRINTED_MOST else 0.0
        while self._printed and self._lock.acquire(timeout=patience_s):
            try:
                if self._printed:
                    self._send_next()
            finally:
                self._lock.release()

    def _send_next(self) -> None:
        """Send what was printed first; the caller holds the lock."""
        printed = self._printed.popleft()
        if printed is None:
            while self._unsent:
                self._send(self.fence, *self._unsent.popitem())
            return
        stream, text = printed
        text = self._unsent.pop(stream, "") + text
        end = text.rfind("\n") + 1
        if len(text) - end > _FLUSH_CHARS:
            end = len(text)
        if end < len(text):
            self._unsent[stream] = text[end:]
        for start in range(0, end, _MESSAGE_CHARS):
            self._send(self.fence, stream, text[start : min(start + _MESSAGE_CHARS, end)])


current_output: ContextVar[AttemptOutput | None] = ContextVar("current_output", default=None)
"""The output of the attempt in whose context code runs; threads and tasks that it starts by asyncio have it too."""


class RoutedStream(io.TextIOBase):
    """A text stream that writes to the output of the current attempt; everything else is done by the original
    stream.

    It takes the place of ``sys.stdout`` or ``sys.stderr``. It is no terminal, and its ``fileno`` and
    ``buffer`` are those of the original: what writes there goes past it, into the worker's log."""

    def __init__(self, name: str, original: TextIO) -> None:
        self._name, self._original = name, original

    def write(self, text: str, /) -> int:
        """Write to the output of the attempt in whose context this is called, else to the original stream."""
        output = current_output.get()
        if output is None:
            return self._original.write(text)
        output.write(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Send what the current attempt has printed, or flush the original stream."""
        output = current_output.get()
        if output is None:
            self._original.flush()
        else:
            output.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()

    def isatty(self) -> bool:
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._original.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._original.errors

    @property
    def buffer(self) -> object:
        return self._original.buffer
