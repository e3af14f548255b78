"""The commands ``serve`` and ``up``: run a server, alone or together with a node.

While the store has no user, the server listens on loopback only and prints a link with which the first admin
is made. Sockets are opened and the store is checked before anything is served, so that what is wrong is said
in one sentence.

With ``up`` this process is the server, and the node is a child with its own guard. Each ends with the other:
the node's end stops the server, SIGTERM to the server drains the node, and so does the death of a server that
is killed (``die_with_parent``). A crash leaves nothing that the next start would have to clean up: the socket
file of a dead server is replaced.
"""

import gc
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.cli.setup import make_store
from spinney.config import Settings, table
from spinney.model.errors import Refused, SpinneyError, UsageError
from spinney.model.values.networks import bracketed, is_loopback
from spinney.model.values.store_urls import database_file
from spinney.terminal import completion
from spinney.terminal.connection import current_folder, open_control, open_local_store, resolve_settings
from spinney.terminal.options.arguments import SlotsOption, StoreOption, option

if TYPE_CHECKING:
    from fastapi import FastAPI

    from spinney.web.settings import ServerSettings

HostOption = Annotated[
    str | None,
    option(metavar="ADDRESS", help_="The address to listen on (default: host of [server], then 127.0.0.1)."),
]
PortOption = Annotated[
    int | None,
    option(
        metavar="PORT",
        help_="The port to listen on, 0 for any free one (default: port of [server], then 8620).",
        min=0,
        max=65535,
    ),
]
SocketOption = Annotated[
    str | None,
    option(
        metavar="FILE",
        help_="The Unix socket to listen on, empty for none (default: socket of [server], then server.sock in "
        "the run-time directory).",
    ),
]
SAMPLE = "spinney.apps.sample:app"
"""What ``up`` runs where no application is named."""


app = typer.Typer()


@app.command()
def serve(
    host: HostOption = None, port: PortOption = None, socket: SocketOption = None, store: StoreOption = None
) -> None:
    """Run a server with the API and the web pages until SIGTERM."""
    config = resolve_settings(store)
    with _listening(config, _settings(host, port, socket), store) as (app, sockets, settings, addresses):
        _serve(app, sockets, settings, addresses, ())


@app.command()
def up(
    app: Annotated[
        str | None,
        typer.Argument(
            help="The application, as module:attribute (default: 'app' of spinney.toml, then a sample).",
            show_default=False,
        ),
    ] = None,
    slots: SlotsOption = None,
    name: Annotated[
        str | None,
        option(help_="The node's name (default: the host's).", complete=completion.nodes),
    ] = None,
    host: HostOption = None,
    port: PortOption = None,
    socket: SocketOption = None,
    store: StoreOption = None,
) -> None:
    """Create the store if there is none, and run a node and a server on it until SIGTERM."""
    config = resolve_settings(store)
    make_store(store)
    application = app or config.app
    if application is None:
        application = SAMPLE
        typer.echo(
            f"no application is named, so the node runs the sample ({SAMPLE}); name yours: "
            "spinney up module:app"
        )
    words = ["node", application, "--store", config.store, "--folders", str(config.folders)]
    words += ["--name", name] if name else []
    words += ["--slots", str(slots)] if slots is not None else []
    with _listening(config, _settings(host, port, socket), store) as (served, sockets, settings, addresses):
        _serve(served, sockets, settings, addresses, words)


def _settings(host: str | None, port: int | None, socket: str | None) -> "ServerSettings":
    """Return the settings of the server: those of the command line, over those of ``[server]`` in
    spinney.toml.

    Raises UsageError for invalid settings, and where the packages of the extra ``server`` are not installed.
    """
    try:
        from spinney.web.settings import TABLE, read
    except ImportError as error:  # pragma: no cover - the tests have them
        raise UsageError(
            f"a server needs more packages ({error}); install them: pip install spinney[server]"
        ) from None

    options = {"host": host, "port": port, "socket": socket}
    values = dict(table(TABLE, current_folder())) | {
        key: value for key, value in options.items() if value is not None
    }
    return read(values, current_folder())


Listening = tuple["FastAPI", list[socket.socket], "ServerSettings", list[str]]
"""The application; the sockets that it listens on, TCP first; its settings; and the lines about its addresses
to print."""


