"""From a line to a command and its arguments."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from spinney.apps.monitor.tasks import tcl_list

_SPACE = " \t\n\r\v\f\0"
_WORD = re.compile(r"[A-Za-z0-9]+")
_COMMAND = re.compile(r"([A-Z]+)(?=[ \t\v\f]|$)")
_HTTP_REQUEST = re.compile(rb"[A-Za-z]+ \S+ HTTP/[0-9]")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command of the line protocol, split into its word and arguments as Tcl splits them. The word need not
    be a known command."""

    word: str
    arguments: Sequence[str]


class InvalidLine(ValueError):
    """A line that does not begin with a letter or digit; the text is the line without the space around it."""


def is_http(line: bytes) -> bool:
    """Return whether a line is the first of an HTTP request, as a browser sends it for any page that names this port.
    The lines after it must not be obeyed, since the page wrote them."""
    return _HTTP_REQUEST.match(line) is not None


def decoded(line: bytes) -> str:
    """Return a line as text: UTF-8, and each byte that is not valid UTF-8 as Latin-1, since old clients send either."""
    return line.decode("utf-8", "spinney-latin-1")


def _latin_1(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that are not UTF-8 as Latin-1, which has a character for each (an error handler of
    ``codecs``)."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("spinney-latin-1", _latin_1)


def parse(text: str) -> CommandLine:
    """Return the command of a line. A word that is not in capital letters, or is followed by something other
    than space, has no arguments. Raises InvalidLine, and MalformedList for arguments that are no Tcl list."""
    text = text.strip(_SPACE)
    match = _WORD.match(text)
    if match is None:
        raise InvalidLine(text)
    word = match.group()
    command = _COMMAND.match(text)
    # Only capital letters followed by space have arguments; what follows any other word is ignored.
    rest = text[command.end() :] if command is not None and command.group() == word else ""
    return CommandLine(word, tcl_list.parse(rest))
