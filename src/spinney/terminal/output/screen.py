"""The whole terminal, taken for a while and given back as it was, however the block ends; and the keys that are typed.

Signals that end the process or change the terminal's size end the wait for a key. The caller learns of them, so that
the terminal is given back in order before the process ends by the signal after all.
"""

import codecs
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import FrameType
from typing import TYPE_CHECKING, Self

from spinney.model.errors import UsageError
from spinney.terminal.output import display

if TYPE_CHECKING:
    from rich.console import RenderableType

_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that end a wait for a key; SIGINT is not among them, since it raises KeyboardInterrupt
(``interrupts``)."""
_READ_BYTES = 4096


def require_terminal(command: str, instead: str) -> None:
    """Raise UsageError when stdin or stdout is no terminal, or the terminal cannot draw. ``command`` and ``instead``
    are the words for the message: what needs the terminal, and what to do without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{command} needs a terminal; {instead}")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise UsageError(
            f"{command} cannot draw on a terminal of the type {os.environ.get('TERM', '')!r}; set TERM, or {instead}"
        )


class Screen:
    """The screen of this process, taken within ``with``. It is used in the main thread only, because it
    handles signals.

    Taking it changes the terminal's modes, its alternate screen, the wake-up descriptor and the handlers of
    three signals; all are put back when the block ends, by whatever error. The caller draws, waits for keys,
    and leaves when ``ended_by`` is set.
    """

    def __init__(self) -> None:
        from rich.live import Live

        self._console = display.console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._keys = Keys()
        self._back = ExitStack()
        self.ended_by: int | None = None
        """The signal that asks the process to end; or 0: the terminal is gone."""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._take(undo)
            self._back = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._back.close()

    def _take(self, undo: ExitStack) -> None:
        """Change the terminal and the signals. Whatever is changed is put back in the opposite order; each
        step registers how before it is taken, so that an error in the middle leaves nothing changed."""
        stdin = sys.stdin.fileno()
        self._wake, wake = os.pipe()
        for end in (self._wake, wake):
            undo.callback(os.close, end)
            os.set_blocking(end, False)
        undo.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wake, warn_on_full_buffer=False))
        for number in _ENDING:
            undo.callback(signal.signal, number, signal.signal(number, self._end))
        undo.callback(signal.signal, signal.SIGWINCH, signal.signal(signal.SIGWINCH, lambda *_: None))
        modes = termios.tcgetattr(stdin)
        undo.callback(_quietly, lambda: termios.tcsetattr(stdin, termios.TCSAFLUSH, modes))
        tty.setcbreak(stdin)
        # Ctrl-Z would leave a shell on this screen.
        quiet = termios.tcgetattr(stdin)
        quiet[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(stdin, termios.TCSADRAIN, quiet)
        undo.callback(_quietly, self._live.stop)
        self._live.start()

    def _end(self, number: int, _: FrameType | None) -> None:
        self.ended_by = number

    @property
    def size(self) -> tuple[int, int]:
        """Return the terminal's size now: columns, then lines."""
        return self._console.size.width, self._console.size.height

    def draw(self, picture: "RenderableType") -> None:
        """Show ``picture`` in place of what was shown before."""
        try:
            self._live.update(picture, refresh=True)
        except OSError:
            self._terminal_lost()

    def wait(self, seconds: float) -> list[str]:
        """Return the keys that were typed, waiting up to so many ``seconds`` for the first. It returns earlier, perhaps
        with none, when the size has changed or ``ended_by`` was set."""
        ready, _, _ = select.select([sys.stdin, self._wake], [], [], max(0.0, seconds))
        if self._wake in ready:
            os.read(self._wake, _READ_BYTES)
        if sys.stdin not in ready:
            return []
        try:
            data = os.read(sys.stdin.fileno(), _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._terminal_lost()
        return self._keys.read(data)

    def _terminal_lost(self) -> None:
        if self.ended_by is None:
            self.ended_by = 0


def _quietly(give_back: Callable[[], None]) -> None:
    """Give back a part of the terminal; a terminal that is gone cannot be given back, and is no error."""
    with suppress(OSError, termios.error):
        give_back()


_NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b[Z": "back tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "clear",
}
_NAMES = frozenset(_NAMED.values())
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
"""A key as terminals send it: a control sequence (ECMA-48 section 5.4), a function key of SS3, or one
character."""


class Keys:
    """Turns the bytes that a terminal sends into keys: a printable character is itself, others have names, and what
    has no name is dropped.

    A terminal sends a sequence in one go, so an escape that ends what was read is the key itself.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, data: bytes) -> list[str]:
        """Return the keys in these bytes, in order: characters, or names such as ``up``, ``page down``,
        ``enter``, ``escape``.

        A character whose bytes are not complete is kept for the next call; bytes that are no UTF-8 become
        U+FFFD.
        """
        keys = []
        for sequence in _SEQUENCE.findall(self._decoder.decode(data)):
            key = _NAMED.get(sequence, sequence)
            if key in _NAMES or (len(key) == 1 and key.isprintable()):
                keys.append(key)
        return keys
