"""A real HTTP server on 127.0.0.1 that serves pages well, and misbehaves as a test tells it to.

    with Web() as web:
        url = web.put("/a", b"bytes", Cut(after=2), status(503, {"Retry-After": "1"}))

The behaviours are used up one a request (HEAD and GET alike), then the page is served as it should be;
``always=`` never is. ``web.log`` holds every request in the order they came.
"""

import contextlib
import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self

PIECE_BYTES = 64 << 10
OLD = 1_000_000_000
"""When pages were changed last, in seconds since the epoch: 2001-09-09T01:46:40Z."""


class Body(Protocol):
    """Bytes that need not be in memory."""

    def __len__(self) -> int: ...
    def pieces(self, start: int) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class Bytes:
    content: bytes

    def __len__(self) -> int:
        return len(self.content)

    def pieces(self, start: int) -> Iterator[bytes]:
        for at in range(start, len(self.content), PIECE_BYTES):
            yield self.content[at : at + PIECE_BYTES]


@dataclass(frozen=True)
class Repeated:
    """A piece again and again, for files larger than memory."""

    size_bytes: int
    piece: bytes = bytes(range(256)) * (PIECE_BYTES // 256)

    def __len__(self) -> int:
        return self.size_bytes

    def pieces(self, start: int) -> Iterator[bytes]:
        doubled = self.piece * 2
        while start < self.size_bytes:
            at = start % len(self.piece)
            chunk = doubled[at : at + min(len(self.piece), self.size_bytes - start)]
            yield chunk
            start += len(chunk)

    def digest(self, algorithm: str = "sha256") -> str:
        sums = hashlib.new(algorithm)
        for piece in self.pieces(0):
            sums.update(piece)
        return sums.hexdigest()


@dataclass(frozen=True, kw_only=True)
class ReceivedRequest:
    """A request as the server received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """The headers by their names in lower case."""

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


Behaviour = Callable[["Exchange"], None]
"""Answers one request, in whatever way."""


@dataclass(kw_only=True)
class Page:
    body: Body
    headers: dict[str, str]
    first: list[Behaviour] = field(default_factory=list)
    always: Behaviour | None = None


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(self, handler: BaseHTTPRequestHandler, page: Page, web: "Web") -> None:
        self._handler = handler
        self.page = page
        self.web = web
        self.method = handler.command
        self.headers = {k.lower(): v for k, v in handler.headers.items()}

    def head(self, status: int, headers: Mapping[str, Any]) -> None:
        """Send a status line and headers."""
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
        self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")

    def raw(self, content: bytes) -> None:
        """Send bytes as they are."""
        self._handler.wfile.write(content)

    def close(self) -> None:
        """No further request on this connection."""
        self._handler.close_connection = True

    def reset(self) -> None:
        """End the connection, so that the client sees it end now."""
        self.close()
        with contextlib.suppress(OSError):  # the client has closed it
            self._handler.connection.shutdown(2)

    def start(self) -> int | None:
        """Where the range asked for begins, when it is asked for this very page; None for the whole."""
        response = self.headers.get("range")
        condition = self.headers.get("if-range")
        own = (self.page.headers.get("ETag"), self.page.headers.get("Last-Modified"))
        if response is None or (condition is not None and condition not in own):
            return None
        return int(response.removeprefix("bytes=").rstrip("-"))

    def well(self, *, pieces: Callable[[Iterator[bytes]], Iterator[bytes]] = lambda p: p) -> None:
        """Answer as a good server does; ``pieces`` may change the body on its way."""
        start, size = self.start(), len(self.page.body)
        if start is not None and start >= size:
            self.head(416, {"Content-Range": f"bytes */{size}", "Content-Length": 0})
            return
        at = start or 0
        headers = {"Date": formatdate(usegmt=True), "Content-Length": size - at, **self.page.headers}
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        self.head(200 if start is None else 206, headers)
        if self.method != "HEAD":
            for piece in pieces(self.page.body.pieces(at)):
                self.raw(piece)
                self.web.sent_bytes += len(piece)


class Web:
    """The HTTP server. ``tls`` names a certificate and its key as PEM files."""

    def __init__(self, tls: tuple[str, str] | None = None, port: int = 0) -> None:
        self.pages: dict[str, Page] = {}
        self.log: list[ReceivedRequest] = []
        self.sent_bytes = 0
        """The bytes of all bodies that were sent."""
        self.connections = 0
        """The number of connections so far."""
        self.closing = threading.Event()
        """Set when the server ends: what a behaviour waits on, so that none holds the test up."""
        self._scheme = "https" if tls else "http"
        self._server = _Server(("127.0.0.1", port), self._handler())
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def host(self) -> str:
        """As in a URL."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"{self._scheme}://{self.host}{path}"

    def put(
        self,
        path: str,
        body: bytes | Body = b"",
        *first: Behaviour,
        always: Behaviour | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Serve ``body`` at ``path``; returns its URL. With ``headers``, those instead of ETag and date."""
        content: Body = Bytes(body) if isinstance(body, bytes) else body
        usual = {"ETag": f'"{path}"', "Last-Modified": formatdate(OLD, usegmt=True)}
        self.pages[path] = Page(
            body=content,
            headers=dict(usual if headers is None else headers),
            first=list(first),
            always=always,
        )
        return self.url(path)

    def ranges(self, path: str) -> list[str | None]:
        """The Range of every GET for ``path``; None where the whole was asked for."""
        return [a.range for a in self.log if a.method == "GET" and a.path == path]

    def request_count(self, path: str, method: str = "GET") -> int:
        """Return how many requests with this method came for this path."""
        return sum(a.path == path and a.method == method for a in self.log)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                web.connections += 1
                super().setup()

            def do_GET(self) -> None:
                request = ReceivedRequest(
                    method=self.command,
                    path=self.path,
                    headers={k.lower(): v for k, v in self.headers.items()},
                )
                web.log.append(request)
                page = web.pages.get(self.path)
                exchange = Exchange(self, page or Page(body=Bytes(b""), headers={}), web)
                if page is None:
                    exchange.head(404, {"Content-Length": 0})
                    return
                behaviour = page.first.pop(0) if page.first else page.always or Exchange.well
                try:
                    behaviour(exchange)
                except (ConnectionError, ssl.SSLError):
                    # The client has seen enough.
                    self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Five, as usual, are fewer than connect at once here; the others would wait a second.
    request_queue_size = 128


# What a server may do wrong.


def status(code: int, headers: Mapping[str, str] | None = None) -> Behaviour:
    """Only a status."""
    return lambda x: x.head(code, {"Content-Length": 0, **(headers or {})})


def redirect(to: str, code: int = 302) -> Behaviour:
    """Elsewhere."""
    return status(code, {"Location": to})


def cut(after_bytes: int) -> Behaviour:
    """Promise the whole, send so much of the body, and hang up."""

    def behave(x: Exchange) -> None:
        x.well(pieces=lambda pieces: _up_to(pieces, after_bytes))
        x.reset()

    return behave


def stuck(after_bytes: int) -> Behaviour:
    """Promise the whole, send so much of the body, then nothing until the server ends."""

    def behave(x: Exchange) -> None:
        x.well(pieces=lambda pieces: _up_to(pieces, after_bytes))
        x.web.closing.wait()
        x.close()

    return behave


def dripping(every_s: float, piece: bytes = b"x") -> Behaviour:
    """An endless body, a few bytes at a time."""

    def behave(x: Exchange) -> None:
        x.close()
        x.head(200, {"Connection": "close"})
        while not x.web.closing.wait(every_s):
            x.raw(piece)

    return behave


def endless(x: Exchange) -> None:
    """A body without length or end, as fast as it can."""
    x.close()
    x.head(200, {"Connection": "close"})
    while not x.web.closing.is_set():
        x.raw(b"\0" * PIECE_BYTES)


def interim(x: Exchange) -> None:
    """Interim answers without end, and never the one asked for."""
    x.close()
    while not x.web.closing.is_set():
        x.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n" * 100)


def raw(content: bytes) -> Behaviour:
    """These bytes, then hang up."""

    def behave(x: Exchange) -> None:
        x.raw(content)
        x.reset()

    return behave


def whole_again(x: Exchange) -> None:
    """As if it had never heard of ranges."""
    x.headers.pop("range", None)
    x.well()


def headed(headers: Mapping[str, str], body: bytes = b"", code: int = 200) -> Behaviour:
    """This head and this body, whatever is asked."""

    def behave(x: Exchange) -> None:
        x.head(code, {"Content-Length": len(body), **headers})
        if x.method != "HEAD":
            x.raw(body)

    return behave


def _up_to(pieces: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
    left = size_bytes
    for piece in pieces:
        if not left:
            return
        yield piece[:left]
        left -= len(piece[:left])
