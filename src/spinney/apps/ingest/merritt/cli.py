"""Work for Merritt's ingest queue in ZooKeeper, and look after it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import typer
from kazoo.client import KazooClient

from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config import settings as ingest_settings
from spinney.apps.ingest.merritt import marks, settings
from spinney.apps.ingest.merritt.access import AccessWork
from spinney.apps.ingest.merritt.consumer import MerrittConsumer
from spinney.apps.ingest.merritt.mirror import Mirror
from spinney.bridges import commands
from spinney.bridges.bridge import Bridge
from spinney.bridges.merritt_admin import app as admin
from spinney.bridges.merritt_connection import ZooKeeperOption, connected
from spinney.command_line import JsonOption, StoreOption, endpoint, open_control

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.registered_commands += admin.registered_commands

INGEST = "spinney.apps.ingest:app"


@app.command()
def run(
    *,
    zookeeper: ZooKeeperOption,
    name: commands.NameOption = None,
    slots: commands.SlotsOption = commands.SLOTS,
    settings_file: commands.SettingsOption = Path(settings.FILE),
    drain: commands.DrainOption = "1h",
    replace: commands.ReplaceOption = False,
    store: StoreOption = None,
) -> None:
    """Take jobs of the queue, deposit them with spinney ingest, and write their results, until SIGTERM."""
    config = settings.load(settings_file)
    config.require_queue()
    if config.work & {"batches", "jobs"}:
        config.require_payloads_in(ingest_settings.load().file_roots)
    with _bridge(zookeeper, name, settings_file, slots, store) as bridge:
        commands.work(bridge, INGEST, slots=slots, drain=drain, replace=replace, store=store)


@app.command()
def compare(
    *,
    zookeeper: ZooKeeperOption,
    name: commands.NameOption = None,
    settings_file: commands.SettingsOption = Path(settings.FILE),
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Compare the jobs that a consumer has taken with the jobs here."""
    with _bridge(zookeeper, name, settings_file, 0, store) as bridge:
        commands.print_differences(bridge, "job", json=json)


@contextmanager
def _bridge(
    hosts: str, name: str | None, settings_file: Path, slots: int, store: str | None
) -> Iterator[Bridge]:
    """Open the bridge between a queue and the store, and everything that it needs; close it at the end.

    The bridge acts in the name ``merritt:TREE:NODE``, which locks and the audit show. Raises
    UsageError where a server is named or a file of settings is invalid, and StoreUnavailable where ZooKeeper
    or the store does not answer.
    """
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
            access=AccessWork(client, control, name_here),
            mirror=Mirror(client, control, name_here, config.server),
        )
        yield Bridge(foreign, control, slots, store)
