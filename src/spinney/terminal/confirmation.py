"""The confirmation that a command asks for before it does what cannot be undone."""

import sys

import typer

from spinney.model.errors import UsageError
from spinney.terminal.exit_codes import Exit


def require_yes(question: str, *, yes: bool) -> None:
    """Return when ``yes`` is given or the user confirms at the terminal; otherwise end the command.

    The question is put on stderr, so that stdout has results alone. An answer of no, which is the default,
    ends the command with ``Exit.REFUSED``. Raises UsageError without a terminal (a script, cron), where
    nobody could answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to confirm this at; add --yes to confirm it")
    if not typer.confirm(question, err=True):
        typer.echo("nothing was done", err=True)
        raise typer.Exit(Exit.REFUSED)
