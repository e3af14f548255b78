"""Listen on TCP and on a Unix socket, and know who is at the other end of that.

A Unix socket is made under umask 077 in a place that is the owner's; whoever else may open it (by a group, by an
access list) is told from the kernel: the peer's user id stands where else the client's address does, as ``uid:1000``.
No TCP connection can say so.
"""

import logging
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from spinney.model.errors import StoreUnusable, UsageError
from spinney.server.connections import Connection, bounded
from spinney.web.settings import ServerSettings

log = logging.getLogger(__name__)

KEEP_ALIVE_S = 65
OWN_FILES = 500
"""Files that the server has open beside connections: of stores, downloads, uploads."""
DRAIN_S = 10
"""What is being answered may finish so long when the server is asked to end."""


class Server(uvicorn.Server):
    """Tells when it listens, and ends event streams when it is asked to end: they would go on for ever."""

    def __init__(self, config: uvicorn.Config, told: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._told, self._ending = told, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._told()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)


def serve(
    app: FastAPI, sockets: list[socket.socket], settings: ServerSettings, *, told: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT; ``told`` is called when requests are answered."""
    _make_room(settings.connections + OWN_FILES)
    made = server(app, settings, told=told)

    def end(*_: object) -> None:
        made.should_exit = True

    # uvicorn raises a signal anew when it is through; whoever called has things to put in order then.
    before = signal.signal(signal.SIGTERM, end)
    try:
        made.run(sockets)
    finally:
        signal.signal(signal.SIGTERM, before)


def _make_room(files: int) -> None:
    """Let this process have so many files open, as far as it may: many systems allow 1,024 unless asked for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < files:
        log.warning(
            "this process may have %d files open, and its connections may need %d; raise the limit (LimitNOFILE= of "
            "systemd, ulimit -n), or lower connections_max of [server]",
            most,
            files,
        )


def server(
    app: FastAPI,
    settings: ServerSettings,
    *,
    told: Callable[[], None],
    connection: type[Connection] = Connection,
) -> Server:
    """What serves, for who ends it himself, or has connections with other limits."""
    config = uvicorn.Config(
        app,
        http=bounded(connection, settings),
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,  # a line a request is written by measuring, with who asked
        server_header=False,
        date_header=True,
        proxy_headers=False,  # whom to believe is said in [server], and asked where it matters
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        backlog=512,
    )
    return Server(config, told, app.state.feed.end)


def listen_tcp(host: str, port: int) -> socket.socket:
    """Raises UsageError, StoreUnusable with what is in the way."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host!r} is no address to listen on: {error}; set host of [server]") from None
    family, kind, proto, _, address = found[0]
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise StoreUnusable(
            f"cannot listen on {host}:{port}: {error.strerror}; end what listens there, or choose another with --port"
        ) from None
    return sock


def listen_unix(path: Path) -> socket.socket:
    """The socket at this path, for its owner alone. What a dead server left there is taken away.

    Raises StoreUnusable when somebody listens there, or something else is in the way.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _clear(path)
        before = os.umask(0o077)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
    except OSError as error:
        sock.close()
        raise StoreUnusable(
            f"cannot listen on the Unix socket {path}: {error.strerror or error}; set socket of [server] to another "
            f'path, or to "" for none'
        ) from None
    except BaseException:
        sock.close()
        raise
    return sock


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StoreUnusable(f"{path} is there and no socket; set socket of [server] to another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            with suppress(FileNotFoundError):
                path.unlink()
            return
    raise StoreUnusable(
        f"another server listens on {path}; end it, or set socket of [server] to another path"
    )
