"""What is written as ANVL is read as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.apps.ingest.identifiers import anvl
from spinney.files.paths import NotAdmitted


def read(text: str) -> list[tuple[str, str]]:
    return [(e.name, anvl.unescaped(e.raw)) for e in anvl.parse(text)]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_is_read(name: str, value: str) -> None:
    name = f"n{name}n"  # a line that begins blank or with '#' is another thing

    assert read(anvl.line(name, value)) == [(name, value.strip(" "))]


def test_what_would_break_a_line_is_escaped() -> None:
    assert anvl.line("a:b%", "50% of\r\nit: yes") == "a%3Ab%25: 50%25 of%0D%0Ait: yes\n"


def test_lone_surrogates_do_not_stop_it() -> None:
    assert anvl.line("a", "b\ud800").encode() == "a: b\ufffd\n".encode()


def test_comments_and_values_over_several_lines() -> None:
    text = "# about\r\nwho: Gibbon,\r\n  Edward\r\n#more\r\n\tthe historian\r\nwhat:\r\n\r\nwho: of another record\r\n"

    assert read(text) == [("who", "Gibbon, Edward the historian"), ("what", "")]


def test_what_is_no_escape_stays() -> None:
    assert read("what: 100% cotton %zz %FF %C3%A9") == [("what", "100% cotton %zz %FF é")]


@pytest.mark.parametrize(
    ("text", "line"), [("erc:\nGibbon\n", 2), ("\n  indented: x", 2), ("a: b\n\x00\x1b", 2)]
)
def test_a_line_that_is_none_is_named(text: str, line: int) -> None:
    with pytest.raises(NotAdmitted, match=f"line {line}"):
        anvl.parse(text)
