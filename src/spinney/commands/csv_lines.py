"""Any list as CSV (RFC 4180, UTF-8): the columns are the fields of its items, in their order.

A field that is itself an object of fields has a column for each of them (``rights.role``). Other values that are more
than one are JSON. Texts are quoted; numbers are not, and stay numbers.

Spreadsheets run a text as a formula when it begins with one of ``=+-@``, also behind white space. Where a semicolon
separates their columns, they ignore quotes in the middle of a line, so that a cell may also begin behind a semicolon, a
tab or the end of a line within the text, and behind quotes there. An apostrophe before the sign makes it harmless.
"""

import csv
import dataclasses
import io
import re
import typing
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any

import orjson

from spinney.model.values.lists import All, Page
from spinney.model.values.plain_json import plain

CSV = "text/csv"
_BLANK, _BLANK_OR_QUOTE = r"[\s;\ufeff]", r"[\s;\"\ufeff]"
_BEFORE_SIGN = re.compile(
    rf"(?<!{_BLANK_OR_QUOTE})"
    rf"(?:^{_BLANK}*+|(?:(?![;\t\r\n]){_BLANK_OR_QUOTE})*+[;\t\r\n]{_BLANK_OR_QUOTE}*+)(?=[=+\-@＝＋－＠])"
)
"""What precedes a sign that begins a formula. It takes a run of blanks as a whole, so that a search is linear."""


def item_type(answer: Any) -> type | None:
    """Return the class of the items of a list's type, ``All[Hold]``, ``Page[Hold]`` or a subclass of one; None for
    other types, and for items without fields."""
    base = next(iter(getattr(answer, "__orig_bases__", ())), None) if isinstance(answer, type) else answer
    of = typing.get_args(base)
    if not of or typing.get_origin(base) not in (All, Page):
        return None
    return of[0] if isinstance(of[0], type) and dataclasses.is_dataclass(of[0]) else None


def columns(item: type) -> list[str]:
    """Return the names of the columns for items of this class."""
    return list(_columns(item, ""))


def header(item: type) -> bytes:
    """Return the first line of a CSV file: the names of the columns for items of this class."""
    return _written([columns(item)])


def lines(item: type, items: Iterable[Any]) -> bytes:
    """Return a line for each of these items."""
    read = [attrgetter(name) for name in columns(item)]
    return _written([_cell(value(each)) for value in read] for each in items)


def harmless(text: str) -> str:
    """Return a text as one that no spreadsheet takes for a formula."""
    return _BEFORE_SIGN.sub(r"\g<0>'", text)


def _columns(item: type, before: str) -> Iterator[str]:
    """Yield the names of the columns, those of a field's own fields with its name before them."""
    hints = typing.get_type_hints(item)
    for field in dataclasses.fields(item):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from _columns(typing.cast("type", hint), f"{before}{field.name}.")
        else:
            yield before + field.name


def _cell(value: Any) -> str | int | float:
    """Return a value as CSV shows it: numbers as they are, other values as text that no spreadsheet takes for a
    formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        value = str(value.value)
    if isinstance(value, int | float):
        return value
    return harmless(str(value) if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    """Return a value as JSON text on one line."""
    return orjson.dumps(value, default=plain, option=orjson.OPT_NON_STR_KEYS).decode()


def _written(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the rows as lines of CSV in UTF-8. What UTF-8 cannot encode becomes a question mark."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    return text.getvalue().encode(errors="replace")
