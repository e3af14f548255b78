"""A small EZID on 127.0.0.1 that answers, and misbehaves, as its script says."""

import base64
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARK = "ark:/99999/fk4rx9d523"
Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    server: "EzidServer"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.path, dict(self.headers), body))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""


class EzidServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.answers: list[Answer] = [says(f"success: {ARK}", 201)]
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def says(text: str, status: int = 200, **headers: str) -> Answer:
    def answer(request: Request) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(text.encode())))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(text.encode())

    return answer


def is_silent(request: Request) -> None:
    request.server.over.wait()


def drips(request: Request) -> None:
    """A line of the head now and then, for ever."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    try:
        while not request.server.over.wait(0.02):
            request.wfile.write(b"X: y\r\n")
            request.wfile.flush()
    except OSError:
        return


def breaks_off(request: Request) -> None:
    request.send_response(201)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b"success: ark:/99999/fk4rx")


def breaks_off_without_a_length(request: Request) -> None:
    request.send_response(201)
    request.end_headers()
    request.wfile.write(b"success: ark:/99999/fk4rx9d52")


def hangs_up(request: Request) -> None:
    request.connection.close()


def goes_on_and_on(request: Request) -> None:
    request.send_response(201)
    request.send_header("Content-Length", str(1 << 40))
    request.end_headers()
    try:
        while not request.server.over.is_set():
            request.wfile.write(b"success: " * 10_000)
    except OSError:
        return


def repeats_secrets(request: Request) -> None:
    basic = request.headers["Authorization"]
    says(f"error: {basic} is {base64.b64decode(basic.removeprefix('Basic ')).decode()}\x1b[2J", 401)(request)
