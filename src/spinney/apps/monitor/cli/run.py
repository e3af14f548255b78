"""``spinney monitor run``: the node that does the checks, and the line protocol for older clients.

The node is a process of its own, in a session of its own, so that a signal of the terminal does not reach it past this
process. When the files of the tasks change, a new node takes over from it without a gap: stages are declared when a
node starts, so a running one cannot get another. A node that dies is started again, after pauses that grow.

SIGTERM, SIGINT and a client's ``SHUTDWN`` end both: the line protocol at once, the node when it has finished what it
runs. If this process is killed, its node goes on, and the next ``run`` takes over from it."""

import asyncio
import signal
import sys
import time
from asyncio.subprocess import Process
from contextlib import ExitStack, suppress
from typing import Annotated

import typer

from spinney.apps.monitor import settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.line_protocol.commands import CommandContext
from spinney.apps.monitor.line_protocol.server import LineServer
from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import task_list
from spinney.command_line import StoreOption, open_control, use_store

_LOOK_S = 1.0
"""How often the files of the tasks and the state of the node are looked at; also the first pause after its
death."""
_PAUSE_MAX_S = 60.0
"""The longest pause before a node that keeps dying is started again."""
_CALLER = "line protocol"
"""The name under which the audit has what clients of the line protocol do, since they do not sign in."""


def run(
    store: StoreOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many checks run at once.")] = None,
    name: Annotated[str, typer.Option(help="The name of the node.")] = "monitor",
    node: Annotated[
        bool, typer.Option(help="Run the node; --no-node serves the line protocol alone.")
    ] = True,
) -> None:
    """Run checks, and serve the line protocol, until SIGTERM or SHUTDWN."""
    use_store(store)
    config = settings.load()
    node_options = ["--name", name, "--slots", str(workers or config.workers)]
    command = [sys.executable, "-m", "spinney", "node", "spinney.apps.monitor:app", *node_options]
    with ExitStack() as stack:

        def open_context() -> CommandContext:
            """Open the store in the thread that will use it; it is closed when the command ends."""
            return CommandContext(stack.enter_context(open_control(store, _CALLER)), database(), config)

        line_server = LineServer(open_context, config.socket)
        raise typer.Exit(asyncio.run(_run(line_server, command if node else None, config)))


async def _run(line_server: LineServer, command: list[str] | None, config: Settings) -> int:
    """Run the node and the line protocol until one of them ends, or a signal comes; return the exit code. The
    error of the one that failed is raised after the other has ended. ``command``: starts the node; None:
    there is none."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, line_server.stop)
    if command is None:
        await line_server.run()
        return 0
    nodes = _Nodes(command)
    serving, working = asyncio.create_task(line_server.run()), asyncio.create_task(nodes.run(config))
    await asyncio.wait([serving, working], return_when=asyncio.FIRST_COMPLETED)
    line_server.stop()
    working.cancel()
    await nodes.stop()
    await serving  # raises what went wrong with the line protocol
    with suppress(asyncio.CancelledError):
        await working  # raises what went wrong with the nodes
    return 0


class _Nodes:
    """The node, started again when it dies, and older ones that drain after a newer one has taken over."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._running: list[Process] = []

    async def run(self, config: Settings) -> None:
        """Keep a node running; when the tasks have changed, start one that takes over, while the old one
        drains.

        A changed file is read before a node is started, so that a file that is no task starts nothing. A file
        that could not be identified for a passing reason is read again when it is due."""
        stamps = task_list.fingerprint(config)
        listed = await _read(config)
        pause_s, started_s = _LOOK_S, time.monotonic()
        await self._start()
        while True:
            await asyncio.sleep(_LOOK_S)
            self._running = [node for node in self._running if node.returncode is None]
            changed = task_list.fingerprint(config)
            if changed != stamps or listed.is_due():
                stamps, before = changed, listed
                listed = await _read(config)
                if listed.tasks != before.tasks:
                    await self._start()
            elif not self._running:
                lived_s = time.monotonic() - started_s
                pause_s = _LOOK_S if lived_s > _PAUSE_MAX_S else min(_PAUSE_MAX_S, 2 * pause_s)
                typer.echo(f"the node has ended; it is started again in {pause_s:g} s", err=True)
                await asyncio.sleep(pause_s)
                started_s = time.monotonic()
                await self._start()

    async def stop(self) -> None:
        """Let all nodes finish what they run, and wait for them."""
        for node in self._running:
            if node.returncode is None:
                node.send_signal(signal.SIGTERM)
        for node in self._running:
            await node.wait()

    async def _start(self) -> None:
        # --replace, since a node that outlived a killed monitor may still have the name.
        node = await asyncio.create_subprocess_exec(*self._command, "--replace", start_new_session=True)
        self._running.append(node)


async def _read(config: Settings) -> task_list.TaskList:
    """Read the tasks in a thread, since that runs programs, and print which files were rejected and why."""
    listed = await asyncio.to_thread(task_list.read, config)
    for broken in listed.broken:
        typer.echo(f"{broken.file} is rejected: {broken.problem}", err=True)
    return listed
