"""How commands show results: tables and lines for people, JSON and CSV for programs.

Text of users (names, messages) may contain anything; it is printed with its control characters escaped, so
that no message can move the cursor of a terminal. A reader that closes the pipe, such as ``head``, ends the output but
not the command (``spinney.host.standard_streams``).
"""

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from spinney.host.standard_streams import is_read
from spinney.model.values.plain_json import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from spinney.model.jobs import Job

T = TypeVar("T")

_COLOURS = {
    "running": "cyan",
    "claimed": "cyan",
    "completed": "green",
    "failed": "red",
    "orphaned": "red",
    "cancelled": "yellow",
    "held": "yellow",
    "waiting": "blue",
    "scheduled": "blue",
}
"""The colours of job states in tables; a state that is not named has none."""
_PIECE = 16_384
"""How many bytes are written at once (``_write``)."""
_WIDE = 100_000
"""The width in columns of an output that is no terminal, so that nothing is cut that a program may read."""


def console(*, stderr: bool = False) -> "Console":
    """Return a console of Rich for text to people: as wide as the terminal, and ``_WIDE`` columns wide where there is
    none, so that nothing is cut in a file. It prints text as it is: neither ``[bold]`` nor ``:bug:`` has a meaning."""
    from rich.console import Console

    made = Console(markup=False, emoji=False, highlight=False, stderr=stderr)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def print_json(value: Any) -> None:
    """Print one JSON value, indented. Lists go through ``print_json_lines``.

    Dataclasses become objects of their fields and enums their values (``_plain``). Raises TypeError for what
    has no JSON form.
    """
    import orjson

    option = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    sys.stdout.flush()
    _write(orjson.dumps(value, default=plain, option=option))


def print_json_lines(values: Iterable[Any]) -> None:
    """Print a list as JSON lines: one value a line, so that it can be read, cut and joined by lines.

    Values of an iterator are printed as they come, each at once, because minutes may pass before the next;
    those of a list are only buffered.
    """
    import orjson

    option = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    sys.stdout.flush()  # what was printed as text comes before it
    for value in while_read(values):
        _write(orjson.dumps(value, default=plain, option=option))
        if isinstance(values, Iterator):  # which may rest before the next
            sys.stdout.flush()


def print_csv(item: type, items: Iterable[Any]) -> None:
    """Print a list as CSV with a line of headings; ``item``: the class of its items, whose fields are the
    columns, so that an empty list has its headings, too."""
    from spinney.commands import csv_lines

    sys.stdout.flush()
    _write(csv_lines.header(item))
    for each in while_read(items):
        _write(csv_lines.lines(item, [each]))


def while_read(items: Iterable[T]) -> Iterator[T]:
    """Yield the items as long as somebody reads the output: there may be many, and more may come."""
    return takewhile(lambda _: is_read(), items)


def _write(text: bytes) -> None:
    # In pieces: where Python runs unbuffered, it drops what one write to a pipe leaves over.
    for start in range(0, len(text), _PIECE):
        sys.stdout.buffer.write(text[start : start + _PIECE])


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under their headings as a table."""
    from spinney.terminal.output.table_layout import Fitted

    made = Fitted(build_table(columns, rows))
    console().print(made, crop=False)


def print_list(
    items: Iterable[T], columns: Mapping[str, Callable[[T], Any]], *, json: bool, empty: str = ""
) -> None:
    """Print items as a table whose columns are computed from each, or as JSON lines. ``empty``: the sentence that is
    printed where the table would have no rows; without one the headings stand alone."""
    if json:
        print_json_lines(items)
        return
    rows = [[column(item) for column in columns.values()] for item in items]
    if empty and not rows:
        typer.echo(empty)
    else:
        print_table(list(columns), rows)


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Print labelled values, one a line; those that are None are left out."""
    out = console()
    for label, value in facts:
        if value is not None:
            out.print(f"{label:<12} {cell(value)}")


def print_result(value: Any, sentence: str, *, json: bool) -> None:
    """Print what a command has done: the value as JSON, or a sentence for people, escaped."""
    if json:
        print_json(value)
    else:
        typer.echo(safe(sentence))


