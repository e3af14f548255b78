"""Work for Merritt's ingest queue in ZooKeeper, and look after it."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from kazoo.client import KazooClient

from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config import settings as ingest_settings
from spinney.apps.ingest.merritt import marks, settings
from spinney.apps.ingest.merritt.access import AccessWork
from spinney.apps.ingest.merritt.admin import app as admin
from spinney.apps.ingest.merritt.connection import ZooKeeperOption, connected
from spinney.apps.ingest.merritt.consumer import MerrittConsumer
from spinney.apps.ingest.merritt.mirror import Mirror
from spinney.bridges import process
from spinney.bridges.bridge import Bridge
from spinney.command_line import Exit, JsonOption, StoreOption, display, endpoint, open_control

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.registered_commands += admin.registered_commands

INGEST = "spinney.apps.ingest:app"
NameOption = Annotated[
    str | None,
    typer.Option(help="The consumer's name over there (default: the host's).", show_default=False),
]
SettingsOption = Annotated[Path, typer.Option("--settings", help="The settings.")]


@app.command()
def run(
    *,
    zookeeper: ZooKeeperOption,
    name: NameOption = None,
    slots: Annotated[int, typer.Option(min=1, help="How many jobs are taken at once.")] = os.cpu_count() or 1,
    settings_file: SettingsOption = Path(settings.FILE),
    drain: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long running jobs may finish after SIGTERM, or a takeover."),
    ] = "1h",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take over from a running consumer of this name, which drains.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Take jobs of the queue, deposit them with spinney ingest, and write what becomes of them, until SIGTERM."""
    settings.load(settings_file).require_queue()
    with _bridge(zookeeper, name, settings_file, slots, store) as bridge:
        own_node = process.Node(INGEST, bridge.foreign.name, slots, drain, store)
        ended = process.work(bridge, own_node, replace=replace)
    raise typer.Exit(ended)


@app.command()
def compare(
    *,
    zookeeper: ZooKeeperOption,
    name: NameOption = None,
    settings_file: SettingsOption = Path(settings.FILE),
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Compare the jobs that a consumer has taken with the jobs here."""
    with _bridge(zookeeper, name, settings_file, 0, store) as bridge:
        rows = [{"job": entry, "finding": sentence} for entry, sentence in bridge.differences()]
    display.print_list(
        rows,
        {"JOB": lambda row: row["job"], "FINDING": lambda row: row["finding"]},
        json=json,
        empty="both sides agree",
    )
    if rows:
        raise typer.Exit(Exit.REFUSED)


@contextmanager
def _bridge(
    hosts: str, name: str | None, settings_file: Path, slots: int, store: str | None
) -> Iterator[Bridge]:
    endpoint.require_local(store)
    config, own = settings.load(settings_file), name or socket.gethostname()
    with ExitStack() as stack:
        client: KazooClient = stack.enter_context(connected(hosts, session_s=config.session))
        identity = marks.identity(client)
        name_here = f"merritt:{identity}:{own}"
        control = stack.enter_context(open_control(store, name_here))
        foreign = MerrittConsumer(
            client,
            identity,
            own,
            config,
            collection_of=lambda profile: profiles.load(ingest_settings.load(), profile).collection,
            mark=lambda: control.store.bridges.mark(foreign.name),
            access=AccessWork(client, control, name_here),
            mirror=Mirror(client, control, name_here, config.server),
        )
        yield Bridge(foreign, control, slots, store)
