"""An HTTP server on 127.0.0.1 that serves files, one of them with a wrong byte until it is corrected."""

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 1 << 20


class Web:
    """The served files. Any user of this machine can connect, so paths begin with a word that cannot be guessed."""

    def __init__(self) -> None:
        self.files: Mapping[str, Path] = {}
        """The file for each path of a URL, without the word."""
        self.damaged: str | None = None
        """The path of the file whose first byte is wrong."""
        self.base = ""
        """The beginning of all URLs."""
        self.host = ""
        """``127.0.0.1:PORT``"""


@contextmanager
def serving() -> Iterator[Web]:
    """Run a server on a free port."""
    web = Web()
    word = f"/{secrets.token_urlsafe(12)}/"
    with _Server(("127.0.0.1", 0), _handler(web, word)) as server:
        web.host = f"127.0.0.1:{server.server_address[1]}"
        web.base = f"http://{web.host}{word}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="web")
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing: clients that are killed are expected."""


def _handler(web: Web, word: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            path = urlsplit(self.path).path
            local_file = web.files.get(path.removeprefix(word)) if path.startswith(word) else None
            if local_file is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            damaged = path.removeprefix(word) == web.damaged
            with local_file.open("rb") as file:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Length", str(local_file.stat().st_size))
                self.end_headers()
                while body and (chunk := file.read(_CHUNK)):
                    self.wfile.write(_with_wrong_byte(chunk) if damaged else chunk)
                    damaged = False

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Do nothing: there are thousands of requests."""

    return Handler


def _with_wrong_byte(chunk: bytes) -> bytes:
    return bytes([chunk[0] ^ 1]) + chunk[1:]
