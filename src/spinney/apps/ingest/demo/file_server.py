"""The HTTP server of the demo: it serves files on 127.0.0.1, one of them with a wrong byte, until the demo repairs
it."""

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class ServedFiles:
    """The files that the server offers, which may be replaced while it runs.

    Any user of this machine can connect, so every path begins with a prefix that cannot be guessed.
    """

    def __init__(self, host: str) -> None:
        self.files: Mapping[str, Path] = {}
        """The local file for each path; a path is what follows ``base_url`` in a URL."""
        self.damaged_path: str | None = None
        """The path of the file that is served with a wrong first byte; None: all are served correctly."""
        self.host = host
        """The server's address, as ``127.0.0.1:PORT``."""
        self.prefix = f"/{secrets.token_urlsafe(12)}/"
        self.base_url = f"http://{host}{self.prefix}"
        """The beginning of all URLs, with the secret prefix and a final slash."""


@contextmanager
def run_server() -> Iterator[ServedFiles]:
    """Run a server on a free port, in a thread of its own, and yield the files that it serves.

    The files may be set while it runs: manifests contain the URLs, so that the port must be known before they
    are written. The thread has ended when the block is left.
    """
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.served = ServedFiles(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="web")
        thread.start()
        try:
            yield server.served
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    served: ServedFiles

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: the demo kills workers, whose connections then break."""


class _Handler(SimpleHTTPRequestHandler):
    """Sends the served files; all others are not found. It has no ranges, so that the demo fetches whole files."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    server: _Server

    def translate_path(self, path: str) -> str:
        """Return the local file of a path; an empty path, which is no file, for those that are not served."""
        served, plain = self.server.served, urlsplit(path).path
        file = (
            served.files.get(plain.removeprefix(served.prefix)) if plain.startswith(served.prefix) else None
        )
        return "" if file is None else str(file)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; the damaged one with a first byte in which one bit is wrong."""
        served = self.server.served
        if urlsplit(self.path).path == f"{served.prefix}{served.damaged_path}":
            outputfile.write(bytes([source.read(1)[0] ^ 1]))
        super().copyfile(source, outputfile)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has this name
        """Log nothing: there are thousands of requests."""
