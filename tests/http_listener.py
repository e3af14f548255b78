"""A server that listens: in a thread of this process, at a port of 127.0.0.1."""

import socket
import threading
from collections.abc import Sequence

from fastapi import FastAPI

from spinney.server.connections import Connection
from spinney.server.http_server import listen_tcp, server
from spinney.web.settings import ServerSettings

_PATIENCE_S = 20.0


class Listening:
    """Answers as soon as it is made; ``end`` it."""

    def __init__(
        self,
        app: FastAPI,
        settings: ServerSettings,
        *,
        port: int = 0,
        beside: Sequence[socket.socket] = (),
        connection: type[Connection] = Connection,
    ) -> None:
        """``port``: 0 for a free one. ``beside``: sockets where it listens, too."""
        tcp = listen_tcp("127.0.0.1", port)
        self.port: int = tcp.getsockname()[1]
        listens = threading.Event()
        self.server = server(app, settings, on_listening=listens.set, connection=connection)
        self._thread = threading.Thread(
            target=self.server.run, args=([tcp, *beside],), name="server", daemon=True
        )
        self._thread.start()
        assert listens.wait(_PATIENCE_S), "the server did not start"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        self.server.should_exit = True
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive(), "the server did not end"
