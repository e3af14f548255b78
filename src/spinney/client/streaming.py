"""Answers that come as lines: of JSON from a command that reports progress (``spinney.web.api.command_progress`` writes
them), and of server-sent events (WHATWG HTML, section 9.2.6)."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import orjson

from spinney.client.calls import decode_json
from spinney.client.errors import IncompleteResponse, error_from_response
from spinney.commands.command import Command, Returns

T = TypeVar("T")

_END = "end"
"""The event by which a server ends the stream of somebody who may watch no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The state of a topic after a change, as the server's event stream tells it."""

    topic: str
    data: Any
    """A JSON value."""
    id: str
    """The id to pass as ``last`` of ``watch``, to continue behind this event."""


class _Splitter:
    """Splits bytes into lines at line feeds alone: httpx also ends lines at other breaks of Unicode (U+2028, U+0085),
    which a JSON text may have within a string."""

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of the next line."""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the lines that end in this chunk."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of an answer that arrives in these chunks, the last one also without its end."""
    splitter = _Splitter()
    for chunk in chunks:
        yield from splitter.feed(chunk)
    if splitter.rest:
        yield from splitter.feed(b"\n")


async def lines_async(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Yield the same lines as ``lines``, of chunks that are awaited."""
    splitter = _Splitter()
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            yield line
    if splitter.rest:
        for line in splitter.feed(b"\n"):
            yield line


class EventParser:
    """Makes events of the lines of one stream. A new connection needs a new parser, since an event that broke
    off does not count."""

    def __init__(self) -> None:
        self._topic, self._id = "", ""
        self._data: list[str] = []

    def feed(self, line: str) -> Iterator[Event]:
        """Yield the event that this line ends, if it ends one. Raises the error with which the server ends the
        stream."""
        if not line:
            if self._data and self._topic == _END:
                problem = "\n".join(self._data).encode()
                raise error_from_response(int(orjson.loads(problem).get("status", 0)), problem)
            if self._data:
                yield Event(topic=self._topic, data=orjson.loads("\n".join(self._data)), id=self._id)
            self._topic, self._data = "", []
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._topic = value
        elif name == "id":
            self._id = value


class CommandLines(Generic[T]):
    """Takes the lines of one answer in turn: an object each, with one of the keys of the command's progress,
    ``report`` or ``problem``. ``tell`` is called with each report of progress."""

    def __init__(self, command: Returns[T], tell: Callable[[Any], None] | None) -> None:
        self._command = cast("Command", command)
        self._tell = tell
        self._report: T | None = None

    @property
    def expected(self) -> bool:
        """Whether the answer of the command comes as lines; of all others it is one JSON value."""
        return bool(self._command.progress)

    @property
    def report(self) -> T:
        """The answer of the command. Raises IncompleteResponse when the lines have ended without it."""
        if self._report is None:
            raise IncompleteResponse
        return self._report

    def take(self, line: str) -> None:
        """Take the next line; an empty one shows only that the server is there. Raises the error that a line with a
        problem describes, and what ``tell`` raises."""
        if not line:
            return
        ((name, value),) = orjson.loads(line).items()
        if name == "problem":
            raise error_from_response(int(value.get("status", 0)), orjson.dumps(value))
        if name == "report":
            self._report = decode_json(self._command.answer())(orjson.dumps(value))
        elif self._tell is not None and name in self._command.progress:
            self._tell(decode_json(self._command.progress[name])(orjson.dumps(value)))
