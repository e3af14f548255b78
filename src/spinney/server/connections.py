"""One HTTP connection: its peer, the limits on time and size of a request's head, on a slow peer, and on the number of
connections.

Malformed HTTP is refused by the parser (llhttp, strict: a length given twice, or beside chunks, is a way to smuggle a
second request past a proxy). Trailers behind the chunks of a body are ignored: uvicorn would put it among the headers
that a proxy has checked."""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from spinney.model.values.networks import block
from spinney.server.connection_table import ConnectionTable, Refusal
from spinney.web.problems import AGAIN_S, of_status, problem
from spinney.web.settings import ServerSettings

HEAD_S = 10.0
"""How long a connection may take to send the head of a request."""
REST_S = 5.0
"""How long the rest of a body may still come when the answer has been sent."""
READ_S = 60.0
"""How long a client may read nothing of an answer."""
ADDRESS_MAX_BYTES = 16_384
"""The longest address of a request, with its query."""
HEAD_MAX_BYTES = 65_536
"""The longest head of a request, with its address."""
HEADERS_MAX = 100
"""The most headers of a request."""
CLOSE = "spinney.close"
"""The key in a request's scope of the function that closes its connection, also in the middle of an answer."""
_PEERCRED = struct.Struct("3i")


class Connection(HttpToolsProtocol):
    """An HTTP connection of uvicorn that knows the peer of a Unix socket, and limits size and time of a
    request's head, the patience with a slow reader, and the number of connections.

    Its methods are calls of asyncio and of the parser. A request that is refused here reaches neither the
    application nor its log lines and metrics."""

    head_s = HEAD_S
    rest_s = REST_S
    read_s = READ_S
    table: "ConnectionTable[Connection]"
    """All connections of the server (``bounded`` sets it)."""
    settings: ServerSettings
    _timer: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    _answering: RequestResponseCycle | None = None
    _in_head = True
    _whole = True
    _head_bytes = 0
    _fault = 400, "this is no HTTP/1.1; send a request that is"

    # --- the connection -------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Note the peer, in place of an address where the connection is over the Unix socket, and count the
        connection."""
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family == socket.AF_UNIX:
            pid, uid, _ = _PEERCRED.unpack(
                sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
            )
            self.client = (f"uid:{uid}", pid)
        self._close_after(self.head_s)
        address = "" if self.client is None else self.client[0]
        proxy = address.startswith("uid:") or self.settings.trusts(address)
        self.table.opened(self, block(address), bounded=not proxy)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection as closed, and tell the request that is being answered."""
        self.table.closed(self)
        self._in_time()
        self.resume_writing()
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            # uvicorn notifies only the last request; an answer to another one would raise an error.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin to answer a request; its scope gets what closes its connection (``CLOSE``)."""
        self._answering = cycle
        cycle.scope[CLOSE] = self.close  # type: ignore[literal-required]
        super()._start_asgi_task(cycle, app)

    def close(self) -> None:
        """Close the connection when what was written is sent, and after ``rest_s`` in any case."""
        self.transport.close()
        self.loop.call_later(self.rest_s, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and refuse a head that is too long before it has ended: the parser alone would
        collect it without bound."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_MAX_BYTES:
            self._fault = _HEAD
            self.send_400_response("")

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read; it is aborted after ``read_s`` seconds."""
        super().pause_writing()
        self._reader = self._reader or self.loop.call_later(self.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    # --- the parser's callbacks -----------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin the time limit of a head."""
        super().on_message_begin()
        self._in_head, self._whole, self._head_bytes = True, False, 0
        if self._timer is None:
            self._close_after(self.head_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head; those behind a body (trailers) are ignored."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse a request whose address or head is too long, or for which the connection table has no room."""
        self._in_time()
        self._in_head = False
        if len(self.url) > ADDRESS_MAX_BYTES:
            self._refuse(*_ADDRESS)
        if len(self.headers) > HEADERS_MAX or sum(map(_length, self.headers)) > HEAD_MAX_BYTES:
            self._refuse(*_HEAD)
        refusal = self.table.refusal(self)
        if refusal is not None and self.url.partition(b"?")[0] not in _ALWAYS:
            self._refuse(*_NO_ROOM[refusal])
        self.table.busy(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the body has come to its end."""
        self._in_time()
        self._whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the connection as idle; it is closed soon where the rest of a request's body does not come. A
        client may send requests ahead (pipelining): while one of those is being answered the connection stays
        busy."""
        super().on_response_complete()
        if self.cycle.response_complete:  # false while a request that was sent ahead is answered
            self.table.idle(self)
        if not self._whole and not self._in_head and self.cycle.response_complete:
            self._close_after(self.rest_s)

    # --- refusing -------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Write the answer to a request that is refused before any route, as a problem document, and close. uvicorn
        calls this for malformed HTTP."""
        status, sentence = self._fault
        headers = {"Connection": "close", "X-Content-Type-Options": "nosniff"}
        if self._fault in _NO_ROOM.values():
            headers["Retry-After"] = str(AGAIN_S)
            answer = problem(status, "busy", "No room now", sentence, headers=headers)
        else:
            answer = of_status(status, sentence, headers=headers)
        head = [
            b"HTTP/1.1 %d Refused\r\n" % status,
            *(b"%b: %b\r\n" % header for header in answer.raw_headers),
        ]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Refuse the request: an error that is raised in the parser's calls leads to ``send_400_response``."""
        self._fault = status, sentence
        raise ValueError(sentence)

    def _close_after(self, seconds: float) -> None:
        """Close the connection after this many seconds, unless ``_in_time`` is called before."""
        self._in_time()
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _in_time(self) -> None:
        """End the time limit that runs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        """Close the connection of a client that did not send in time what it had begun. It gets no answer:
        nothing of its request is known."""
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


_ADDRESS = 414, f"the address is longer than {ADDRESS_MAX_BYTES:,} bytes; send what is long in the body"
_HEAD = (
    431,
    f"the head has more than {HEADERS_MAX} headers or {HEAD_MAX_BYTES:,} bytes; send fewer, or shorter ones",
)
_NO_ROOM = {
    Refusal.FULL: (503, "as many connections are open as this server has room for; come again in a moment"),
    Refusal.CROWDED: (
        429,
        "as many connections are open from this address as one may have; close some, or come again in a moment",
    ),
}
_ALWAYS = (b"/health", b"/ready")
"""Addresses that are answered even where there is no room: a supervisor must not restart a busy server."""


def _length(header: tuple[bytes, bytes]) -> int:
    """Return the length of a header as it was sent."""
    return len(header[0]) + len(header[1]) + len(": \r\n")


def bounded(connection: type[Connection], settings: ServerSettings) -> type[Connection]:
    """Return the class of the connections of one server, whose number the settings limit: uvicorn makes its
    connections by calling a class, so the table that they share is an attribute of it."""
    table: ConnectionTable[Connection] = ConnectionTable(
        most=settings.connections,
        per_address=settings.connections_per_address,
        idle_per_address=settings.idle_per_address,
    )
    return type("Connection", (connection,), {"table": table, "settings": settings})