@contextmanager
def _listening(config: Settings, settings: "ServerSettings", store: str | None) -> Iterator[Listening]:
    """Yield the application, with its sockets open, its settings and its addresses; close the sockets at the
    end, and remove the file of the Unix socket if it was made here.

    Nothing is served yet. Raises SpinneyError for a store that cannot be used, and what ``listen_tcp`` and
    ``listen_unix`` raise for an address that is in use.
    """
    gc.disable()  # what is loaded stays as long as the server, and need not be looked through
    try:
        from spinney.server.application import Parts, make
        from spinney.server.http_server import listen_tcp, listen_unix
        from spinney.store.sql import open_store
        from spinney.web.identity import StoreAuthenticator
        from spinney.web.store_pool import CACHE_KIB
    finally:
        gc.freeze()
        gc.enable()

    with open_local_store(store) as opened:
        opened.facts()  # raises here, in one sentence, what every request would meet
    settings, link = _first_admin(settings, store)
    sockets, addresses = [], []
    path = _socket_path(config, settings)
    try:
        tcp = listen_tcp(settings.host, settings.port)
        sockets.append(tcp)
        base = settings.url or f"http://{bracketed(settings.host)}:{tcp.getsockname()[1]}"
        addresses.append(base)
        if path is not None:
            _make_parent(path, is_default=settings.socket is None and database_file(config.store) is None)
            sockets.append(listen_unix(path))
            addresses.append(str(path))
        if link is not None:
            addresses.append(f"create the first admin: {base}/welcome?link={link}")
        parts = Parts(
            settings=settings,
            open_store=lambda: open_store(config.store, cache_kib=CACHE_KIB),
            folders=config.folders,
            run_dir=None if config.run_dir is None else str(config.run_dir),
            identity=StoreAuthenticator,
        )
        yield make(parts), sockets, settings, addresses
    finally:
        for sock in sockets:
            sock.close()
        if path is not None and len(sockets) > 1:
            with suppress(FileNotFoundError):
                path.unlink()


def _first_admin(settings: "ServerSettings", store: str | None) -> tuple["ServerSettings", str | None]:
    """Return the settings, restricted to loopback while the store has no user, and the secret of the link by
    which the first admin is created; None: there are users, or the link has expired.

    Without users every visitor would be the first, so that only this machine may connect. A link that has
    expired is not replaced: logs keep what is printed here, and a service manager starts a server again and
    again.
    """
    from spinney.service.sign_in import SignIn

    with open_control(store) as control:
        try:
            link = control.part(SignIn).invite_first()
        except Refused as error:
            link = None
            typer.echo(str(error), err=True)
        else:
            if link is None:
                return settings, None
    if not is_loopback(settings.host):
        typer.echo(
            f"there is no user yet, so the server listens on 127.0.0.1 only, not on {settings.host}; create the first "
            f"admin, then start it again",
            err=True,
        )
        settings = settings.model_copy(update={"host": "127.0.0.1"})
    return settings, link


def _serve(
    app: "FastAPI",
    sockets: list[socket.socket],
    settings: "ServerSettings",
    addresses: list[str],
    node: Sequence[str],
) -> None:
    """Serve until SIGTERM or SIGINT, with a node beside the server if ``node`` has its arguments.

    The addresses are printed once the server accepts connections, so that a script that waits for the line
    can connect. Raises SpinneyError when that node has failed.
    """
    from spinney.node.run import set_up_log
    from spinney.node.workers.termination import killed_text, signal_name
    from spinney.server.http_server import serve as run_server

    set_up_log(settings.log_level)

    def print_addresses() -> None:
        for address in addresses:
            typer.echo(f"spinney serves {address}" if not address.startswith("create") else address)
        sys.stdout.flush()

    if not node:
        run_server(app, sockets, settings, on_listening=print_addresses)
        return
    with _beside(node) as process:
        run_server(app, sockets, settings, on_listening=print_addresses)
        failed = process.poll()
    if failed:
        end = (
            killed_text(signal_name(-failed))
            if failed < 0
            else f"ended with exit code {failed}, for the reason above"
        )
        raise SpinneyError(f"the node {end}, and the server stopped with it; start both again")


@contextmanager
def _beside(words: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a node as a child process as long as the block lasts: the node drains when the block ends, and the server is
    stopped when the node ends. SIGTERM and SIGINT while it drains are passed on to it, so that it stops at once."""
    from spinney.node.lifecycle.guard import PARENT_GONE
    from spinney.node.workers.proctree import die_with_parent

    us = os.getpid()
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", *words],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must reach it once, from this process, and not from the terminal too
        # When this process is killed, nobody else stops the node. preexec_fn is safe: there is no thread yet.
        preexec_fn=lambda: die_with_parent(us, PARENT_GONE),
    )

    ended = threading.Event()

    def watch() -> None:
        process.wait()
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield process
    finally:
        ended.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: process.terminate())
        process.terminate()
        process.wait()


def _socket_path(config: Settings, settings: "ServerSettings") -> Path | None:
    """Return where the Unix socket is to be; None: the settings want none, or there is no run-time
    directory."""
    if settings.socket is not None:
        return Path(settings.socket).absolute() if settings.socket else None
    return None if config.run_dir is None else config.run_dir / "server.sock"


def _make_parent(path: Path, *, is_default: bool) -> None:
    """Make the directory of the Unix socket. ``is_default``: it is that of a store on a server, which may be in /tmp.
    Raises UsageError for one of these that somebody else has made, who could put another socket into the place of
    ours."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.parent.lstat()
    if is_default and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022):
        raise UsageError(
            f"the directory of the Unix socket, {path.parent}, belongs to another user or may be written to by others; "
            f"remove it, or name another path with --socket"
        )
