"""Whose print is it? stdout and stderr of a ``--many`` worker, told apart by attempt.

``sys.stdout`` and ``sys.stderr`` are replaced by streams that look whose context they are written
in: an attempt's text goes to the supervisor as messages, line by line; what is written outside an
attempt, or past Python (``sys.stdout.buffer``, C code, programs), goes where it always went, which
is the worker's log.
"""

import io
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TextIO

_FLUSH_CHARS = 8192

Tell = Callable[[int, str, str], None]
"""Takes fence, name of the stream, text."""


class Voice:
    """What one attempt has printed and not yet sent. Its threads may print at once."""

    __slots__ = ("_lock", "_tell", "_unsent", "fence", "spoke")

    def __init__(self, fence: int, tell: Tell) -> None:
        self.fence, self._tell = fence, tell
        self.spoke = False
        """It has printed something."""
        self._unsent: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, stream: str, text: str) -> None:
        """Take what was printed; complete lines are sent."""
        with self._lock:
            self.spoke = True
            # What has no place in UTF-8 (halves of surrogate pairs) must not stop a message.
            text = self._unsent.pop(stream, "") + text.encode("utf-8", "replace").decode()
            end = text.rfind("\n") + 1
            if len(text) - end > _FLUSH_CHARS:
                end = len(text)
            if end:
                self._tell(self.fence, stream, text[:end])
            if end < len(text):
                self._unsent[stream] = text[end:]

    def flush(self) -> None:
        """Send what is left."""
        with self._lock:
            for stream, text in self._unsent.items():
                self._tell(self.fence, stream, text)
            self._unsent.clear()


speaking: ContextVar[Voice | None] = ContextVar("speaking", default=None)
"""The attempt in whose context code runs; threads and tasks that it starts by asyncio have it too."""


class Divided(io.TextIOBase):
    """A text stream that divides; everything but writing is the original's."""

    def __init__(self, name: str, original: TextIO) -> None:
        self._name, self._original = name, original

    def write(self, text: str, /) -> int:
        voice = speaking.get()
        if voice is None:
            return self._original.write(text)
        voice.say(self._name, text)
        return len(text)

    def flush(self) -> None:
        voice = speaking.get()
        if voice is None:
            self._original.flush()
        else:
            voice.flush()

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
