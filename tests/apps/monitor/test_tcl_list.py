"""Lists as Tcl reads and writes them, compared with Tcl itself where it is installed."""

import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spinney.apps.monitor.tasks.tcl_list import MalformedList, join, parse

TCLSH = shutil.which("tclsh")


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("", []),
        ("  a\tb\nc ", ["a", "b", "c"]),
        ("ok {} {} {two words} 17", ["ok", "", "", "two words", "17"]),
        ("{a {b c} d} e", ["a {b c} d", "e"]),
        (r"{a \{ b} c", [r"a \{ b", "c"]),
        (r'"a\tb\x41\101\u0049" c', ["a\tbAAI", "c"]),
        (r"a\ b c", ["a b", "c"]),
        ('a{b c"d', ["a{b", 'c"d']),
        ("$a [b] ;c", ["$a", "[b]", ";c"]),
        ("Direção {de Cartografia}", ["Direção", "de Cartografia"]),
        ("a\\\n   b", ["a b"]),
        ("{a\\\n   b} c", ["a\\\n   b", "c"]),
    ],
)
def test_a_list_is_read_as_tcl_reads_it(text: str, elements: list[str]) -> None:
    assert parse(text) == elements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a", "unmatched open brace in list"),
        ('"a', "unmatched open quote in list"),
        ("{a}b c", 'list element in braces followed by "b" instead of space'),
        ('"a"b', 'list element in quotes followed by "b" instead of space'),
    ],
)
def test_a_malformed_list_is_refused_in_tcl_s_words(text: str, message: str) -> None:
    with pytest.raises(MalformedList) as refused:
        parse(text)
    assert str(refused.value) == message


TEXTS = st.lists(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12), max_size=5
)


@given(TEXTS)
@example(["two backslashes at a line's end \\\\\n behind"])
def test_what_is_joined_is_parsed_to_the_same(elements: list[str]) -> None:
    assert parse(join(elements)) == elements


@pytest.mark.skipif(
    TCLSH is None, reason="Tcl is not installed on this machine; the other tests have its answers"
)
def test_tcl_reads_what_is_joined() -> None:
    elements = ["", "a b", "{", "}", "\\", 'say "x"', "$a [b];", "#c", "é\n\t", "a{b}c", "{a} b", "a\\\n  b"]
    script = "fconfigure stdin -encoding utf-8\nforeach e [read stdin] { puts [string length $e] }"
    result = subprocess.run(
        ["bash", "-c", 'tclsh <(printf "%s" "$0")', script],
        input=join(elements),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(length) for length in result.stdout.split()] == [len(element) for element in elements]
