"""A terminal of its own for a command, as a user sits at it: what it shows, and what is typed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pyte

PATIENCE_S = 20.0


class Terminal:
    """A command on a pseudo terminal; ``with`` ends it."""

    def __init__(
        self, folder: Path, argv: Sequence[str], *, columns: int = 140, lines: int = 30, **env: str
    ) -> None:
        self._master, self._slave = pty.openpty()
        self._set_size(columns, lines)
        self.modes_before = self.modes
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """All that was written to it."""
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith("SPINNEY_") and k not in ("COLUMNS", "LINES")
        }
        self.process = subprocess.Popen(
            [sys.executable, *argv],
            cwd=folder,
            env=kept | {"TERM": "xterm-256color"} | env,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=self._become_its_terminal,
        )

    @staticmethod
    def _become_its_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    # --- looking --------------------------------------------------------------------------

    @property
    def lines(self) -> list[str]:
        """What stands on the screen now."""
        self._read(0)
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def selected(self) -> str:
        """The line that is shown in reverse; empty when there is none."""
        self._read(0)
        for number, row in self._screen.buffer.items():
            if any(cell.reverse for cell in row.values()):
                return self._screen.display[number].strip()
        return ""

    @property
    def modes(self) -> list[Any]:
        """Those of the terminal: echo, line by line, …"""
        return termios.tcgetattr(self._slave)

    def wait_for(self, shown: str | Callable[["Terminal"], object]) -> None:
        """Until a text stands on the screen, or a condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._has(shown):
            ended = self.process.poll()
            self._read(0.05)  # what it wrote before its end is there by now
            assert ended is None or self._has(shown), (
                f"it ended with {ended} before {shown!r} in:\n{self.text}"
            )
            assert time.monotonic() < deadline, f"{shown!r} never in:\n{self.text}"

    def _has(self, shown: str | Callable[["Terminal"], object]) -> bool:
        return shown in self.text if isinstance(shown, str) else bool(shown(self))

    def end(self) -> int:
        """Wait until the command has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.05)
        self._read(0)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        """All that is there, and only then what it draws: that takes longer than to write it, so that whoever reads
        until nothing comes any more would do so for ever."""
        data = b""
        while select.select([self._master], [], [], seconds)[0]:
            data += os.read(self._master, 65_536)
            seconds = 0
        self.raw += data
        self._stream.feed(data)

    # --- doing ----------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
