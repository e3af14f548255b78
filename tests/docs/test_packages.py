"""The docstring of each package: it says what the package is for, names its modules, and the tests that specify it."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "spinney"
BEGINNING = "Specified by "

_MAP_LINE = re.compile(r"^``(\w+)`` {2,}\S")
"""A line of a map: a name, alone before two or more blanks, then what it holds."""
_QUOTED = re.compile(r"``([^`]+)``")

PACKAGES = sorted(
    str(file.parent.relative_to(SOURCE)) for file in SOURCE.rglob("__init__.py") if file.parent != SOURCE
)


@cache
def docstring(package: str) -> str:
    """Return the docstring of a package as it stands in its file; empty when there is none."""
    return ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text("utf-8"))) or ""


def paragraphs(package: str) -> list[str]:
    """Return the paragraphs of a package's docstring, each on one line."""
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", docstring(package))]


def specifications(package: str) -> list[str]:
    """Return the paragraphs that name tests."""
    return [paragraph for paragraph in paragraphs(package) if paragraph.startswith(BEGINNING)]


def contents(package: str) -> set[str]:
    """Return the names of a package's modules and sub-packages."""
    folder = SOURCE / package
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    return modules | {file.parent.name for file in folder.glob("*/__init__.py")}


def mapped(package: str) -> list[str]:
    """Return the names in the map of a package's docstring, in their order."""
    lines = docstring(package).splitlines()
    return [match[1] for match in map(_MAP_LINE.match, lines) if match]


def test_the_first_line_is_a_whole_sentence() -> None:
    for package in PACKAGES:
        first = docstring(package).partition("\n")[0]

        assert re.match(r"^(``|[A-Z])", first), f"{package}: {first!r}"
        assert first.endswith("."), f"{package}: {first!r}"
        assert len(first.split()) > 4, f"{package}: {first!r}"


def test_a_package_names_the_tests_that_specify_it() -> None:
    for package in PACKAGES:
        assert specifications(package), f"spinney/{package}: its docstring has no paragraph '{BEGINNING}…'"
        assert all("``tests/" in each for each in specifications(package)), package
        assert paragraphs(package)[-1] in specifications(package), f"{package}: the paragraph is the last one"


def test_the_named_tests_exist() -> None:
    for package in PACKAGES:
        quoted = [name for paragraph in specifications(package) for name in _QUOTED.findall(paragraph)]
        paths = [name for name in quoted if name.startswith("tests/")]

        assert [path for path in paths if not (ROOT / path).exists()] == [], package
        empty = [
            path for path in paths if (ROOT / path).is_dir() and not any((ROOT / path).rglob("test_*.py"))
        ]
        assert empty == [], package
        assert sorted(set(paths)) == sorted(paths), f"{package}: none is named twice"


def test_a_map_has_every_module_and_no_other() -> None:
    with_a_map = [package for package in PACKAGES if mapped(package)]

    assert {package: sorted(mapped(package)) for package in with_a_map} == {
        package: sorted(contents(package)) for package in with_a_map
    }


def test_a_package_of_more_than_two_modules_has_a_map() -> None:
    """Lines '``name``  what it holds'."""
    assert [package for package in PACKAGES if len(contents(package)) > 2 and not mapped(package)] == []


def test_what_a_map_is() -> None:
    assert _MAP_LINE.match("``states``  the states of a job")
    assert not _MAP_LINE.match("``states`` begins a sentence here")
    assert not _MAP_LINE.match("``states.py``  is a file")
    assert not _MAP_LINE.match("``states``")
