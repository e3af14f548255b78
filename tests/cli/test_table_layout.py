"""Tables on terminals of any width."""

import io
import re

import pytest
from rich.console import Console

from spinney.terminal.output.display import build_table
from spinney.terminal.output.table_layout import Fitted

COLUMNS = ("JOB", "TYPE", "STATE", "CREATED", "MESSAGE")
ROWS = [
    (100_234, "transcode", "completed", "2030-01-31 08:00:00", None),
    (7, "unpack", "failed", "2030-01-31 08:00:01", "cannot read /srv/in/card.zip: it ends in the middle"),
]


def lines(width: int, *, right: str | None = None) -> list[str]:
    out = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    table = build_table(COLUMNS, ROWS)
    for column in table.columns:
        if column.header == right:
            column.justify = "right"
    out.print(Fitted(table), crop=False)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


def test_a_table_that_fits_has_its_natural_width_and_no_blanks_at_the_end() -> None:
    assert lines(120) == [
        "JOB     TYPE       STATE      CREATED              MESSAGE",
        "100234  transcode  completed  2030-01-31 08:00:00",
        "7       unpack     failed     2030-01-31 08:00:01  cannot read /srv/in/card.zip: it ends in the middle",
    ]


@pytest.mark.parametrize("width", [54, 60, 80])
def test_words_stay_whole_where_there_is_room_for_them(width: int) -> None:
    shown = [line.rstrip() for line in lines(width)]

    assert max(map(len, shown)) <= width
    words = set(re.split(r"\s+", " ".join(shown)))
    assert {"100234", "transcode", "completed", "2030-01-31", "08:00:01", "middle", "MESSAGE"} <= words
    assert "…" not in "".join(shown)


def test_the_widest_column_gives_room_first() -> None:
    assert [line.rstrip() for line in lines(80)[1:3]] == [
        "100234  transcode  completed  2030-01-31 08:00:00",
        "7       unpack     failed     2030-01-31 08:00:01  cannot read /srv/in/card.zip:",
    ]


def test_rows_are_long_lines_where_no_table_fits() -> None:
    assert lines(30) == lines(120)
    assert lines(30, right="JOB")[2].startswith("     7  unpack     failed ")
