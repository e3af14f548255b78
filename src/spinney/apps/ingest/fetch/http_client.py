"""One request to a server: redirects are followed, each is checked, and errors are explained.

Written on ``http.client`` and sockets rather than a client library, because every address must be checked
before it is connected to, reads must be abortable from another thread, and a server that drips bytes must be
given up.
"""

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from email.errors import (
    FirstHeaderLineIsContinuationDefect,
    InvalidHeaderDefect,
    MisplacedEnvelopeHeaderDefect,
    MissingHeaderBodySeparatorDefect,
)
from typing import TYPE_CHECKING

from spinney.apps.ingest.fetch import response_headers, urls
from spinney.apps.ingest.fetch.connections import Connection, Connector, Response, Server
from spinney.apps.ingest.fetch.errors import ConnectionBroke, Halt, TryFailed
from spinney.apps.ingest.fetch.rules import Rules
from spinney.files import paths
from spinney.files.paths import NotAdmitted

if TYPE_CHECKING:
    import httpx

_KEPT_ALIVE_S = 15.0
"""How long an idle connection may be used again, in seconds."""
_CHUNK_BYTES = 64 << 10
_ANSWERED_BYTES = 1 << 20
"""After so much of a body, or the end of the answer, a server counts as answering; not after its head: many stop
sending after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, headers by lower-case name, and the body in chunks as they are received."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


class HttpClient:
    """Sends requests, keeping connections alive between them. Used by many threads at once.

    Proxies of the environment are not used, since the addresses behind a proxy cannot be checked.
    """

    def __init__(
        self,
        rules: Rules,
        halt: Halt,
        *,
        at_once: int,
        answered: Callable[[str], None],
    ) -> None:
        """``at_once``: how many connections are kept at most while no request uses them. ``answered`` is called with
        each host that answers, with any status, in the requesting thread."""
        self._rules = rules
        self._answered = answered
        self._connector = Connector(rules, halt)
        self._at_once = at_once
        self._idle: list[Connection] = []
        """The connections without a request, the longest idle first."""
        self._taking = threading.Lock()

    def close(self) -> None:
        """Close all idle connections; those in use are closed by their users."""
        with self._taking:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    @contextmanager
    def request(self, method: str, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """Send a request, and yield the answer at the end of all redirects; its chunks are read inside the block.

        Raises TryFailed, also for errors of the connection inside the block, and NotAdmitted for an invalid URL.
        """
        current_url = urls.admitted(url)
        for followed in range(self._rules.redirects + 1):
            try:
                with self._send(method, current_url, headers) as answer:
                    if answer.status not in response_headers.REDIRECTS:
                        yield answer
                        return
            except TryFailed as failure:
                if followed:
                    failure.reason = f"it is redirected to {urls.shown(current_url)}: {failure.reason}"
                raise
            current_url = _next(current_url, answer)
        raise TryFailed(
            f"it is redirected more than {self._rules.redirects} times, at last to {urls.shown(current_url)}; "
            f"give the URL it ends at"
        )

    @contextmanager
    def _send(self, method: str, url: "httpx.URL", headers: Mapping[str, str]) -> Iterator[Answer]:
        """Send one request. Report that its host answered, and add to an error the host that did not answer."""
        host = urls.host_name(url)
        try:
            if host in self._rules.skipped_hosts:
                raise TryFailed(f"{paths.shown(host)} does not answer; try again later", unresponsive=True)
            # Afterwards the connection is kept if it can serve another request.
            with ExitStack() as connections:
                yield self._exchange_on_any(connections, method, url, headers)
        except http.client.HTTPException:
            self._answered(host)
            raise TryFailed("the answer broke off, or is no HTTP; try again later", retryable=True) from None
        except TryFailed as failure:
            if failure.unresponsive:
                failure.host = host
            else:
                self._answered(host)
            raise
        else:
            self._answered(host)

    def _exchange_on_any(
        self, connections: ExitStack, method: str, url: "httpx.URL", headers: Mapping[str, str]
    ) -> Answer:
        """Send a request on an idle connection or a new one, which ``connections`` gives back in the end.

        A server may close an idle connection at the very moment at which a request is sent on it. The request is
        then sent again, once, on a new connection (RFC 9110 section 9.2.2), which is no further try.
        """
        server = url.scheme, url.raw_host.decode("ascii"), url.port or urls.PORTS[url.scheme]
        idle = self._idle_connection(server)
        if idle is not None:
            connections.callback(self._give_back, idle)
            try:
                return self._exchange(idle, method, url, headers)
            except ConnectionBroke as error:
                if error.answered:
                    raise
        connection = self._connector.connect(server)
        connections.callback(self._give_back, connection)
        return self._exchange(connection, method, url, headers)

    def _idle_connection(self, server: Server) -> Connection | None:
        """Return the most recently used idle connection to a server that can be used again, and close those
        that cannot; None where there is none."""
        with self._taking:
            for connection in [c for c in reversed(self._idle) if c.server == server]:
                self._idle.remove(connection)
                if time.monotonic() - connection.idle_since_s < _KEPT_ALIVE_S and connection.is_usable():
                    return connection
                connection.close()
        return None

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection for another request, or close it if its answer was not read to the end. If there are too
        many, the one that has been idle longest is closed."""
        if not connection.is_reusable:
            connection.close()
            return
        connection.idle_since_s = time.monotonic()
        with self._taking:
            self._idle.append(connection)
            if len(self._idle) > self._at_once:
                self._idle.pop(0).close()

    def _exchange(
        self, connection: Connection, method: str, url: "httpx.URL", headers: Mapping[str, str]
    ) -> Answer:
        """Send a request and read the headers of its answer. Raises TryFailed, HTTPException, Halted."""
        response = connection.request(method, _request_head(method, url, headers))
        answer_headers = response_headers.headers_of(response.headers.items())
        _require_valid(response, answer_headers)
        if response.length is None and not response.chunked:
            # ``HTTPResponse`` knows no length that is repeated, and would read until the server hangs up.
            response.length = response_headers.length_of(answer_headers)
        connection.is_reusable = response.length == 0 and not response.will_close
        chunks = self._chunks(connection, response, urls.host_name(url))
        return Answer(status=response.status, headers=answer_headers, chunks=chunks)

    def _chunks(self, connection: Connection, response: Response, host: str) -> Iterator[bytes]:
        """Yield the body as it arrives. Raises IncompleteRead where it ends before the announced length."""
        while chunk := response.read1(_CHUNK_BYTES):
            before_bytes = response.received.content_bytes
            response.received.content_bytes += len(chunk)
            if before_bytes < _ANSWERED_BYTES <= response.received.content_bytes:
                self._answered(host)
            yield chunk
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        connection.is_reusable = not response.will_close


