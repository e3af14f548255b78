"""What the commands of all bridges share: options, the node that runs the jobs, and how differences are printed."""

import logging
import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spinney.bridges import process
from spinney.bridges.bridge import Bridge
from spinney.command_line import Exit, display

NameOption = Annotated[
    str | None, typer.Option("--name", help="The node's name in the other system (default: the host's).")
]
SettingsOption = Annotated[Path, typer.Option("--settings", metavar="FILE", help="The settings.")]
SlotsOption = Annotated[int, typer.Option("--slots", min=1, help="How many jobs run at once.")]
SLOTS = os.cpu_count() or 1
DrainOption = Annotated[
    str,
    typer.Option(
        "--drain", metavar="TIME", help="How long running jobs may finish after SIGTERM, or a takeover."
    ),
]
ReplaceOption = Annotated[
    bool,
    typer.Option("--replace", help="Take over from a running process of this name, which drains."),
]


def work(
    bridge: Bridge, application: str, *, slots: int, drain: str, replace: bool, store: str | None
) -> NoReturn:
    """Run a bridge and the node for its jobs until SIGTERM, and end the command by typer.Exit with the node's
    exit code. ``application``: the module and name of the application that the node runs. ``replace``: take
    over from a running process of this name. Warnings and errors are logged on stderr with their time, beside the log
    of the node."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    raise typer.Exit(
        process.work(bridge, application, slots=slots, drain=drain, replace=replace, store=store)
    )


def print_differences(bridge: Bridge, entry: str, *, json: bool) -> None:
    """Compare both sides, and print what does not agree. ``entry``: the other system's word for an entry,
    which heads the column. Raises typer.Exit with the code for a refusal when there is a difference."""
    rows = [{entry: name, "finding": sentence} for name, sentence in bridge.differences()]
    columns = {entry.upper(): lambda row: row[entry], "FINDING": lambda row: row["finding"]}
    display.print_list(rows, columns, json=json, empty="both sides agree")
    if rows:
        raise typer.Exit(Exit.REFUSED)
