"""The files of an object never meet, those that nearly do are told of, and none leaves the object."""

import tracemalloc
from pathlib import Path

import pytest

from apps.ingest.manifests.texts import FIRST, checkm, put
from spinney.apps.ingest.manifests import ManifestRefused, Row, Warnings, judge, read
from spinney.apps.ingest.manifests.file_names import Names
from spinney.files.paths import NotAdmitted

HOST = "https://example.org"


def rows(folder: Path, *names: str) -> list[Row]:
    content = checkm(*(f"{HOST}/x | | | | | {name}" for name in names))
    return list(read(put(folder, content)))


@pytest.mark.parametrize("name", ["p.tif", "scans/p.tif", "caf\u00e9"])
def test_a_name_that_is_there_twice_is_refused_with_both_lines(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestRefused, match=f"is on line {FIRST} already") as refused:
        rows(tmp_path, name, "between", name)

    assert refused.value.problem.line == FIRST + 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p.tif", "P.TIF"),
        ("scans/p.tif", "Scans/p.tif"),
        ("caf\u00e9", "cafe\u0301"),
        ("CAF\u00c9/x", "cafe\u0301/x"),
        ("stra\u00dfe", "STRASSE"),
        ("\u1fb3", "\u03b1\u0345"),
        ("\u212a", "k"),
        ("a", "A/b/c"),
        ("a/b/c", "a/B"),
    ],
)
def test_two_names_that_some_file_systems_take_for_one_are_kept_and_told_of_with_both_lines(
    tmp_path: Path, one: str, other: str
) -> None:
    content = checkm(*(f"{HOST}/x | | | | | {name}" for name in (one, "between", other)))
    warnings = Warnings()
    rows = read(put(tmp_path, content), warnings=warnings)

    assert [row.name for row in rows] == [one, "between", other]
    (warning,) = warnings.first
    assert warning.line == FIRST + 2
    assert f"is that on line {FIRST} but for upper and lower case" in warning.reason
    judged = judge(tmp_path / "deposit.checkm")
    assert (judged.problems, judged.warnings.first, judged.rows) == ((), [warning], 3)


def test_of_many_warnings_the_first_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    content = checkm(*(f"{HOST}/x | | | | | {name}{n}" for name in "aA" for n in range(60)))

    judgement = judge(put(tmp_path, content)).warnings

    assert (len(judgement.first), judgement.count) == (50, 60)


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("a", "a/b", f"needs a folder where line {FIRST} has a file"),
        ("a", "a/b/c", f"needs a folder where line {FIRST} has a file"),
        ("a/b/c", "a/b", f"is a folder on line {FIRST}"),
        ("a/b/c", "a", f"is a folder on line {FIRST}"),
    ],
)
def test_a_file_is_no_folder_of_another(tmp_path: Path, one: str, other: str, says: str) -> None:
    with pytest.raises(ManifestRefused, match=says):
        rows(tmp_path, one, other)


def test_names_that_only_look_alike_stand_side_by_side(tmp_path: Path) -> None:
    names = ["a/p.tif", "b/p.tif", "a/b", "ab", "a/p.tif2", "1/2", "12", "1/1/2", "e", "\u00e9", "\u0435"]

    assert [row.name for row in rows(tmp_path, *names)] == names


@pytest.mark.parametrize(
    ("encoded", "name"),
    [
        ("p%20|1".replace("|", "%7c"), "p |1"),
        ("%7C%257c", "|%7c"),
        ("%20a%09", " a\t"),
        ("100%", "100%"),
        ("a%41%0A%2F..%c3%a9", "a%41%0A%2F..%c3%a9"),
        ("%2520", "%20"),
    ],
)
def test_blanks_bars_and_percent_signs_may_be_encoded(tmp_path: Path, encoded: str, name: str) -> None:
    """And nothing else is: what an encoding would hide, such as a way upward, stays a name."""
    (row,) = rows(tmp_path, encoded)

    assert row.name == name


@pytest.mark.parametrize(
    "name",
    [
        "../up",
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "a/",
        ".",
        "..",
        "./a",
        "a/.",
        "x" * 256,
        "\u00e9" * 128,
        "/".join("d" * 202),
    ],
)
def test_a_name_leads_downward_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestRefused):
        rows(tmp_path, name)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"{HOST}/a/p%201.tif", "p 1.tif"),
        (f"{HOST}/a/caf%C3%A9?token=1", "caf\u00e9"),
        ("file:///scans/p%7C1.tif", "p|1.tif"),
        (f"{HOST}/100%", "100%"),
        (f"{HOST}/a%0Ab", "a\nb"),
    ],
)
def test_without_a_name_the_last_part_of_the_url_is_taken_decoded(
    tmp_path: Path, url: str, name: str
) -> None:
    (row,) = read(put(tmp_path, checkm(url)))

    assert row.name == name


@pytest.mark.parametrize(
    "url",
    [
        HOST,
        f"{HOST}/",
        f"{HOST}/a/",
        f"{HOST}?a/b",
        f"{HOST}/..",
        f"{HOST}/%2e%2e",
        f"{HOST}/a%2F..%2F..%2Fetc",
        f"{HOST}/%2Fetc%2Fpasswd",
        f"{HOST}/nul%00",
        f"{HOST}/%ff%fe",
        f"{HOST}/%ED%A0%80",
        f"{HOST}/{'x' * 256}",
    ],
)
def test_a_url_that_ends_in_no_lawful_name_asks_for_one(tmp_path: Path, url: str) -> None:
    with pytest.raises(ManifestRefused, match="give a name"):
        list(read(put(tmp_path, checkm(url))))


def test_deep_folders_in_every_row_take_memory_as_they_were_read_and_not_its_square() -> None:
    names = Names("line")
    tracemalloc.start()
    try:
        # Given rows of 200 folders within each other, 1 MB of text; kept as whole paths, 100 MB.
        for row in range(50):
            names.add("/".join((f"{row}", *(["d" * 100] * 199), "f")), row + 1)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept_bytes < 10_000_000


def test_the_first_place_of_a_name_is_kept() -> None:
    names = Names("entry")
    names.add("a", 1)
    for place in (2, 3):
        with pytest.raises(NotAdmitted, match="on entry 1 already"):
            names.add("a", place)
    assert "that on entry 1 but" in (names.add("A", 4) or "")
