"""A real HTTP server between a storage and moto, that sometimes answers something else."""

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

Mood = Callable[[str, str, Mapping[str, str]], int | None]
"""Method, path and headers of a request that is passed on or not: the status to answer, or None for moto's own."""


def calm(method: str, path: str, headers: Mapping[str, str]) -> int | None:
    return None


@contextmanager
def moody(behind: str, before: Mood = calm, after: Mood = calm) -> Iterator[str]:
    """An endpoint; ``before`` keeps requests from moto, ``after`` only its answers from the client."""
    netloc = urlsplit(behind).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = dict(self.headers.items())
            status = before(self.command, self.path, headers)
            if status is not None:
                return self._answer(status, {}, b"")
            there = http.client.HTTPConnection(netloc)
            there.request(self.command, self.path, body, headers)
            answer = there.getresponse()
            raw, header_fields = answer.read(), dict(answer.getheaders())
            there.close()
            status = after(self.command, self.path, headers)
            if status is not None:
                return self._answer(status, {}, b"")
            return self._answer(answer.status, header_fields, raw)

        def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