def build_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    """Return rows under their headings as a table of Rich, without lines.

    Each value is shown by ``cell``; one that begins with a job state has the state's colour.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for row in rows:
        made.add_row(*(Text(c, style=_COLOURS.get(c.split(" ")[0], "")) for c in map(cell, row)))
    return made


def cell(value: Any) -> str:
    """Return a value as the text of a table's cell: on one line, escaped, empty for None."""
    return "" if value is None else safe(str(value))


def safe(text: str) -> str:
    """Return ``text`` on one line, with characters that are not printable escaped."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


def safe_lines(text: str) -> str:
    """Return ``text`` with characters that are not printable escaped, except line breaks and tabs."""
    return "\n".join("\t".join(safe(part) for part in line.split("\t")) for line in text.split("\n"))


def print_content(pieces: Iterable[bytes], *, raw: bool) -> None:
    """Print a file of a job piece by piece (``Content``)."""
    content = Content(raw=raw)
    for piece in while_read(pieces):
        content.write(piece)
    content.write(b"", last=True)
    sys.stdout.flush()


class Content:
    """Writes what a job wrote, output or a file, to stdout: unchanged into a pipe or a file.

    On a terminal its control characters are escaped, unless ``raw``: they could set its title, hide or forge lines,
    or have it answer as if somebody typed. Line breaks and tabs stay. One object a stream of bytes, because a piece
    may end within a character or a line break of two characters.
    """

    def __init__(self, *, raw: bool) -> None:
        self._escapes = sys.stdout.isatty() and not raw
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        self._carriage_return = ""
        """The carriage return at the end of the last piece: the next one shows whether it is part of a line break."""

    def write(self, piece: bytes, *, last: bool = False) -> None:
        """Write a piece to stdout. ``last``: nothing follows it, so that a character or line break cut off at its end
        is shown as it is."""
        if self._escapes:
            text = self._carriage_return + self._decode(piece, last)
            self._carriage_return = "\r" if text.endswith("\r") and not last else ""
            text = text.removesuffix(self._carriage_return)
            piece = safe_lines(text.replace("\r\n", "\n")).encode()
        sys.stdout.buffer.write(piece)


def format_time(at_us: int | None) -> str:
    """Return a time in the local time zone; a time that no calendar has as the stored number; empty for None.
    ``at_us``: microseconds since 1970 UTC."""
    if not at_us:
        return ""
    try:
        return datetime.fromtimestamp(at_us / 1e6).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_us} µs from 1970"


def format_elapsed(from_us: int | None, to_us: int | None) -> str:
    """Return the time between two moments in microseconds, for people; empty when one of them has not come. It is 0
    where the clock was put back in between, or the moments are of two clocks."""
    if not from_us or not to_us:
        return ""
    return format_duration(max(0, to_us - from_us) / 1e6)


def format_duration(seconds: float) -> str:
    """Return a length of time for people: ``41.2 ms``, ``3.2 s``, ``4 min 05 s``, ``1 h 02 min``.

    Below a minute it has three significant digits; above, it is rounded to seconds, and from an hour on
    seconds are dropped.
    """
    if 0 < seconds < 0.9995:  # what would be rounded to a second is one
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {left:02d} s"


def state_text(job: "Job") -> str:
    """Return the state of a job with what qualifies it: ``waiting (children)``, ``running (cancelling) 40 %``."""
    notes = []
    if job.waits_for:
        notes.append(job.waits_for)
    if job.cancelling:
        notes.append("cancelling")
    if job.warnings:
        notes.append("1 warning" if job.warnings == 1 else f"{job.warnings} warnings")
    done = f" {job.progress:.0%}" if job.progress is not None and job.state == "running" else ""
    remarks = f" ({', '.join(notes)})" if notes else ""
    return f"{job.state}{remarks}{done}"


def state_message(job: "Job") -> str:
    """Return the message about the state of a job, for the last column of a list; empty when there is none."""
    return (job.progress_message if job.state == "running" else None) or job.message or ""


def short_json(value: Any, limit: int = 60) -> str:
    """Return a JSON value on one line, cut at ``limit`` characters."""
    import orjson

    return shorten(orjson.dumps(value, default=plain).decode(), limit)


def shorten(text: str, limit: int = 60) -> str:
    """Return a text cut at ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
