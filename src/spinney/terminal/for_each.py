"""One command for several things: a refusal is printed, and the remaining things are processed."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from spinney.model.errors import NoSuchJob, Refused
from spinney.terminal.exit_codes import Exit
from spinney.terminal.output import display

T = TypeVar("T")


def for_each(things: Sequence[T], do: Callable[[T], None]) -> None:
    """Call ``do`` with each distinct thing. A refusal of a single thing is raised; refusals among several are printed,
    and the command exits with ``Exit.REFUSED`` after the last thing."""
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
