"""The answer of a command that reports progress, as lines of JSON (``spinney.web.api.command_progress`` writes
them)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import orjson

from spinney.client.calls import decode_json
from spinney.client.errors import IncompleteResponse, error_from_response
from spinney.commands.command import Command, Returns

T = TypeVar("T")


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
        """Take the next line. Raises the error that a line with a problem describes, and what ``tell`` raises."""
        ((name, value),) = orjson.loads(line).items()
        if name == "problem":
            raise error_from_response(int(value.get("status", 0)), orjson.dumps(value))
        if name == "report":
            self._report = decode_json(self._command.answer())(orjson.dumps(value))
        elif self._tell is not None and name in self._command.progress:
            self._tell(decode_json(self._command.progress[name])(orjson.dumps(value)))
