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


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1"])
def test_no_text_begins_as_a_formula_does(text: str) -> None:
    (row,) = read(thing(text, at=Point(1, text)))
    assert (row["name"], row["at.note"]) == (f"'{text}", f"'{text}")


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "'=1", "ä"])
def test_other_texts_are_as_they_are(text: str) -> None:
    assert read(thing(text))[0]["name"] == text


def test_only_lists_of_objects_have_items() -> None:
    assert csv_lines.item_type(All[Thing]) is Thing
    assert csv_lines.item_type(Page[Thing]) is Thing
    assert csv_lines.item_type(Mapping[str, int]) is None
    assert csv_lines.item_type(Thing) is None
    assert csv_lines.item_type(None) is None
