"""Listen on TCP and on a Unix socket, and know the peer of the latter.

A Unix socket is made under umask 077 in a directory of the owner. Others may be allowed to open it (by a group, by an
access list); the kernel tells the peer's user id, which takes the place of the client's address, as ``uid:1000``. No
TCP connection can have such an address."""

import logging
import os
import resource
import signal
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from spinney.model.errors import StoreUnusable, UsageError
from spinney.server.connections import Connection, bounded
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

KEEP_ALIVE_S = 65
"""How many seconds a connection may wait for its next request."""
OWN_FILES = 500
"""How many files the server may have open besides connections: of stores, downloads, uploads."""
DRAIN_S = 10
"""How long requests may still be answered when the server is stopped, in seconds."""
THREADS_S = 20.0
"""How long threads may go on after that: they may wait for a disk or a database that does not answer."""


class Server(uvicorn.Server):
    """A server of uvicorn that calls ``on_listening`` when it listens, and ``on_ending`` when it is stopped,
    which ends the event streams: they would never end by themselves, and uvicorn waits for open requests."""

    def __init__(
        self, config: uvicorn.Config, on_listening: Callable[[], None], on_ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_listening, self.on_ending = on_listening, on_ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then call ``on_listening``; it is not called when starting has failed."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Call ``on_ending``, then wait up to ``DRAIN_S`` seconds for requests that are being answered."""
        self.on_ending()
        await super().shutdown(sockets)


def serve(
    app: FastAPI, sockets: list[socket.socket], settings: ServerSettings, *, on_listening: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered have ``DRAIN_S`` seconds then. It
    blocks, and must be called in the main thread. ``on_listening`` is called when requests are answered.

    SIGTERM is handled as before when it returns, so that the caller can clean up its sockets and files. Raises
    StoreReplaced when that ended the server: its stores never work again, so a service manager has to start it anew."""
    _make_room(settings.connections + OWN_FILES)
    uvicorn_server = server(app, settings, on_listening=on_listening)

    def end(*_: object) -> None:
        uvicorn_server.should_exit = True

    at_last = threading.Timer(DRAIN_S + THREADS_S, _end_without_threads)
    at_last.daemon = True

    def ending() -> None:
        at_last.start()
        app.state.feed.end()

    uvicorn_server.on_ending = ending
    stores: StorePool = app.state.stores
    stores.on_replaced = end
    # uvicorn raises the signal again when it has ended; the caller still has to clean up then.
    before = signal.signal(signal.SIGTERM, end)
    try:
        uvicorn_server.run(sockets)
    finally:
        at_last.cancel()
        signal.signal(signal.SIGTERM, before)
    if stores.replaced is not None:
        raise stores.replaced


def _end_without_threads() -> None:
    """End the process, whose event loop would wait for its threads without end. What they do in the store is rolled
    back, as when a process is killed."""
    log.error(
        "calls of this server still work, or wait for the disk of the folder root or for the database; it ends without "
        "them, and the store rolls back what they have not finished"
    )
    os._exit(1)


def _make_room(files: int) -> None:
    """Raise the limit of open files to ``files``, as far as the hard limit allows: many systems start with 1,024."""
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
    on_listening: Callable[[], None],
    connection: type[Connection] = Connection,
) -> Server:
    """Return a server, for callers that stop it themselves or have connections with other limits.
    ``connection``: the class of its connections, of which ``bounded`` makes one of its own. ``app`` must have
    its feed (``events.add_to``)."""
    config = uvicorn.Config(
        app,
        http=bounded(connection, settings),
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,  # instrumentation logs a line for each request, with its caller
        server_header=False,
        date_header=True,
        proxy_headers=False,  # the trusted proxies are those of [server], and are checked where it matters
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        backlog=512,
    )
    return Server(config, on_listening, app.state.feed.end)


def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to this host and port; 0: any free port. If a name has several addresses, the first
    one counts. Raises UsageError (no such address), StoreUnusable (it cannot be bound)."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host!r} is no address to listen on: {error}; set host of [server]") from None
    family, kind, proto, _, address = addresses[0]
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
    """Return a socket that is bound to this path, for its owner alone. A socket that a dead server left there
    is removed.

    Raises StoreUnusable when another server listens there, or the path is no socket."""
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
    """Remove a socket that a dead server has left: nobody accepts a connection to it. Raises StoreUnusable
    when the path is no socket, or a server listens there."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StoreUnusable(f"{path} exists and is not a socket; set socket of [server] to another path")
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
