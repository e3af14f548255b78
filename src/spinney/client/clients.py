"""The two clients, which send calls and read streams.

Both have the methods of ``Verbs`` and differ only in waiting or being awaited. They keep connections open, and send the
trace of the caller along (``spinney.tracing``). A connection that breaks becomes ServerUnavailable; a refusal becomes
the exception that a store raises (``errors``). Neither repeats a call by itself; streams of events and outputs have
their own rules, which their methods say.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import httpx
import orjson
from pydantic import ValidationError

from spinney.client.calls import NDJSON, Call, command_call, path
from spinney.client.errors import (
    IncompleteResponse,
    ServerUnavailable,
    error_from_response,
    unexpected_response,
)
from spinney.client.inbox_uploads import send_file
from spinney.client.streaming import CommandLines, Event, EventParser, lines, lines_async
from spinney.client.verbs import Verbs, file_path
from spinney.commands.command import Returns, each
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.settings.inboxes import Upload
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.lists import Page
from spinney.tracing import current, traceparents

T = TypeVar("T")

PREFIX = "/api/v1"
"""The address of the API on each server."""
TIMEOUT_S = 60.0
"""How many seconds a client waits for each step of an answer."""
STREAM_S = 45.0
"""A stream on which nothing comes for so long is dead: the server sends something every 15 s."""
AGAIN_S = 1.0
"""How many seconds pass before an interrupted stream is requested again."""
_PASSING = (429, 502, 503, 504)
"""Answers of a server that restarts behind a proxy, or has no database or no room for now: a stream that had begun is
requested again."""
EVENT_STREAM = "text/event-stream"
"""The media type of a stream of events."""
UNIX = "unix:"
"""How the address of a socket begins."""
_ONE_BYTE = {"Range": "bytes=0-0"}
_SILENT_S = httpx.Timeout(TIMEOUT_S, read=None)
"""Where nothing may come for long though the server lives: steps of a verb that waits for jobs, followed output."""


class _Place:
    """The address of a server, and what requests to it need. Raises UsageError for one that is neither HTTP
    nor a socket."""

    def __init__(self, url: str, token: str | None) -> None:
        self.socket = url.removeprefix(UNIX) if url.startswith(UNIX) else None
        if self.socket is None and not _is_http(url):
            raise UsageError(
                f"{url!r} is no server; write https://spinney.example.org, or unix:/path/of/server.sock"
            )
        self.base = "http://localhost" if self.socket is not None else url.rstrip("/")
        self.headers = {"Authorization": f"Bearer {_require_token(token)}"} if token else {}
        self.shown = url
        # Reading all certificates of this host takes longer than a request; without https nothing needs them.
        self.verify = True if self.base.startswith("https://") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def arguments(self, timeout_s: Duration) -> dict[str, Any]:
        """Return the arguments that httpx's clients of both kinds take, but the transport."""
        return {
            "base_url": self.base,
            "headers": self.headers,
            "timeout": durations.seconds(timeout_s, "timeout_s"),
            "verify": self.verify,
            "trust_env": self.socket is None,
        }

    def away(self, error: Exception) -> ServerUnavailable:
        """Return the error for a server that cannot be reached, or does not answer."""
        return ServerUnavailable(
            f"the server at {self.shown} does not answer ({error}); see that it runs, and its address"
        )


