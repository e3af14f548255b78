"""``hold``, ``release``, ``pause``, ``unpause``: set and end holds. ``spinney holds`` lists them.

A hold is one of the engine, on a collection, a queue or a job type; only the hold of a batch by its profile
is the service's own (``batches.held_batches``).
"""

from collections.abc import Mapping
from typing import Any

import typer

from spinney.apps.ingest.cli.commands import command
from spinney.apps.ingest.verbs.holds import Hold, Pause, Release, Unpause
from spinney.command_line import display

app = typer.Typer()


@command(app, Hold)
def show_hold(query: Hold, answer: Mapping[str, Any]) -> None:
    """Print the hold's number, and how many jobs it holds now."""
    held = answer["jobs"]
    jobs = "1 job is" if held == 1 else f"{held:,} jobs are"
    typer.echo(f"hold {answer['hold']} on collection {query.collection}: {jobs} held")


@command(app, Release)
def show_release(query: Release, answer: Mapping[str, Any]) -> None:
    """Print which holds have ended and, for a batch, whether another hold still applies to it."""
    if query.batch is not None:
        under = f", but stays under {display.safe(answer['under'][0])}" if answer["under"] else ""
        typer.echo(f"{answer['batch']} is released{under}")
        return
    for number in answer["ended"]:
        typer.echo(f"hold {number} on collection {query.collection} is released")


@command(app, Pause)
def show_pause(query: Pause, answer: Mapping[str, Any]) -> None:
    """Print whether it is paused now or was before; then its first reason stays."""
    typer.echo(
        f"{query.what} is paused" if answer["laid"] else f"{query.what} was paused already; its reason stays"
    )


@command(app, Unpause)
def show_unpause(query: Unpause, answer: Mapping[str, Any]) -> None:
    """Print whether it continues, or was not paused."""
    typer.echo(f"{query.what} continues" if answer["lifted"] else f"{query.what} was not paused")
