"""What is said of an object is written as others read it, and read from what depositors write."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.apps.ingest.deposits import metadata
from spinney.apps.ingest.deposits.metadata import DC
from spinney.apps.ingest.manifests import About
from spinney.files.paths import NotAdmitted

GIBBON = About(
    creator="Gibbon, Edward",
    title="The Decline & Fall <of> Rome",
    date="1781",
    primary_id="ark:/99999/fk4abc",
    local_ids=("gibbon-1", "shelf:9"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mrt-erc.txt"


def read(path: Path, text: str) -> About:
    path.write_text(text, encoding="utf-8", newline="")
    return metadata.read_erc(path, 10_000)


def test_an_erc() -> None:
    assert metadata.erc(GIBBON).splitlines() == [
        "erc:",
        "who: Gibbon, Edward",
        "what: The Decline & Fall <of> Rome",
        "when: 1781",
        "where: ark:/99999/fk4abc",
        "where: gibbon-1",
        "where: shelf:9",
    ]


def test_what_is_missing_is_said_by_codes(path: Path) -> None:
    text = metadata.erc(About())

    assert text == "erc:\nwho: (:unav)\nwhat: (:unas)\nwhen: (:unav)\nwhere: (:unas)\n"
    assert read(path, text) == About()


whole = st.characters(exclude_categories=["Cs"])
words = st.text(whole).map(str.strip).filter(lambda s: s and not s.startswith("(:"))
ids = words.filter(lambda s: not s.lower().startswith("ark:"))


@given(st.none() | words, st.none() | words, st.none() | words, st.lists(ids, unique=True))
def test_an_erc_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    who: str | None,
    what: str | None,
    when: str | None,
    local: list[str],
) -> None:
    about = About(creator=who, title=what, date=when, primary_id="ark:/99999/fk4abc", local_ids=tuple(local))
    path = tmp_path_factory.getbasetemp() / "erc.txt"
    path.write_bytes(metadata.erc(about).encode())

    assert metadata.read_erc(path, 1_000_000) == about


@pytest.mark.parametrize(
    "text",
    [
        "erc: Gibbon, Edward | The Decline & Fall <of> Rome | 1781 | ark:/99999/fk4abc\n"
        "where: gibbon-1\nwhere: shelf:9",
        "\ufefferc:\r\nWho: Gibbon,\r\n  Edward\r\nWHAT: The Decline & Fall <of> Rome\r\nwhen: 1781\r\nwhen: 1782\r\n"
        "where: gibbon-1\r\nwhere: ark:99999/fk4-abc\r\nwhere: shelf:9\r\nwhere: gibbon-1\r\nnote: (:unkn)\r\n",
        "who: Gibbon, Edward\nwhat: The Decline & Fall <of> Rome\nwhen: 1781\n"
        "where: (:unas); gibbon-1 ;\n  ark:/99999/fk4abc;shelf:9;; gibbon-1\n"
        "where: (:unav) lost (it seems); or never there",
        "erc: Gibbon, Edward | The Decline & Fall <of> Rome | 1781 | ark:/99999/fk4abc;gibbon-1; shelf:9",
    ],
)
def test_what_depositors_write(text: str, path: Path) -> None:
    assert read(path, text) == GIBBON


def test_a_semicolon_of_its_own_is_written_otherwise(path: Path) -> None:
    about = About(creator="a; b", local_ids=("m;2", "50%3B"))

    assert "who: a; b\n" in metadata.erc(about)
    assert "where: m%3B2\nwhere: 50%253B\n" in metadata.erc(about)
    assert read(path, metadata.erc(about)) == about
    assert read(path, "who: a; b\nwhere: m%3B2; 50%253B") == about


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("erc:\nGibbon", "'mrt-erc.txt': line 2"),
        ("where: ark:/99999/a\nwhere: ark:/99999/b", "two ARKs"),
        ("where: ark:/../x", "is no ARK"),
        ("who: " + "x" * 10_000, "longer than 10000 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, words: str, path: Path) -> None:
    with pytest.raises(NotAdmitted, match=words):
        read(path, text)


def test_a_file_that_is_not_utf8(path: Path) -> None:
    path.write_bytes(b"who: caf\xe9")

    with pytest.raises(NotAdmitted, match="not UTF-8 at byte 8"):
        metadata.read_erc(path, 100)


def test_a_link_or_a_pipe_is_not_read(path: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("who: s3cret")
    path.symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")

    for name in (path, tmp_path / "pipe"):
        with pytest.raises(NotAdmitted):
            metadata.read_erc(name, 100)


def test_a_dublin_core_record() -> None:
    record = ET.fromstring(metadata.dublin_core(GIBBON))

    assert record.tag == "{http://www.openarchives.org/OAI/2.0/oai_dc/}dc"
    assert [(e.tag.removeprefix(f"{{{DC}}}"), e.text) for e in record] == [
        ("creator", "Gibbon, Edward"),
        ("title", "The Decline & Fall <of> Rome"),
        ("date", "1781"),
        ("identifier", "ark:/99999/fk4abc"),
        ("identifier", "gibbon-1"),
        ("identifier", "shelf:9"),
    ]


def test_its_prefixes_are_those_that_people_know() -> None:
    text = metadata.dublin_core(About()).decode()

    assert text.startswith("<?xml version='1.0' encoding='utf-8'?>\n<oai_dc:dc ")
    assert "<dc:creator>(:unav)</dc:creator>" in text
    assert "xsi:schemaLocation=" in text


@given(st.text(min_size=1))
def test_any_text_makes_xml_that_can_be_read(text: str) -> None:
    record = ET.fromstring(metadata.dublin_core(About(title=text)))

    title = record.find(f"{{{DC}}}title")
    assert title is not None
    assert title.text is not None
    assert len(title.text) == len(text)
    assert all(a == b or b == "\ufffd" for a, b in zip(text, title.text, strict=True))
