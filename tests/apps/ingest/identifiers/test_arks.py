"""ARKs that mean the same have one form, and what is no ARK is told so."""

import pytest

from spinney.apps.ingest.identifiers import arks
from spinney.files.paths import NotAdmitted

SAME = [
    "ark:/99999/fk4abc",
    "ark:99999/fk4abc",
    "ARK:/99999/fk4abc",
    " ark:/99999/fk4abc\n",
    "ark:/99999/fk4-a-bc",
    "ark:/999-99/fk4\u2010abc",
    "ark:/99999/fk4abc/",
    "ark:/99999/fk4abc.",
    "https://n2t.net/ark:/99999/fk4abc",
    "HTTP://example.org:8080/ark:99999/fk4abc",
]


@pytest.mark.parametrize("text", SAME)
def test_what_means_the_same_has_one_form(text: str) -> None:
    assert arks.canonical(text) == "ark:/99999/fk4abc"


@pytest.mark.parametrize(
    "text",
    [
        "ark:/99999/fk4abd",
        "ark:/99998/fk4abc",
        "ark:/99999/FK4abc",
        "ark:/99999/fk4abc/1",
        "ark:/99999/fk4abc.v1",
    ],
)
def test_what_differs_is_not_the_same(text: str) -> None:
    assert arks.canonical(text) != SAME[0]


def test_a_qualifier_is_part_of_it() -> None:
    ark = arks.canonical("ark:/B5072/fk4x//p1./.v%e2")

    assert ark == "ark:/b5072/fk4x/p1.v%E2"
    assert arks.canonical(ark) == ark


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ark:",
        "ark:/",
        "ark:/99999",
        "ark:/99999/",
        "ark:/99999/-",
        "ark://99999/x",
        "ark:/99999//x",
        "ark:/99999/../../etc/passwd",
        "ark:/../x",
        "99999/fk4abc",
        "doi:10.5060/D2",
        "bark:/99999/x",
        "file:///ark:/99999/x",
        "ark:/99999/a b",
        "ark:/99999/a\nb",
        "ark:/99999/é",
        "ark:/99999/%zz",
        "ark:/99999/a%4",
        "ark:/99999/a?info",
        "ark:/٩٩/x",
        "ark:/99999/" + "x" * 250,
    ],
)
def test_what_is_no_ark_is_refused(text: str) -> None:
    with pytest.raises(NotAdmitted, match=r"is no ARK|longer"):
        arks.canonical(text)
