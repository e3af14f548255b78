"""Work for a Disbatch database, as a node of it or as its command interface."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spinney.bridges import commands, process
from spinney.bridges.bridge import Bridge
from spinney.bridges.disbatch import settings
from spinney.bridges.disbatch.database import check as check_database
from spinney.bridges.disbatch.database import connect
from spinney.bridges.disbatch.interface.cli import DatabaseOption, MongoOption
from spinney.bridges.disbatch.interface.cli import app as interface
from spinney.bridges.disbatch.node import DisbatchNode
from spinney.command_line import JsonOption, StoreOption, endpoint, open_control

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.registered_commands += interface.registered_commands

PROGRAMS = "spinney.bridges.disbatch.programs:app"


@app.command()
def node(
    application: Annotated[
        str, typer.Argument(metavar="APP", help="The application with the job types of the plugins.")
    ] = PROGRAMS,
    *,
    mongo: MongoOption,
    database: DatabaseOption,
    name: commands.NameOption = None,
    slots: commands.SlotsOption = commands.SLOTS,
    settings_file: commands.SettingsOption = Path(settings.FILE),
    drain: commands.DrainOption = "1h",
    replace: commands.ReplaceOption = False,
    store: StoreOption = None,
) -> None:
    """Claim tasks, run them, and write their results, until SIGTERM."""
    with _bridge(mongo, database, name, settings_file, slots, store) as bridge:
        commands.work(bridge, application, slots=slots, drain=drain, replace=replace, store=store)


@app.command()
def check(
    *,
    mongo: MongoOption,
    database: DatabaseOption,
    name: commands.NameOption = None,
    settings_file: commands.SettingsOption = Path(settings.FILE),
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair the differences; the node must not be running.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Compare the tasks that bear the node's name with the jobs here."""
    with _bridge(mongo, database, name, settings_file, 0, store) as bridge:
        if repair:
            with process.sole(bridge.foreign.name, store, wait=False):
                process.require_silent(bridge)
                bridge.take()
                bridge.round()
        commands.print_differences(bridge, "task", json=json)


@contextmanager
def _bridge(
    mongo: str, database: str, name: str | None, settings_file: Path, slots: int, store: str | None
) -> Iterator[Bridge]:
    """Open both sides for a command, and close them at its end. ``slots``: how many entries the bridge may
    have; with 0 it only looks, and writes no beats."""
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
        )
        if slots:
            stack.enter_context(foreign.beating())
        yield Bridge(foreign, control, slots, store)
