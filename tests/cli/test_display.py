"""How values become JSON, and lists become lines."""

import io
import json
import sys
from dataclasses import dataclass
from enum import Enum

import pytest

from spinney.terminal.output import display


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    colour: Colour
    parts: frozenset[int]


@pytest.mark.parametrize(
    ("raw", "pieces", "shown"),
    [
        (False, [b"plain \xc3", b"\xa9t\xc3\xa9\n\tend\r\n"], "plain été\n\tend\n"),
        (False, [b"\x1b]0;title\x07 \x1b", b"[31mred\rover"], "\\x1b]0;title\\x07 \\x1b[31mred\\rover"),
        (False, ["\x9b2J \u202e".encode()], "\\x9b2J \\u202e"),
        (False, [b"one\r", b"\ntwo\r", b"three\r"], "one\ntwo\\rthree\\r"),
        (False, [b"cut off \xe2\x82"], "cut off \\xe2\\x82"),
        (True, [b"\x1b[31mred\r"], "\x1b[31mred\r"),
    ],
)
def test_what_jobs_wrote_is_harmless_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, raw: bool, pieces: list[bytes], shown: str
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO())
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)

    content = display.Content(raw=raw)
    for piece in pieces:
        content.write(piece)
    content.write(b"", last=True)

    assert terminal.buffer.getvalue().decode() == shown


def test_markup_and_names_of_emoji_stand_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    display.print_facts([("params", '{"path": "a:ok:b"}'), ("message", "[bold]12:30:00[/bold] :bug:")])

    assert capsys.readouterr().out == (
        'params       {"path": "a:ok:b"}\nmessage      [bold]12:30:00[/bold] :bug:\n'
    )


def test_a_time_that_ended_before_it_began_took_none() -> None:
    assert display.format_elapsed(3_600_000_000, 12_000_000) == "0 s"
    assert display.format_elapsed(12_000_000, 15_000_000) == "3 s"


def test_a_list_is_one_value_a_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print("said before")
    display.print_json_lines([Thing("a\nb", Colour.RED, frozenset({1})), {"n": 2}, {3: None}])

    first, *values = capsysbinary.readouterr().out.decode().splitlines()
    assert first == "said before"
    assert [json.loads(line) for line in values] == [
        {"name": "a\nb", "colour": "red", "parts": [1]},
        {"n": 2},
        {"3": None},
    ]


def test_of_an_empty_list_there_is_no_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    display.print_json_lines([])

    assert capsysbinary.readouterr().out == b""


def test_a_single_value_is_a_document(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    display.print_json(Thing("x", Colour.RED, frozenset()))

    output = capsysbinary.readouterr().out.decode()
    assert json.loads(output) == {"name": "x", "colour": "red", "parts": []}
    assert output.count("\n") > 1


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        display.print_json_lines([object()])
