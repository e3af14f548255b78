"""The HTTP server of the demo: it serves files on 127.0.0.1, one of them with a wrong byte, until the demo repairs
it."""

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 1 << 20
"""How many bytes of a file are read and sent at once."""


class ServedFiles:
    """The files that the server offers, which may be replaced while it runs.

    Any user of this machine can connect, so every path begins with a prefix that cannot be guessed.
    """

    def __init__(self) -> None:
        self.files: Mapping[str, Path] = {}
        """The local file for each path; a path is what follows ``base_url`` in a URL."""
        self.damaged_path: str | None = None
        """The path of the file that is served with a wrong first byte; None: all are served correctly."""
        self.base_url = ""
        """The beginning of all URLs, with the secret prefix and a final slash."""
        self.host = ""
        """The server's address, as ``127.0.0.1:PORT``."""


@contextmanager
def run_server() -> Iterator[ServedFiles]:
    """Run a server on a free port, in a thread of its own, and yield the files that it serves.

    The files may be set while it runs: manifests contain the URLs, so that the port must be known before they
    are written. The thread has ended when the block is left.
    """
    served_files = ServedFiles()
    secret_prefix = f"/{secrets.token_urlsafe(12)}/"
    with _Server(("127.0.0.1", 0), _handler(served_files, secret_prefix)) as server:
        served_files.host = f"127.0.0.1:{server.server_address[1]}"
        served_files.base_url = f"http://{served_files.host}{secret_prefix}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="web")
        thread.start()
        try:
            yield served_files
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: the demo kills workers, whose connections then break."""


def _handler(served_files: ServedFiles, secret_prefix: str) -> type[BaseHTTPRequestHandler]:
    """Return the handler of requests: GET and HEAD of the served files, all others are not found.

    It has no ranges and no validators, as the simplest of servers, so that the demo fetches whole files.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            path = urlsplit(self.path).path
            path_below = path.removeprefix(secret_prefix)
            local_file = served_files.files.get(path_below) if path.startswith(secret_prefix) else None
            if local_file is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            damage_next = path_below == served_files.damaged_path
            with local_file.open("rb") as file:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Length", str(local_file.stat().st_size))
                self.end_headers()
                while body and (chunk := file.read(_CHUNK)):
                    self.wfile.write(_with_wrong_first_byte(chunk) if damage_next else chunk)
                    damage_next = False  # only the first byte of the file is wrong

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has this name
            """Log nothing: there are thousands of requests."""

    return Handler


def _with_wrong_first_byte(chunk: bytes) -> bytes:
    """Return a piece whose first byte has one bit changed; it has at least one byte."""
    return bytes([chunk[0] ^ 1]) + chunk[1:]
