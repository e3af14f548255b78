"""Work for a Disbatch database, as a node of it or as its command interface."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spinney.bridges import process
from spinney.bridges.bridge import Bridge
from spinney.bridges.disbatch import settings
from spinney.bridges.disbatch.database import check as check_database
from spinney.bridges.disbatch.database import connect
from spinney.bridges.disbatch.interface.cli import DatabaseOption, MongoOption
from spinney.bridges.disbatch.interface.cli import app as interface
from spinney.bridges.disbatch.node import DisbatchNode
from spinney.bridges.sole import sole
from spinney.command_line import (
    Exit,
    JsonOption,
    StoreOption,
    display,
    endpoint,
    open_control,
)

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.registered_commands += interface.registered_commands

PROGRAMS = "spinney.bridges.disbatch.programs:app"
NameOption = Annotated[
    str | None, typer.Option(help="The node's name over there (default: the host's).", show_default=False)
]
SettingsOption = Annotated[Path, typer.Option("--settings", help="The settings.")]


@app.command()
def node(
    application: Annotated[
        str, typer.Argument(metavar="APP", help="The application with the job types of the plugins.")
    ] = PROGRAMS,
    *,
    mongo: MongoOption,
    database: DatabaseOption,
    name: NameOption = None,
    slots: Annotated[int, typer.Option(min=1, help="How many tasks run at once here.")] = os.cpu_count() or 1,
    settings_file: SettingsOption = Path(settings.FILE),
    drain: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long running tasks may finish after SIGTERM, or a takeover."),
    ] = "1h",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take over from a running node of this name, which drains.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Claim tasks, run them, and write their results, until SIGTERM."""
    with _bridge(mongo, database, name, settings_file, slots, store) as bridge:
        ended = process.work(
            bridge, process.Node(application, bridge.foreign.name, slots, drain, store), replace=replace
        )
    raise typer.Exit(ended)


@app.command()
def check(
    *,
    mongo: MongoOption,
    database: DatabaseOption,
    name: NameOption = None,
    settings_file: SettingsOption = Path(settings.FILE),
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what is found; the node must not be running.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Compare the tasks that bear the node's name with the jobs here."""
    with _bridge(mongo, database, name, settings_file, 0, store) as bridge:
        if repair:
            with sole(process.lock_path(bridge.foreign.name, store), wait=False):
                bridge.take()
                bridge.round()
        rows = [{"task": entry, "finding": sentence} for entry, sentence in bridge.differences()]
    display.print_list(
        rows,
        {"TASK": lambda row: row["task"], "FINDING": lambda row: row["finding"]},
        json=json,
        empty="both sides agree",
    )
    if rows:
        raise typer.Exit(Exit.REFUSED)


@contextmanager
def _bridge(
    mongo: str, database: str, name: str | None, settings_file: Path, slots: int, store: str | None
) -> Iterator[Bridge]:
    endpoint.require_local(store)
    config, own = settings.load(settings_file), name or socket.gethostname()
    db = connect(mongo, database)
    with ExitStack() as stack:
        stack.callback(db.client.close)
        check_database(db)
        control = stack.enter_context(open_control(store, f"disbatch:{database}:{own}"))
        foreign = DisbatchNode(
            db,
            own,
            config,
            types=lambda: process.types_at_work(control),
            mark=lambda: control.store.bridges.mark(foreign.name),
            has_links=lambda: bool(control.store.bridges.links(foreign.name)),
        )
        if slots:
            stack.enter_context(foreign.beating())
        yield Bridge(foreign, control, slots, store)
