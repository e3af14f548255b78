"""A real receiver of webhooks for tests, which misbehaves as it is told."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Call:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What it answers next (its last answer for ever), and what came."""

    answers: list[Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    url: str = ""


def answer(
    status: int, body: bytes = b"", length: int | None = None, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    """``length``: what it claims, when that is not the truth."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return send


def cut(handler: BaseHTTPRequestHandler) -> None:
    """End the connection without an answer."""
    handler.close_connection = True


@contextmanager
def receiver(
    *answers: Callable[[BaseHTTPRequestHandler], None], certificate: Path | None = None
) -> Iterator[Receiver]:
    """One that listens on 127.0.0.1. ``certificate``: that of localhost with its key, for one that speaks TLS."""
    made = Receiver(list(answers) or [answer(204)])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.calls.append(Call(self.path, dict(self.headers), body))
            (made.answers.pop(0) if len(made.answers) > 1 else made.answers[0])(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        origin = "http://127.0.0.1" if certificate is None else "https://localhost"
        made.url = f"{origin}:{server.server_address[1]}/hook?token=tell-nobody"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
