"""One command for several things: what cannot be is told, and the others are done."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from spinney.model.errors import NoSuchJob, Refused
from spinney.terminal import display
from spinney.terminal.exit_codes import Exit

T = TypeVar("T")


def for_each(things: Sequence[T], do: Callable[[T], None]) -> None:
    """Do it for each, once. Raises what a single one was refused with; of several each refusal is told, and the
    command ends with its code after the last."""
    distinct = list(dict.fromkeys(things))
    refused = False
    for thing in distinct:
        try:
            do(thing)
        except (Refused, NoSuchJob) as refusal:
            if len(distinct) == 1:
                raise
            refused = True
            typer.echo(f"spinney: {display.safe(str(refusal))}", err=True)
    if refused:
        raise typer.Exit(Exit.REFUSED)
