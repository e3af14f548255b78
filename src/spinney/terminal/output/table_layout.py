"""The widths of a table's columns: nothing is cut, and short words stay whole, however narrow the terminal is.

Rich takes the room from all columns that may be wrapped, and then cuts words, so that on a terminal of 80 columns a
list shows ``complet…`` for a state and half of a job's number. Here a column keeps words of up to 16 letters whole, on
narrow terminals of up to 8, and what is longer goes on in the next line. Where not even this fits, each row is written
as one long line, which the terminal breaks.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_TRIALS = ((2, 16), (2, 12), (1, 12), (1, 8))
"""What is tried in turn: the gap between two columns, and how long a word may be to stay whole."""

_PADDED = 24
"""Up to which width a column of long lines is filled with blanks."""


class Fitted:
    """A table without lines, made to fit the width of the console. It has texts alone in its cells."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        """Yield a line for each row where all of it fits, without the blanks with which Rich ends each; else the table
        with its widths, or lines of any length where the console is too narrow for it."""
        texts = [[str(column.header), *map(str, column.cells)] for column in self._table.columns]
        natural = [max(map(cell_len, column)) for column in texts]
        if sum(natural) + 2 * (len(texts) - 1) <= options.max_width:
            yield from self._lines(natural)
            return
        for gap, word in _TRIALS:
            widths = column_widths(texts, options.max_width - gap * (len(texts) - 1), word)
            if widths is not None:
                self._table.padding = (0, gap, 0, 0)
                for column, width in zip(self._table.columns, widths, strict=True):
                    column.width, column.overflow = width, "fold"
                yield self._table
                return
        yield from self._lines([min(width, _PADDED) for width in natural])

    def _lines(self, widths: Sequence[int]) -> Iterator[Text]:
        """Yield each row as a line, with the columns filled up to these widths."""
        columns = self._table.columns
        headers = [Text(str(column.header), self._table.header_style) for column in columns]
        for row in zip(
            *([header, *column.cells] for header, column in zip(headers, columns, strict=True)), strict=True
        ):
            line = Text(no_wrap=True, overflow="ignore")
            for column, cell, width in zip(columns, row, widths, strict=True):
                blanks = " " * (width - cell_len(str(cell)))
                line.append(blanks if column.justify == "right" else "")
                line.append_text(cell if isinstance(cell, Text) else Text(str(cell)))
                line.append("  " if column.justify == "right" else f"{blanks}  ")
            line.rstrip()
            yield line


def column_widths(columns: Sequence[Sequence[str]], room: int, word: int) -> list[int] | None:
    """Return the widths of these columns within ``room``, in cells; None: they need more. The widest are shortened
    first, and none to less than its longest word, as far as that is no longer than ``word``."""
    natural = [max(map(cell_len, texts)) for texts in columns]
    least = [
        min(max(cell_len(part) for text in texts for part in text.split() or [""]), word) for texts in columns
    ]
    if sum(least) > room:
        return None
    most = min(max(natural), room)  # what is longer than all of it makes no difference
    while sum(widths := [max(low, min(high, most)) for low, high in zip(least, natural, strict=True)]) > room:
        most -= 1
    return widths