def _request_head(method: str, url: "httpx.URL", headers: Mapping[str, str]) -> bytes:
    """Return the bytes of a request without a body. Raises TryFailed where a line could be read as several."""
    lines = [
        f"{method} {url.raw_path.decode('ascii')} HTTP/1.1",
        f"Host: {url.netloc.decode('ascii')}",
        "User-Agent: spinney-ingest",
        # The bytes of the file itself are archived, not an encoded form of them.
        "Accept-Encoding: identity",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if not all(map(_LINE.fullmatch, lines)) or " " in url.raw_path.decode("ascii"):
        raise TryFailed("a request for it cannot be written as HTTP; correct the URL")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


_LINE = re.compile(r"[\x20-\x7e]+")


def _require_valid(response: Response, headers: Mapping[str, str]) -> None:
    """Raise HTTPException where lines are no headers or the length of the body is unclear: ``HTTPResponse`` would
    guess."""
    length = headers.get("content-length")
    is_clear = "transfer-encoding" not in headers and (
        length is None or response_headers.length_of(headers) is not None
    )
    if not (is_clear or response.chunked) or any(isinstance(d, _DEFECTS) for d in response.headers.defects):
        raise http.client.HTTPException("its headers are not valid")


_DEFECTS = (
    MissingHeaderBodySeparatorDefect,
    FirstHeaderLineIsContinuationDefect,
    MisplacedEnvelopeHeaderDefect,
    InvalidHeaderDefect,
)
"""Not the others: those are about the parts of a mail."""


def status_error(answer: Answer, rules: Rules) -> TryFailed:
    """Return the error for an answer with an unexpected status: retryable for those of temporary failures
    (``RETRYABLE``), with the delay that the server asks for."""
    if answer.status in response_headers.RETRYABLE:
        return TryFailed(
            f"the server answers {answer.status}; try again later",
            retryable=True,
            after_s=response_headers.retry_after_s(answer.headers, rules.retry_after_max_s),
        )
    return TryFailed(f"the server answers {answer.status}; make the file available there")


def _next(current_url: "httpx.URL", answer: Answer) -> "httpx.URL":
    """Return the target of a redirect. Raises TryFailed where it leads to files of this machine, or from https to
    http."""
    location = answer.headers.get("location", "")
    if not location:
        raise TryFailed(f"the server answers {answer.status} without a target")
    try:
        next_url = urls.joined(current_url, location)
    except NotAdmitted as error:
        raise TryFailed(f"it is redirected, but {error}") from None
    if next_url.scheme not in urls.PORTS:
        raise TryFailed(
            f"it is redirected to {urls.shown(next_url)}; from http only http and https are followed"
        )
    if current_url.scheme == "https" and next_url.scheme == "http":
        raise TryFailed(
            f"it is redirected from https to {urls.shown(next_url)}, where anybody could change it on the way; "
            f"give a URL that stays with https"
        )
    return next_url
