"""Boxes, tables and JSON, to the byte as the old server wrote them.

It was written in Tcl, and centres, cuts and escapes in ways of its own; the functions here repeat them, oddities
included. Each text ends with an empty line."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

BOX_WIDTH = 80
EMPTY_TABLE_WIDTH = 40
"""The width of a table that has a title and a footer, and no grid between them."""
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
# A cut takes away at most so many words, however long the text still is.
_WORDS_MAX = 19


def box(text: str) -> str:
    """Return a text in a box of at least 80 columns, and an empty line. The lines of a text of several are
    measured as one."""
    width = max(BOX_WIDTH, len(text))
    edge = f"+{'-' * width}+"
    rows = [f"|{line.ljust(width)}|" for line in text.split("\n")]
    return "\n".join([edge, *rows, edge, "", ""])


def table(
    title: str, caption: Sequence[str] | None, rows: Sequence[Sequence[Any]], footer: str | None = None
) -> str:
    """Return rows in a grid below a title, and an empty line. ``caption``: the names of the columns; None:
    none. ``footer``: a last line in the frame, of which the end is shown where it is too long. A cell with
    line feeds takes several lines. All rows must have as many cells as the first."""
    cells = [[str(cell).split("\n") for cell in row] for row in ([caption] if caption else []) + list(rows)]
    if not cells:
        width, grid = EMPTY_TABLE_WIDTH, []
    else:
        widths = [
            max(_columns(line) for row in cells for line in row[column]) for column in range(len(cells[0]))
        ]
        edge = f"+{'+'.join('-' * (size + 2) for size in widths)}+"
        grid = [edge]
        for number, row in enumerate(cells):
            grid += _grid_row(row, widths)
            if caption and number == 0:
                grid.append(edge)
        grid.append(edge)
        width = len(edge)
    lines = [f"+{'-' * (width - 2)}+", f"| {_centred(title, width - 4)} |", *grid]
    if footer is not None:
        lines += [f"| {footer[-(width - 4) :].ljust(width - 4)} |", f"+{'-' * (width - 2)}+"]
    return "\n".join([*lines, "", ""])


def cut(text: str, most: int) -> str:
    """Return a text; one of more than ``most`` characters without its last words, and with six dots
    behind."""
    return text if len(text) <= most else f"{_without_words(text, most - 7)}..."


def cut_at_work(text: str) -> str:
    """Return a description as the list of running checks shows it: from 60 characters on without its last
    words, and with three dots behind."""
    return text if len(text) < 60 else _without_words(text, 57)


def json_text(value: Mapping[str, Any]) -> str:
    """Return an object as JSON, indented by tabs, and an empty line. Values that are neither text, list nor
    object are written as Python's ``str`` has them."""
    return f"{_json(value, 0)}\n\n"


def coloured(status: str) -> str:
    """Return a status in the middle of ten columns, in terminal colours: green, red, or yellow for all
    others."""
    colour = {"ok": "\x1b[48;5;42m\x1b[38;5;0m", "error": "\x1b[38;5;20m\x1b[48;5;9m"}
    left = (10 - len(status)) // 2
    centred = f"{' ' * left}{status}".ljust(10)
    other = "\x1b[38;5;0m\x1b[48;5;226m"
    return f"{colour.get(status, other)}{centred}\x1b[m"


def elapsed(seconds: float) -> str:
    """Return a duration in words, from the largest unit that is not zero down to seconds: ``1 mins, 6
    secs``."""
    whole = max(0, int(seconds))
    parts = [
        (whole // 86_400, "days"),
        (whole // 3600 % 24, "hours"),
        (whole // 60 % 60, "mins"),
        (whole % 60, "secs"),
    ]
    first = next((number for number, (value, _) in enumerate(parts) if value), len(parts) - 1)
    return ", ".join(f"{value} {unit}" for value, unit in parts[first:])


def _columns(text: str) -> int:
    """Return how many columns a text takes: colours none, a character beyond the first plane two."""
    plain = _COLOURS.sub("", text)
    return len(plain) + sum(1 for char in plain if ord(char) > 0xFFFF)


def _grid_row(row: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of one row, as many as its highest cell has."""
    height = max(len(cell) for cell in row)
    lines = []
    for number in range(height):
        parts = [cell[number] if number < len(cell) else "" for cell in row]
        padded = [
            f" {part}{' ' * (width - _columns(part))} " for part, width in zip(parts, widths, strict=True)
        ]
        lines.append(f"|{'|'.join(padded)}|")
    return lines


def _centred(text: str, width: int) -> str:
    """Return a text in the middle of a width, one blank more on the left where it cannot be even; the middle
    of one that is too long."""
    if len(text) > width:
        start = (len(text) - width) // 2
        return text[start : start + width]
    right = (width - len(text)) // 2
    return f"{text}{' ' * right}".rjust(width)


def _without_words(text: str, most: int) -> str:
    """Take words from the end of a text until it has at most so many characters, without counting the blanks
    between the words taken, and add three dots. A text without blanks is cut."""
    words = text.split(" ")
    taken = 0
    for _ in range(_WORDS_MAX):
        if not words or len(text) - taken - 1 <= most:
            break
        taken += len(words.pop())
    return f"{' '.join(words) or text[:most]}..."


def _json(value: Any, depth: int) -> str:
    inner, outer = "\t" * (depth + 1), "\t" * depth
    if isinstance(value, Mapping):
        fields = [f"{inner}{_quoted(name)}: {_json(field, depth + 1)}" for name, field in value.items()]
        return "{\n" + ",\n".join(fields) + f"\n{outer}}}"
    if isinstance(value, list | tuple):
        return "[\n" + ",\n".join(f"{inner}{_json(item, depth + 1)}" for item in value) + f"\n{outer}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    """Return a JSON string. Control characters have escapes, and every other character stands as it is."""
    escaped = (
        _ESCAPES.get(char) or (f"\\u{ord(char):04X}" if ord(char) < 0x20 or ord(char) == 0x7F else char)
        for char in text
    )
    return f'"{"".join(escaped)}"'
