"""How values become JSON, and lists become lines."""

import json
from dataclasses import dataclass
from enum import Enum

import pytest

from spinney.cli import showing


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    colour: Colour
    parts: frozenset[int]


def test_a_list_is_one_value_a_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print("said before")
    showing.lines([Thing("a\nb", Colour.RED, frozenset({1})), {"n": 2}, {3: None}])

    first, *values = capsysbinary.readouterr().out.decode().splitlines()
    assert first == "said before"
    assert [json.loads(line) for line in values] == [
        {"name": "a\nb", "colour": "red", "parts": [1]}, {"n": 2}, {"3": None},
    ]  # fmt: skip


def test_of_an_empty_list_there_is_no_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    showing.lines([])

    assert capsysbinary.readouterr().out == b""


def test_a_single_value_is_a_document(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    showing.as_json(Thing("x", Colour.RED, frozenset()))

    told = capsysbinary.readouterr().out.decode()
    assert json.loads(told) == {"name": "x", "colour": "red", "parts": []}
    assert told.count("\n") > 1


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        showing.lines([object()])
