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


class FileServer(ThreadingHTTPServer):
    """Serves files on a free port; they may be replaced while it runs.

    Any user of this machine can connect, so every path begins with a prefix that cannot be guessed.
    """

    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: Mapping[str, Path] = {}
        """The local file for each path; a path is what follows ``base_url`` in a URL."""
        self.damaged_path: str | None = None
        """The path of the file that is served with a wrong first byte; None: all are served correctly."""
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.base_url = f"http://{self.host}/{secrets.token_urlsafe(12)}/"
        """The beginning of all URLs, with the secret prefix and a final slash."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: the demo kills workers, whose connections then break."""


@contextmanager
def run_server() -> Iterator[FileServer]:
    """Run a server in a thread of its own, and yield it. Its files are set while it runs: manifests contain the URLs,
    so that the port must be known before they are written. The thread has ended when the block is left."""
    with FileServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="web")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(SimpleHTTPRequestHandler):
    """Sends the served files; all others are not found. It has no ranges, so that the demo fetches whole files."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    server: FileServer

    @property
    def _served_path(self) -> str:
        """Return what follows ``base_url`` in the URL of the request; the whole URL where that begins otherwise."""
        return f"http://{self.server.host}{urlsplit(self.path).path}".removeprefix(self.server.base_url)

    def translate_path(self, path: str) -> str:
        """Return the local file of the request; an empty path, which is no file, for those that are not served."""
        return str(self.server.files.get(self._served_path, ""))

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; the damaged one with a first byte in which one bit is wrong."""
        if self._served_path == self.server.damaged_path:
            outputfile.write(bytes([source.read(1)[0] ^ 1]))
        super().copyfile(source, outputfile)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has this name
        """Log nothing: there are thousands of requests."""