def _is_http(url: str) -> bool:
    """Return whether this is a URL of HTTP with a host."""
    try:
        return url.startswith(("http://", "https://")) and bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def _require_token(token: str) -> str:
    """Return the token without the line feed of the file that it may come from. Raises UsageError, which does not quote
    it, for one that cannot be sent: httpx would quote it whole, and messages come into logs."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError(
            "the token has characters that no token has; give it as 'spinney token make' printed it"
        )
    return token


def _request(call: Call[Any]) -> dict[str, Any]:
    """Return a call as the arguments of httpx, with the header of the current trace."""
    headers = dict(call.headers)
    content = call.content
    if call.json is not None:
        content, headers["Content-Type"] = orjson.dumps(call.json), "application/json"
    if (trace := current.traceparent()) is not None:
        headers[traceparents.HEADER] = trace
    return {
        "method": call.method,
        "url": f"{PREFIX}{call.path}",
        "params": call.query or None,
        "content": content,
        "files": call.files or None,
        "headers": headers,
    }


def _as_lines(call: Call[Any]) -> dict[str, Any]:
    """Return a call whose answer is to come in lines, as the arguments of httpx."""
    request = _request(call)
    return request | {"headers": request["headers"] | {"Accept": NDJSON}, "timeout": _SILENT_S}


def _output(job: int, fence: int, stream: str, start: int, *, follow: bool) -> dict[str, Any]:
    """Return the arguments of ``_content`` for what an attempt wrote. Followed output begins by a parameter
    in place of a range, since its end is not known."""
    arguments: dict[str, Any] = {"path": path("/jobs/{}/attempts/{}/{}", job, fence, stream)}
    if follow:
        return arguments | {"query": {"follow": "true", "start": str(start)}, "limits": _SILENT_S}
    return arguments | {"headers": _from(start)}


def _events(topics: Sequence[str], last: str | None) -> dict[str, Any]:
    """Return the request of an event stream that continues behind the event with the id ``last``, as the arguments of
    httpx."""
    return {
        "method": "GET",
        "url": f"{PREFIX}/events",
        "params": [("topic", topic) for topic in topics],
        "headers": {"Last-Event-ID": last} if last else {},
        "timeout": STREAM_S,
    }


def _is_incomplete(error: httpx.TransportError) -> bool:
    """Return whether the server closed the connection within an answer, as it does when the rest is forbidden."""
    return isinstance(error, httpx.RemoteProtocolError)


def _require_allowed(answer: httpx.Response) -> None:
    """Raise the refusal with which the server answers when what broke off is requested again, if it does refuse it."""
    if answer.is_client_error and answer.status_code != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise error_from_response(answer.status_code, answer.content)


def _from(start: int) -> dict[str, str]:
    """Return the header for the content from a byte on; none for all of it."""
    return {"Range": f"bytes={start}-"} if start else {}


def _decoded(call: Call[T], status: int, content: bytes) -> T:
    """Return the decoded answer to a call. Raises what the server refused it with, and UnexpectedResponse for an
    answer of another form, as of a proxy that shows its own page."""
    if not 200 <= status < 300:
        raise error_from_response(status, content)
    try:
        return call.decode(content)
    except ValidationError:
        raise unexpected_response(status, content) from None


def _is_stream(answer: httpx.Response) -> bool:
    """Return whether an answer is a stream of events."""
    return answer.is_success and answer.headers.get("Content-Type", "").startswith(EVENT_STREAM)


def _watch_error(status: int, content: bytes) -> SpinneyError:
    """Return the error for an answer that is no stream of events."""
    success = 200 <= status < 300
    return unexpected_response(status, content) if success else error_from_response(status, content)


class Client(Verbs):
    """A client that waits for each answer. It keeps connections open, which ``with`` closes, and may be used
    in several threads. A call that failed is not repeated."""

    poll_s: ClassVar[float] = 0.5

    def __init__(self, url: str, *, token: str | None = None, timeout_s: Duration = TIMEOUT_S) -> None:
        """``url``: that of the server, or ``unix:`` and the path of its socket. ``token``: as ``spinney token make``
        printed it; over the socket none is needed. ``timeout_s``: how long each step of an answer may take, and not the
        whole. Nothing is sent yet. Raises UsageError for an invalid address."""
        self._place = _Place(url, token)
        socket, verify = self._place.socket, self._place.verify
        transport = None if socket is None else httpx.HTTPTransport(uds=socket, verify=verify)
        self._http = httpx.Client(**self._place.arguments(timeout_s), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server; the client sends nothing afterwards."""
        self._http.close()

    def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """Have the server perform a command, and return its answer. ``tell`` is called with each value of its
        progress; what it raises ends the call, while the server goes on. Raises what the command raises, and
        ServerUnavailable."""
        call, answer = command_call(command), CommandLines(command, tell)
        if not answer.expected:
            return self.send(call)
        try:
            with self._http.stream(**_as_lines(call)) as response:
                if not response.is_success:
                    raise error_from_response(response.status_code, response.read())
                for line in lines(response.iter_bytes()):
                    answer.take(line)
        except httpx.TransportError as error:
            raise self._place.away(error) from error
        return answer.report

    def send(self, call: Call[T]) -> T:
        """Send a call and return its decoded answer. Raises what the server refused it with, and ServerUnavailable."""
        try:
            answer = self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise self._place.away(error) from error
        return _decoded(call, answer.status_code, answer.content)

    def each(self, command: Returns[Page[T]]) -> Iterator[T]:
        """Yield all items of a list, page by page: ``spinney.each(ListJobs(state=["failed"]))``."""
        return each(self, command)

    def download(self, job: int, file: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield a file in a job's folder in pieces, from byte ``start`` on; nothing behind its end. The
        request is sent when the first piece is fetched. Raises UsageError for a path that leaves the folder,
        what the server refuses, and ServerUnavailable."""
        return self._content(f"/jobs/{job}/files/{file_path(file)}", headers=_from(start))

    def output(
        self, job: int, fence: int, stream: str = "stdout", *, start: int = 0, follow: bool = False
    ) -> Iterator[bytes]:
        """Yield what an attempt wrote to stdout or stderr, from byte ``start`` on; with ``follow`` until the
        attempt ends. Raises what the server refuses, and ServerUnavailable, after which ``start`` may be set
        behind what has come."""
        return self._content(**_output(job, fence, stream, start, follow=follow))

    def pieces(self, call: Call[Any]) -> Iterator[bytes]:
        """Yield the content of the answer of a call that reads, piece by piece. Raises what the server refused it with,
        ServerUnavailable, and IncompleteResponse where the server closed the connection before the end."""
        begun = False
        try:
            with self._http.stream(**_request(call)) as answer:
                if not answer.is_success:
                    raise error_from_response(answer.status_code, answer.read())
                begun = True
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise (
                IncompleteResponse() if begun and _is_incomplete(error) else self._place.away(error)
            ) from error

    def _content(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        limits: httpx.Timeout | float = TIMEOUT_S,
        require: Callable[[httpx.Response], None] | None = None,
    ) -> Iterator[bytes]:
        """Yield the content of a file or output; nothing for a range behind its end. When the server breaks off, it is
        asked once whether the rest was forbidden, so that the right error is raised. ``require``: raises for an answer
        whose content must not be taken, though it is no refusal."""
        try:
            with self._http.stream(
                "GET", f"{PREFIX}{path}", headers=headers, params=query, timeout=limits
            ) as answer:
                behind_end = answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE
                if not (answer.is_success or behind_end):
                    raise error_from_response(answer.status_code, answer.read())
                if require is not None:
                    require(answer)
                if not behind_end:
                    yield from answer.iter_bytes()
        except httpx.TransportError as error:
            if _is_incomplete(error):
                with suppress(httpx.TransportError):  # a server that was killed breaks off as well
                    _require_allowed(self._http.get(f"{PREFIX}{path}", headers=_ONE_BYTE))
            raise self._place.away(error) from error

    def send_file(self, inbox: str, file: Path, *, name: str | None = None) -> Iterator[Upload]:
        """Upload a file to an inbox, and yield how far it is after each piece; at last it has its job. Called again
        after an interruption, it goes on where it stopped."""
        return send_file(self, inbox, file, name=name)

    def watch(self, *topics: str, last: str | None = None) -> Iterator[Event]:
        """Yield the new state of these topics whenever it changes, without end. An interrupted stream continues behind
        its last event; ``last``: the id of the event to continue behind. Raises ServerUnavailable when the server does
        not answer at first; later it is asked again for as long as it is away or overloaded. Raises UnexpectedResponse
        when a page comes in place of the stream."""
        begun = False
        while True:
            events = EventParser()
            try:
                with self._http.stream(**_events(topics, last)) as answer:
                    if _is_stream(answer):
                        begun = True
                        for line in lines(answer.iter_bytes()):
                            for event in events.feed(line):
                                last = event.id
                                yield event
                    elif not (begun and answer.status_code in _PASSING):
                        raise _watch_error(answer.status_code, answer.read())
            except httpx.TransportError as error:
                if not begun:  # the address may be wrong; a server that has answered comes back
                    raise self._place.away(error) from error
            time.sleep(AGAIN_S)


class AsyncClient(Verbs):
    """A client whose methods are awaited. ``async with`` closes its connections."""

    def __init__(self, url: str, *, token: str | None = None, timeout_s: Duration = TIMEOUT_S) -> None:
        """Connect as ``Client`` does, with the same parameters; the connection is made by the first call."""
        self._place = _Place(url, token)
        socket, verify = self._place.socket, self._place.verify
        transport = None if socket is None else httpx.AsyncHTTPTransport(uds=socket, verify=verify)
        self._http = httpx.AsyncClient(**self._place.arguments(timeout_s), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections to the server; the client sends nothing afterwards."""
        await self._http.aclose()

    async def do(self, command: Returns[T], *, tell: Callable[[Any], None] | None = None) -> T:
        """Do what ``Client.do`` does; ``tell`` is called in the event loop, and not awaited."""
        call, answer = command_call(command), CommandLines(command, tell)
        if not answer.expected:
            return await self.send(call)
        try:
            async with self._http.stream(**_as_lines(call)) as response:
                if not response.is_success:
                    raise error_from_response(response.status_code, await response.aread())
                async for line in lines_async(response.aiter_bytes()):
                    answer.take(line)
        except httpx.TransportError as error:
            raise self._place.away(error) from error
        return answer.report

    async def send(self, call: Call[T]) -> T:
        """Send a call and return its decoded answer, with the errors of ``Client.send``."""
        try:
            answer = await self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise self._place.away(error) from error
        return _decoded(call, answer.status_code, answer.content)

    async def each(self, command: Returns[Page[T]]) -> AsyncIterator[T]:
        """Yield the items that ``Client.each`` yields, in the same way."""
        while True:
            page = await self.do(command)
            for item in page.items:
                yield item
            if page.next is None:
                return
            command = cast("Any", command).model_copy(update={"after": page.next})

    def download(self, job: int, file: str, *, start: int = 0) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client.download`` yields, with the same errors."""
        return self._content(f"/jobs/{job}/files/{file_path(file)}", headers=_from(start))

    def output(
        self, job: int, fence: int, stream: str = "stdout", *, start: int = 0, follow: bool = False
    ) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client.output`` yields, with the same errors."""
        return self._content(**_output(job, fence, stream, start, follow=follow))

    async def pieces(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client.pieces`` yields, with the same errors."""
        begun = False
        try:
            async with self._http.stream(**_request(call)) as answer:
                if not answer.is_success:
                    raise error_from_response(answer.status_code, await answer.aread())
                begun = True
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise (
                IncompleteResponse() if begun and _is_incomplete(error) else self._place.away(error)
            ) from error

    async def _content(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        limits: httpx.Timeout | float = TIMEOUT_S,
    ) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client._content`` yields, with the same errors."""
        try:
            async with self._http.stream(
                "GET", f"{PREFIX}{path}", headers=headers, params=query, timeout=limits
            ) as answer:
                if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return
                if not answer.is_success:
                    raise error_from_response(answer.status_code, await answer.aread())
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            if _is_incomplete(error):
                with suppress(httpx.TransportError):  # a server that was killed breaks off as well
                    _require_allowed(await self._http.get(f"{PREFIX}{path}", headers=_ONE_BYTE))
            raise self._place.away(error) from error

    async def watch(self, *topics: str, last: str | None = None) -> AsyncIterator[Event]:
        """Yield the events that ``Client.watch`` yields, with the same rules for interrupted streams."""
        begun = False
        while True:
            events = EventParser()
            try:
                async with self._http.stream(**_events(topics, last)) as answer:
                    if _is_stream(answer):
                        begun = True
                        async for line in lines_async(answer.aiter_bytes()):
                            for event in events.feed(line):
                                last = event.id
                                yield event
                    elif not (begun and answer.status_code in _PASSING):
                        raise _watch_error(answer.status_code, await answer.aread())
            except httpx.TransportError as error:
                if not begun:
                    raise self._place.away(error) from error
            await asyncio.sleep(AGAIN_S)
