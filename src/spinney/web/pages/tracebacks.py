"""The message and the traceback of a failed attempt; the traceback as frames, so that a page can fold those of
libraries.

Failures are stored as text, since the exception itself lives in a worker that may be gone. The text is what
``traceback.format_exception`` writes; anything else, as of a program, is shown as it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spinney.model.jobs import Attempt
from spinney.web.pages.text_formats import cut

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+)(?:, in (?P<function>.*))?$')
_HEAD = "Traceback (most recent call last):"
_LIBRARY = (
    "/site-packages/",
    "/dist-packages/",
    "/lib/python3",
    "<frozen ",
    "/src/spinney/node/",
    "/src/spinney/define/",
)
"""The last two are Spinney's, where it runs from its sources; they call every stage."""
FRAMES_MAX = 300
"""The most frames of one exception that are shown."""
MESSAGE_MAX = 400
"""The most characters of a message that are shown above a traceback which contains the whole message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One call of a Python traceback."""

    file: str
    line: int
    function: str
    code: str
    """The lines of the source that are shown, with their marks."""
    own: bool
    """Whether the file belongs to no library, so that the mistake is most likely there."""
    last: bool = False
    """Whether it is the innermost frame of its exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An exception with its frames, or the sentence that joins two exceptions."""

    frames: Sequence[Frame]
    text: str
    """The text behind the frames: type and message."""


def failure_text(attempt: Attempt) -> tuple[str, list[Piece]]:
    """Return the message of an attempt that ended with an error, and its traceback in pieces, without the type and
    message of the exception where the whole message stands above."""
    error = attempt.error or {}
    message = str(error.get("message") or attempt.message or "")
    traceback = str(error.get("traceback") or "")
    parts = pieces(traceback)
    if not parts:
        return message, []
    if len(message) > MESSAGE_MAX:
        return (cut(message, MESSAGE_MAX) if message in traceback else message), parts
    if message and parts[-1].frames and parts[-1].text.partition(": ")[2] == message:
        parts[-1] = replace(parts[-1], text="")
    return message, parts


def pieces(text: str) -> list[Piece]:
    """Return the pieces of a traceback in its order; text that is no traceback is one piece without frames."""
    result: list[Piece] = []
    lines = text.rstrip().split("\n")
    at = 0
    while at < len(lines):
        frames, at = _frames(lines, at)
        words: list[str] = []
        while at < len(lines) and lines[at].strip() != _HEAD:
            words.append(lines[at])
            at += 1
        text_after = "\n".join(words).strip("\n")
        if frames or text_after:
            result.append(Piece(frames=frames, text=text_after))
    return result


def _frames(lines: Sequence[str], at: int) -> tuple[list[Frame], int]:
    """Return the frames that begin at this line, and the number of the line behind them."""
    if at < len(lines) and lines[at].strip() == _HEAD:
        at += 1
    frames: list[Frame] = []
    while at < len(lines) and len(frames) < FRAMES_MAX and (head := _FRAME.match(lines[at])):
        at += 1
        code: list[str] = []
        while at < len(lines) and lines[at].startswith("    "):
            code.append(lines[at][4:])
            at += 1
        if at < len(lines) and lines[at].startswith("  [Previous line repeated"):
            code.append(lines[at].strip())
            at += 1
        file = head["file"]
        frames.append(
            Frame(
                file=file,
                line=int(head["line"]),
                function=head["function"] or "",
                code="\n".join(code),
                own=not any(part in file for part in _LIBRARY),
            )
        )
    if frames:
        frames[-1] = replace(frames[-1], last=True)
    return frames, at
