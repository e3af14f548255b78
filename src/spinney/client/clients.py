"""The two clients, which send calls and read streams.

Both have the methods of ``Verbs`` and differ only in waiting or being awaited. They keep connections open, and send the
trace of the caller along (``spinney.tracing``). A connection that breaks becomes ServerUnavailable; a refusal becomes
the exception that a store raises (``errors``). Neither repeats a call by itself; streams of events and outputs have
their own rules, which their methods say.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import httpx

from spinney.client.calls import Call, command_call
from spinney.client.errors import IncompleteResponse, error_from_response
from spinney.client.http_messages import (
    ONE_BYTE,
    PREFIX,
    TIMEOUT_S,
    ServerAddress,
    decoded,
    events_request,
    is_event_stream,
    is_incomplete,
    lines_request,
    output_arguments,
    range_from,
    request_of,
    require_allowed,
    watch_error,
)
from spinney.client.streaming import CommandLines, Event, EventParser, lines, lines_async
from spinney.client.verbs import Verbs, file_path
from spinney.commands.command import Returns, each
from spinney.folders.upload_pieces import described, piece_of
from spinney.model.errors import Refused, StoreUnavailable
from spinney.model.settings.inboxes import Upload
from spinney.model.values.durations import Duration
from spinney.model.values.lists import Page

T = TypeVar("T")

AGAIN_S = 1.0
"""How many seconds pass before an interrupted stream is requested again, or an upload of which no byte has arrived."""
UPLOAD_TRIES = 300
"""How often bytes are sent again when none arrive although the server answers: another request may still work on the
upload."""
_PASSING = (429, 502, 503, 504)
"""Answers of a server that restarts behind a proxy, or has no database or no room for now: a stream that had begun is
requested again."""


class Client(Verbs):
    """A client that waits for each answer. It keeps connections open, which ``with`` closes, and may be used
    in several threads. A call that failed is not repeated."""

    poll_s: ClassVar[float] = 0.5

    def __init__(self, url: str, *, token: str | None = None, timeout_s: Duration = TIMEOUT_S) -> None:
        """``url``: that of the server, or ``unix:`` and the path of its socket. ``token``: as ``spinney token make``
        printed it; over the socket none is needed. ``timeout_s``: how long each step of an answer may take, and not the
        whole. Nothing is sent yet. Raises UsageError for an invalid address."""
        self._server = ServerAddress(url, token)
        socket, verify = self._server.socket, self._server.verify
        transport = None if socket is None else httpx.HTTPTransport(uds=socket, verify=verify)
        self._http = httpx.Client(**self._server.arguments(timeout_s), transport=transport)

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
            with self._http.stream(**lines_request(call)) as response:
                if not response.is_success:
                    raise error_from_response(response.status_code, response.read())
                for line in lines(response.iter_bytes()):
                    answer.take(line)
        except httpx.TransportError as error:
            raise self._server.away(error) from error
        return answer.report

    def send(self, call: Call[T]) -> T:
        """Send a call and return its decoded answer. Raises what the server refused it with, and ServerUnavailable."""
        try:
            answer = self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise self._server.away(error) from error
        return decoded(call, answer.status_code, answer.content)

    def each(self, command: Returns[Page[T]]) -> Iterator[T]:
        """Yield all items of a list, page by page: ``spinney.each(ListJobs(state=["failed"]))``."""
        return each(self, command)

    def download(self, job: int, file: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield a file in a job's folder in pieces, from byte ``start`` on; nothing behind its end. The
        request is sent when the first piece is fetched. Raises UsageError for a path that leaves the folder,
        what the server refuses, and ServerUnavailable."""
        return self._content(f"/jobs/{job}/files/{file_path(file)}", headers=range_from(start))

    def output(
        self, job: int, fence: int, stream: str = "stdout", *, start: int = 0, follow: bool = False
    ) -> Iterator[bytes]:
        """Yield what an attempt wrote to stdout or stderr, from byte ``start`` on; with ``follow`` until the
        attempt ends. Raises what the server refuses, and ServerUnavailable, after which ``start`` may be set
        behind what has come."""
        return self._content(**output_arguments(job, fence, stream, start, follow=follow))

    def pieces(self, call: Call[Any]) -> Iterator[bytes]:
        """Yield the content of the answer of a call that reads, piece by piece. Raises what the server refused it with,
        ServerUnavailable, and IncompleteResponse where the server closed the connection before the end."""
        begun = False
        try:
            with self._http.stream(**request_of(call)) as answer:
                if not answer.is_success:
                    raise error_from_response(answer.status_code, answer.read())
                begun = True
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise (
                IncompleteResponse() if begun and is_incomplete(error) else self._server.away(error)
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
            if is_incomplete(error):
                with suppress(httpx.TransportError):  # a server that was killed breaks off as well
                    require_allowed(self._http.get(f"{PREFIX}{path}", headers=ONE_BYTE))
            raise self._server.away(error) from error

    def send_file(self, inbox: str, file: Path, *, name: str | None = None) -> Iterator[Upload]:
        """Upload a file to an inbox, and yield how far it is after each piece, until it has its job. An upload of the
        same file that was interrupted is continued. ``name``: the name of the file in the inbox; None: its own name.
        Raises Refused when it is rejected, what the server refuses, and StoreUnavailable when no byte arrives in
        ``UPLOAD_TRIES`` tries, or the server does not say how far it is. The file must not change meanwhile."""
        description = described(inbox, file, name)
        upload = self.begin_upload(inbox, description.name, description.size, announced=description.announced)
        failed = 0
        with file.open("rb") as source:
            while not upload.is_done:
                before = upload.received
                try:
                    upload = self.send_upload(inbox, upload.id, piece_of(source, upload), offset=before)
                except StoreUnavailable:
                    upload = self.show_upload(inbox, upload.id)  # whose client may wait for the server
                    failed = 0 if upload.received > before else failed + 1
                    if failed >= UPLOAD_TRIES:
                        raise
                    if failed:
                        time.sleep(AGAIN_S)
                else:
                    failed = 0
                if upload.reason is not None:
                    raise Refused(upload.reason)
                yield upload

    def watch(self, *topics: str, last: str | None = None) -> Iterator[Event]:
        """Yield the new state of these topics whenever it changes, without end. An interrupted stream continues behind
        its last event; ``last``: the id of the event to continue behind. Raises ServerUnavailable when the server does
        not answer at first; later it is asked again for as long as it is away or overloaded. Raises UnexpectedResponse
        when a page comes in place of the stream."""
        begun = False
        while True:
            events = EventParser()
            try:
                with self._http.stream(**events_request(topics, last)) as answer:
                    if is_event_stream(answer):
                        begun = True
                        for line in lines(answer.iter_bytes()):
                            for event in events.feed(line):
                                last = event.id
                                yield event
                    elif not (begun and answer.status_code in _PASSING):
                        raise watch_error(answer.status_code, answer.read())
            except httpx.TransportError as error:
                if not begun:  # the address may be wrong; a server that has answered comes back
                    raise self._server.away(error) from error
            time.sleep(AGAIN_S)


class AsyncClient(Verbs):
    """A client whose methods are awaited. ``async with`` closes its connections."""

    def __init__(self, url: str, *, token: str | None = None, timeout_s: Duration = TIMEOUT_S) -> None:
        """Connect as ``Client`` does, with the same parameters; the connection is made by the first call."""
        self._server = ServerAddress(url, token)
        socket, verify = self._server.socket, self._server.verify
        transport = None if socket is None else httpx.AsyncHTTPTransport(uds=socket, verify=verify)
        self._http = httpx.AsyncClient(**self._server.arguments(timeout_s), transport=transport)

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
            async with self._http.stream(**lines_request(call)) as response:
                if not response.is_success:
                    raise error_from_response(response.status_code, await response.aread())
                async for line in lines_async(response.aiter_bytes()):
                    answer.take(line)
        except httpx.TransportError as error:
            raise self._server.away(error) from error
        return answer.report

    async def send(self, call: Call[T]) -> T:
        """Send a call and return its decoded answer, with the errors of ``Client.send``."""
        try:
            answer = await self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise self._server.away(error) from error
        return decoded(call, answer.status_code, answer.content)

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
        return self._content(f"/jobs/{job}/files/{file_path(file)}", headers=range_from(start))

    def output(
        self, job: int, fence: int, stream: str = "stdout", *, start: int = 0, follow: bool = False
    ) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client.output`` yields, with the same errors."""
        return self._content(**output_arguments(job, fence, stream, start, follow=follow))

    async def pieces(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Yield the pieces that ``Client.pieces`` yields, with the same errors."""
        begun = False
        try:
            async with self._http.stream(**request_of(call)) as answer:
                if not answer.is_success:
                    raise error_from_response(answer.status_code, await answer.aread())
                begun = True
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise (
                IncompleteResponse() if begun and is_incomplete(error) else self._server.away(error)
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
            if is_incomplete(error):
                with suppress(httpx.TransportError):  # a server that was killed breaks off as well
                    require_allowed(await self._http.get(f"{PREFIX}{path}", headers=ONE_BYTE))
            raise self._server.away(error) from error

    async def watch(self, *topics: str, last: str | None = None) -> AsyncIterator[Event]:
        """Yield the events that ``Client.watch`` yields, with the same rules for interrupted streams."""
        begun = False
        while True:
            events = EventParser()
            try:
                async with self._http.stream(**events_request(topics, last)) as answer:
                    if is_event_stream(answer):
                        begun = True
                        async for line in lines_async(answer.aiter_bytes()):
                            for event in events.feed(line):
                                last = event.id
                                yield event
                    elif not (begun and answer.status_code in _PASSING):
                        raise watch_error(answer.status_code, await answer.aread())
            except httpx.TransportError as error:
                if not begun:
                    raise self._server.away(error) from error
            await asyncio.sleep(AGAIN_S)
