"""The JSON form: JSON Lines with a header and an end, or one small document."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.manifests.texts import URL, put
from spinney.apps.ingest.manifests import About, ManifestRefused, PayloadKind, Row, judge, kind_of, read
from spinney.apps.ingest.manifests.json_form import JSON_MAX_BYTES
from spinney.files.digests import Digest

MD5 = "0b21c6d48e815dd537d42dc1cfac0111"
FILE = {
    "url": URL,
    "name": "scans/p1.tif",
    "digest": {"algorithm": "MD5", "value": MD5.upper()},
    "size": 4711,
    "modified": "2020-01-01",
    "mime_type": "image/tiff",
}
OBJECT = {
    **FILE,
    "primary_id": "ark:/99999/fk4x",
    "local_ids": ["a;1", " b ", "a;1"],
    "creator": "Seneca, T.",
    "title": "Über | alles",
    "date": "2009",
}


def lines(profile: str, *entries: Any, end: Any = ...) -> bytes:
    values = ({"profile": profile}, *entries, {"end": len(entries) if end is ... else end})
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def document(profile: str, *entries: Any, indent: int | None = None, **others: Any) -> bytes:
    key = "files" if profile == "object-manifest" else "objects"
    return json.dumps({"profile": profile, key: entries, **others}, indent=indent).encode()


def rows(folder: Path, content: bytes) -> list[Row]:
    return list(read(put(folder, content, "deposit.json")))


def refusal(folder: Path, content: bytes) -> str:
    with pytest.raises(ManifestRefused) as refused:
        rows(folder, content)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1500
    return str(refused.value)


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lines, document])
def test_an_object_manifest(tmp_path: Path, form: Any) -> None:
    (row,) = rows(tmp_path, form("object-manifest", FILE))

    assert (row.url, row.name, row.digest) == (URL, "scans/p1.tif", Digest("md5", MD5))
    assert (row.size_bytes, row.modified, row.mime_type) == (4711, "2020-01-01", "image/tiff")


@pytest.mark.parametrize("form", [lines, document])
@pytest.mark.parametrize("kind", ["single-file-batch-manifest", "container-batch-manifest", "batch-manifest"])
def test_a_batch(tmp_path: Path, form: Any, kind: str) -> None:
    manifest = put(tmp_path, form(kind, OBJECT, {"url": URL}, {"url": URL, "name": None, "size": None}))

    first, second, third = read(manifest)

    assert kind_of(manifest) is PayloadKind(kind)
    assert first.about == About(
        primary_id="ark:/99999/fk4x",
        local_ids=("a;1", "b"),
        creator="Seneca, T.",
        title="Über | alles",
        date="2009",
    )
    assert (second.name, second.about) == (third.name, third.about) == ("p1.tif", About())


@pytest.mark.parametrize("form", [lines, document])
def test_an_object_of_a_batch_manifest_may_carry_its_files(tmp_path: Path, form: Any) -> None:
    inline = {"files": [FILE, {"url": URL}], "title": "Letters"}

    (row,) = rows(tmp_path, form("batch-manifest", inline))

    assert (row.url, row.about.title) == ("", "Letters")
    assert [one.name for one in row.files] == ["scans/p1.tif", "p1.tif"]


def test_a_document_may_be_laid_out_for_people(tmp_path: Path) -> None:
    manifest = b"\xef\xbb\xbf\n  \r\n" + document("object-manifest", FILE, indent=2).replace(b"\n", b"\r\n")

    assert len(rows(tmp_path, manifest)) == 1


def test_lines_may_be_blank(tmp_path: Path) -> None:
    manifest = b"\n" + lines("object-manifest", FILE).replace(b"\n", b"\r\n\n") + b"\n \n"

    assert [row.line for row in rows(tmp_path, manifest)] == [4]


@pytest.mark.parametrize("name", ["a|b", "line\nbreak", " blank ", "\x1b[2J", "\U0001f4be", "#", "%2e%2e"])
def test_names_that_checkm_cannot_tell_are_told_here(tmp_path: Path, name: str) -> None:
    (row,) = rows(tmp_path, document("object-manifest", {**FILE, "name": name}))

    assert row.name == name


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "line 1: this is no JSON"),
        (b'{"profile": "object-manifest",\n "files": [\n {"url" "x"}]}', "line 3: this is no JSON"),
        (document("object-manifest", FILE) + b"{}", "no JSON .Extra data"),
        (b'{"files": [{"url": "https://example.org/a"}]}', 'no "profile" is named'),
        (lines("file", FILE), "profile 'file' is not known; name one of object-manifest"),
        (document("FILE", FILE), "profile 'FILE' is not known"),
        (b'{"profile": ["object-manifest"], "files": []}', "is not known"),
        (b'{"profile": "object-manifest", "files": []}', "a list that is not empty"),
        (b'{"profile": "object-manifest", "files": {"url": "x"}}', "a list that is not empty"),
        (b'{"profile": "object-manifest", "objects": [{}]}', "a key 'objects'"),
        (document("object-manifest", FILE, owner="x"), "the manifest has a key 'owner'"),
        (b'{"profile": "object-manifest", "owner": 1}\n{"end": 0}', "the header has a key 'owner'"),
        (b'{"profile": "object-manifest", "profile": "batch-manifest"}', "'profile' is given twice"),
        (b"[" * 100_000, "neither"),
        (b'{"a":' * 100_000, "too deep"),
        (b'{"profile": ' + b"9" * 10_000 + b"}", "number is too long"),
        (b'{"profile": NaN}', "NaN is not a number"),
        (b'{"profile": "\\ud800"}', "half a character"),
        (b'{"profile": "\xff"}', "not UTF-8"),
        (b'{"profile": "\0"}', "NUL"),
    ],
)
def test_what_is_no_such_manifest_is_refused_before_any_row(
    tmp_path: Path, content: bytes, says: str
) -> None:
    with pytest.raises(ManifestRefused, match=says) as refused:
        read(put(tmp_path, content))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ([], "no JSON object but a list"),
        ("https://example.org/a", "no JSON object but 'https"),
        ({}, "no URL"),
        ({"url": 7}, "url is 7; write text"),
        ({"url": "x"}, "not a URL of http"),
        ({**FILE, "name": ["a"]}, "name is"),
        ({**FILE, "name": ""}, "no name of a file"),
        ({**FILE, "name": "../up"}, "go downward only"),
        ({**FILE, "name": "nul\0"}, "NUL"),
        ({**FILE, "name": "\ud800"}, "half a character"),
        ({**FILE, "size": -1}, "size is -1"),
        ({**FILE, "size": True}, "size is True"),
        ({**FILE, "size": 1.0}, "size is 1.0"),
        ({**FILE, "size": "1"}, "size is '1'"),
        ({**FILE, "size": 2**63}, "size is 9223372036854775808"),
        ({**FILE, "digest": MD5}, 'write {"algorithm"'),
        ({**FILE, "digest": {"algorithm": "md5"}}, "no value"),
        ({**FILE, "digest": {"value": MD5}}, "no algorithm"),
        ({**FILE, "digest": {"md5": MD5}}, "the digest has a key 'md5'"),
        ({**FILE, "digest": {"algorithm": "rot13", "value": MD5}}, "no digest algorithm"),
        ({**FILE, "colour": 1}, "the entry has a key 'colour'"),
        ({**FILE, "title": "x"}, "the entry has a key 'title'"),
        ({**FILE, "files": [FILE]}, "the entry has a key 'files'"),
        ({**FILE, "k" * 5000: 1}, "a key 'kkkk"),
        ({**FILE, "mime_type": "x\ny"}, "no media type"),
    ],
)
@pytest.mark.parametrize(("form", "place"), [(lines, "line 3"), (document, "entry 2")])
def test_an_entry_that_is_wrong_is_refused_by_its_place(
    tmp_path: Path, entry: Any, says: str, form: Any, place: str
) -> None:
    message = refusal(tmp_path, form("object-manifest", {"url": URL}, entry))

    assert re.search(says, message)
    # A document with half a character in it is no JSON as a whole.
    assert f", {place}: " in message or "half a character" in message


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({**OBJECT, "local_ids": "a"}, "local_ids is 'a'; write a list"),
        ({**OBJECT, "local_ids": [1]}, "write a list of texts"),
        ({**OBJECT, "title": "two\nlines"}, "the title 'two.*lines' has a line break"),
        ({**OBJECT, "creator": "x" * 8193}, "longer than 8192"),
        ({"files": []}, "list the files"),
        ({"files": "x"}, "files is 'x'; write a list of the files"),
        ({"files": [FILE], "url": URL}, "a key 'url'"),
        ({"files": [FILE, {"url": "x"}]}, "files, entry 2: 'x' is not a URL"),
        ({"files": [FILE, FILE]}, "files, entry 2: .* on entry 1 already"),
        ({"files": [OBJECT]}, "files, entry 1: .*'creator'"),
        ({"files": [{"files": [FILE]}]}, "files, entry 1: .*'files'"),
    ],
)
def test_an_object_that_is_wrong_is_refused_by_its_line(tmp_path: Path, entry: Any, says: str) -> None:
    message = refusal(tmp_path, lines("batch-manifest", entry))

    assert ", line 2: " in message
    assert re.search(says, message)


@pytest.mark.parametrize("key", ["name", "size", "digest", "local_ids", "files", "url", "unknown"])
def test_no_depth_is_just_deep_enough_to_break_the_refusal(tmp_path: Path, key: str) -> None:
    limit = sys.getrecursionlimit()
    for depth in range(limit - 250, limit + 10, 3):
        nested = b"[" * depth + b'"\\u0041"' + b"]" * depth
        content = b'{"profile": "batch-manifest"}\n{"%s": %s}\n{"end": 1}' % (key.encode(), nested)

        refusal(tmp_path, content)


def test_only_a_batch_manifest_takes_files_in_place_of_a_url(tmp_path: Path) -> None:
    assert "a key 'files'" in refusal(tmp_path, lines("container-batch-manifest", {"files": [FILE]}))


def test_names_that_meet_are_refused_with_both_places(tmp_path: Path) -> None:
    assert "line 3: the name" in refusal(tmp_path, lines("object-manifest", FILE, FILE))
    assert "on line 2 already" in refusal(tmp_path, lines("object-manifest", FILE, FILE))
    assert "on entry 1 already" in refusal(tmp_path, document("object-manifest", FILE, FILE))


def test_names_that_nearly_meet_are_told_of_with_both_places(tmp_path: Path) -> None:
    other = {**FILE, "name": "SCANS/p1.tif"}
    for content, says in (
        (lines("object-manifest", FILE, other), "line 3: the name 'SCANS/p1.tif' is that on line 2 but for"),
        (
            document("object-manifest", FILE, other),
            "entry 2: the name 'SCANS/p1.tif' is that on entry 1 but for",
        ),
        (
            lines("batch-manifest", {"files": [FILE, other]}),
            "line 2: files, entry 2: the name 'SCANS/p1.tif' is that",
        ),
    ):
        judgement = judge(put(tmp_path, content))
        assert (judgement.problems, str(judgement.warnings.first[0])[: len(says)]) == ((), says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            lines("object-manifest", FILE).rpartition(b'{"end"')[0],
            'line 3: .* without {"end": 1}, .* cut off',
        ),
        (lines("object-manifest", FILE)[:-2], "line 3: this is no JSON"),
        (lines("object-manifest", FILE, end=2), "line 3: the end line announces 2 entries, but there are 1"),
        (lines("object-manifest", FILE, end=True), "announces True entries"),
        (lines("object-manifest", FILE, end="1"), "announces '1' entries"),
        (lines("object-manifest"), "before its first entry"),
        (b'{"profile": "object-manifest"}', 'line 2: .* without {"end": 0}'),
        (lines("object-manifest", FILE) + b"\n{}", "line 5: this is below the end on line 3"),
    ],
)
def test_an_end_that_does_not_fit_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    assert re.search(says, refusal(tmp_path, content))


def test_a_document_that_is_too_large_to_be_parsed_at_once_is_told_to_be_lines(tmp_path: Path) -> None:
    large = document("object-manifest", FILE) + b" " * JSON_MAX_BYTES

    assert "JSON Lines" in refusal(tmp_path, large)
    assert "JSON Lines" in refusal(tmp_path, large.replace(b", ", b",\n "))


def test_a_line_that_is_too_long_is_refused_by_its_line(tmp_path: Path) -> None:
    content = lines("object-manifest", FILE, {**FILE, "name": "x" * JSON_MAX_BYTES})

    assert f"line 3: this line is longer than {JSON_MAX_BYTES} bytes" in refusal(tmp_path, content)
