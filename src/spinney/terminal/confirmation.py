"""A question before what cannot be taken back."""

import sys

import typer

from spinney.model.errors import UsageError
from spinney.terminal.exit_codes import Exit


def require_yes(question: str, *, yes: bool) -> None:
    """Go on when ``yes`` was given, or when somebody at the terminal says so; else end the command.

    Where nobody can be asked (a script, cron) nothing is taken for granted: raises UsageError.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is nobody to ask here: add --yes to say so")
    if not typer.confirm(question, err=True):
        typer.echo("nothing was done", err=True)
        raise typer.Exit(Exit.REFUSED)
