"""A line of progress on the terminal."""

import sys
import time

import typer

INTERVAL_S = 0.5
"""How often it is written."""


class ProgressLine:
    """A line on standard error that is overwritten; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next_s = time.monotonic() + INTERVAL_S

    def show(self, text: str) -> None:
        """Write the text, unless one was written just before."""
        if self._is_terminal and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + INTERVAL_S
            typer.echo(f"\r{text}\033[K", nl=False, err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._is_terminal:
            typer.echo("\r\033[K", nl=False, err=True)
