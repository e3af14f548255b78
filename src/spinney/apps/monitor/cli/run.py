"""``spinney monitor run``: the node that does the checks, and the line protocol for older clients.

The node is a process of its own. When the files of the tasks change, a new one takes over from it without a gap."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from spinney.apps.monitor import settings
from spinney.apps.monitor.door.commands import Door
from spinney.apps.monitor.door.server import DoorServer
from spinney.apps.monitor.inventory.database import database
from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import task_list
from spinney.command_line import StoreOption, open_control, resolve_settings

_LOOK_S = 1.0
_CALLER = "line protocol"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(run)


def run(
    store: StoreOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many checks run at once.")] = None,
    name: Annotated[str, typer.Option(help="The name of the node.")] = "monitor",
    node: Annotated[
        bool, typer.Option(help="Run the node; --no-node serves the line protocol alone.")
    ] = True,
) -> None:
    """Run checks, and serve the line protocol, until SIGTERM or SHUTDWN."""
    config = settings.load()
    url = resolve_settings(store).store
    slots = str(workers or config.workers)
    command = [
        sys.executable,
        "-m",
        "spinney",
        "node",
        "spinney.apps.monitor:app",
        "--name",
        name,
        "--slots",
        slots,
    ]
    with ExitStack() as stack:
        door = DoorServer(_opener(stack, store, config), config.socket)
        raise typer.Exit(asyncio.run(_run(door, command if node else None, url, config)))


def _opener(stack: ExitStack, store: str | None, config: Settings) -> Callable[[], Door]:
    """Return what opens the store, in the thread that will use it."""

    def open_door() -> Door:
        control = stack.enter_context(open_control(store, _CALLER))
        return Door(control, database(), config)

    return open_door


async def _run(door: DoorServer, command: list[str] | None, store: str, config: Settings) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, door.stop)
    if command is None:
        await door.run()
        return 0
    nodes = _Nodes(command, {**os.environ, "SPINNEY_STORE": store})
    await nodes.start()
    serving, watching = asyncio.create_task(door.run()), asyncio.create_task(_watch(nodes, config))
    try:
        await asyncio.wait([serving, watching], return_when=asyncio.FIRST_COMPLETED)
    finally:
        door.stop()
        watching.cancel()
        code = await nodes.stop()
    await serving
    return code


class _Nodes:
    """The node, and one that it hands over to."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        self.current: Process | None = None

    async def start(self, *options: str) -> None:
        """Start a node; with ``--replace`` the one that works drains meanwhile, and ends by itself."""
        self.current = await asyncio.create_subprocess_exec(
            *self._command, *options, env=self._environment, start_new_session=True
        )

    async def stop(self) -> int:
        """Let the node finish what it runs, and return its exit code."""
        if self.current is None:
            return 0
        if self.current.returncode is None:
            self.current.send_signal(signal.SIGTERM)
        return await self.current.wait()


async def _watch(nodes: _Nodes, config: Settings) -> None:
    """Replace the node when the tasks have changed; return when it has ended by itself."""
    stamps = task_list.fingerprint(config)
    while nodes.current is not None and nodes.current.returncode is None:
        await asyncio.sleep(_LOOK_S)
        changed = task_list.fingerprint(config)
        if changed == stamps:
            continue
        stamps = changed
        listed = await asyncio.to_thread(task_list.read, config)
        for broken in listed.broken:
            typer.echo(f"{broken.file} is left out: {broken.problem}", err=True)
        await nodes.start("--replace")
