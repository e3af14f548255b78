"""A line of progress on the terminal."""

import sys
import time

import typer

INTERVAL_S = 0.5
"""The shortest time between two texts, in seconds."""


class ProgressLine:
    """A line on standard error that is overwritten; nothing is written where that is no terminal, so that
    logs have none.

    The first text appears after ``INTERVAL_S``, so that a command that ends at once shows no line. The texts
    are those of the caller and are not escaped.
    """

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next_s = time.monotonic() + INTERVAL_S

    def show(self, text: str) -> None:
        """Write the text, unless another was written less than ``INTERVAL_S`` ago; then it is dropped."""
        if self._is_terminal and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + INTERVAL_S
            typer.echo(f"\r{text}\033[K", nl=False, err=True)

    def end(self) -> None:
        """Clear the line, before the command prints its result or ends."""
        if self._is_terminal:
            typer.echo("\r\033[K", nl=False, err=True)
