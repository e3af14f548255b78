"""The index of the documentation has every page once, and the pages of reference are as the code."""

import re
from pathlib import Path

import pytest

from docs import reference

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "index.md").read_text()


def test_the_index_has_every_page_once() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}

    assert sorted(re.findall(r"\]\(([^)#]+)\)", INDEX)) == sorted(pages)


def test_the_index_is_in_its_groups() -> None:
    groups = re.findall(r"^## (.*)", INDEX, flags=re.M)

    assert groups == ["Tutorial", "How to", "Concepts", "Reference", "Decisions"]


@pytest.mark.parametrize("file", reference.pages())
def test_the_reference_is_current(file: str) -> None:
    """``python tests/docs/reference.py`` writes it anew."""
    assert (reference.REFERENCE / file).read_text() == reference.pages()[file]


def test_no_other_page_is_in_the_reference() -> None:
    assert {page.name for page in reference.REFERENCE.iterdir()} == set(reference.pages())
