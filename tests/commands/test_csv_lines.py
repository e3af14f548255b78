"""Lists as CSV: columns from fields, and no text that a spreadsheet would run."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from spinney.commands import csv_lines
from spinney.model.values.lists import All, Page


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int
    note: str | None


@dataclass(frozen=True)
class Thing:
    name: str
    at: Point
    colour: Colour
    tags: tuple[str, ...]
    params: Mapping[str, Any]
    done: bool
    share: float | None


def read(*things: Thing) -> list[dict[str, str]]:
    text = (csv_lines.header(Thing) + csv_lines.lines(Thing, things)).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def thing(name: str, **more: Any) -> Thing:
    usual = {
        "at": Point(-3, None),
        "colour": Colour.RED,
        "tags": ("a", "b"),
        "params": {},
        "done": True,
        "share": None,
    }
    return Thing(name=name, **(usual | more))


def test_each_field_is_a_column_and_those_of_a_part_have_its_name_before_them() -> None:
    assert csv_lines.columns(Thing) == [
        "name",
        "at.x",
        "at.note",
        "colour",
        "tags",
        "params",
        "done",
        "share",
    ]
    assert read(thing('says "a,\nb"', params={"=x": [1]}, share=-0.5)) == [
        {
            "name": 'says "a,\nb"',
            "at.x": "-3",
            "at.note": "",
            "colour": "red",
            "tags": '["a","b"]',
            "params": '{"=x":[1]}',
            "done": "true",
            "share": "-0.5",
        }
    ]


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        *((sign + "1", f"'{sign}1") for sign in "=+-@＝＋－＠"),
        ("@SUM(A1)", "'@SUM(A1)"),
        *(
            (f"{blank}=1", f"{blank}'=1")
            for blank in ("\t", "\r", "\n", " ", "\u00a0", "\ufeff", " \ufeff\u3000")
        ),
        ("x;=cmd|' /C calc'!A0", "x;'=cmd|' /C calc'!A0"),
        ("a; -b;\u00a0@c;+d", "a; '-b;\u00a0'@c;'+d"),
        ("a \t; =b", "a \t; '=b"),
        ("line\n=1", "line\n'=1"),
        ("=1;=2", "'=1;'=2"),
        *((f"x{before}=1", f"x{before}'=1") for before in (';"', '";', '\t"', '\n"', ';" "')),
    ],
)
def test_no_part_of_a_text_begins_as_a_formula_does(text: str, harmless: str) -> None:
    (row,) = read(thing(text, at=Point(1, text)))
    assert (row["name"], row["at.note"]) == (harmless, harmless)


def test_formulas_in_parameters_are_made_harmless_too() -> None:
    assert read(thing("", params={"a": "x;=1"}))[0]["params"] == '{"a":"x;\'=1"}'


def test_all_texts_are_quoted_and_numbers_are_not() -> None:
    (line,) = csv_lines.lines(Thing, [thing("a", share=0.5)]).decode().splitlines()
    assert line == '"a",-3,"","red","[""a"",""b""]","{}","true",0.5'


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "'=1", "ä", "a -b", "a;b", "\ta", "; ", '"-1"', '";"'])
def test_other_texts_are_as_they_are(text: str) -> None:
    assert read(thing(text))[0]["name"] == text


def test_only_lists_of_objects_have_items() -> None:
    assert csv_lines.item_type(All[Thing]) is Thing
    assert csv_lines.item_type(Page[Thing]) is Thing
    assert csv_lines.item_type(Mapping[str, int]) is None
    assert csv_lines.item_type(Thing) is None
    assert csv_lines.item_type(None) is None
