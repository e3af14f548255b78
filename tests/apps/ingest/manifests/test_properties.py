"""Whatever may be deposited survives both forms; whatever bytes come in, nothing but NotAdmitted comes out."""

import io
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.ingest.manifests.texts import FILE, MRT, NFO, OBJECT, PROFILES, checkm
from long_tests import LONG
from spinney.apps.ingest.manifests import (
    NOTHING,
    About,
    PayloadKind,
    Problem,
    Row,
    judge,
    kind_of,
    read,
    write,
    write_json,
)
from spinney.files import digests
from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted

OFTEN = settings(
    max_examples=2000 if LONG else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
BATCHES = [kind for kind in PayloadKind if kind.is_batch]

# --- rows ---------------------------------------------------------------------------------------

plain = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="|")
words = st.text(plain, min_size=1, max_size=12).filter(lambda text: text == text.strip(" "))
optional = st.none() | words
parts = words.map(lambda text: text.replace("/", "-")).filter(lambda text: text not in (".", ".."))
anything = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), min_size=1, max_size=12
)
strange = anything.filter(lambda text: text not in (".", ".."))
on_one_line = strange.map(lambda text: text.replace("\n", "%7C").strip("\r") or "%")
"""Of a name in Checkm: whatever else is in it, and often what looks encoded."""


def found_digests() -> st.SearchStrategy[Digest]:
    return st.sampled_from(sorted(digests.ALGORITHMS)).flatmap(
        lambda algorithm: st.text(
            "0123456789abcdef",
            min_size=digests.ALGORITHMS[algorithm],
            max_size=digests.ALGORITHMS[algorithm],
        ).map(lambda value: Digest(algorithm, value))
    )


def some_rows(part: st.SearchStrategy[str], about: st.SearchStrategy[About]) -> st.SearchStrategy[list[Row]]:
    # The number in front keeps names apart; which names meet is tested by itself.
    name = st.lists(part, min_size=1, max_size=3).map("/".join)
    row = st.builds(
        Row,
        url=st.sampled_from(["https://example.org/a%20b?c=d", "http://[::1]:8080/ü", "file:///scans/1"]),
        name=name,
        digest=st.none() | found_digests(),
        size_bytes=st.none() | st.integers(0, 2**63 - 1),
        modified=optional,
        mime_type=st.sampled_from([None, "image/tiff", "text/plain; charset=utf-8"]),
        about=about,
    )
    return st.lists(row, min_size=1, max_size=4).map(
        lambda rows: [replace(one, name=f"{at}/{one.name}") for at, one in enumerate(rows)]
    )


local_ids = st.lists(words.filter(lambda text: ";" not in text), max_size=3, unique=True).map(tuple)
abouts = st.builds(
    About, primary_id=optional, local_ids=local_ids, creator=optional, title=optional, date=optional
)


def without_lines(rows: Iterable[Row]) -> list[Row]:
    return [replace(row, line=0) for row in rows]


# --- round trips --------------------------------------------------------------------------------


def lines_of(rows: Iterable[Row], *, objects: bool) -> list[str]:
    """A writer that shares nothing with the one under test."""
    errors = []
    for row in rows:
        algorithm, value = (row.digest.algorithm, row.digest.value) if row.digest else ("", "")
        size = "" if row.size_bytes is None else row.size_bytes
        name = row.name.replace("%", "%25")
        line = f"{row.url}|{algorithm}|{value}|{size}|{row.modified or ''}|{name}"
        about = row.about
        told_of = (about.primary_id, ";".join(about.local_ids), about.creator, about.title, about.date)
        rest = told_of if objects else (row.mime_type,)
        errors.append("|".join((line, *(text or "" for text in rest))))
    return errors


@OFTEN
@given(rows=some_rows(parts, st.just(NOTHING)))
def test_rows_of_an_object_manifest_are_read_as_they_were_written(tmp_path: Path, rows: list[Row]) -> None:
    manifest = tmp_path / "m"
    manifest.write_bytes(checkm(*lines_of(rows, objects=False), fields=FILE, prefixes=[NFO, MRT]))

    assert without_lines(read(manifest)) == rows
    assert judge(manifest).problems == ()


@OFTEN
@given(rows=some_rows(parts, abouts), kind=st.sampled_from(BATCHES))
def test_rows_of_a_batch_are_read_as_they_were_written(
    tmp_path: Path, rows: list[Row], kind: PayloadKind
) -> None:
    rows = [replace(row, mime_type=None) for row in rows]
    manifest = tmp_path / "m"
    content = checkm(*lines_of(rows, objects=True), profile=f"{PROFILES}mrt-{kind}", fields=OBJECT)
    manifest.write_bytes(content)

    assert without_lines(read(manifest, kind)) == rows


@OFTEN
@given(
    rows=some_rows(on_one_line | st.text("|% 2057cC\t", min_size=1), abouts), kind=st.sampled_from(BATCHES)
)
def test_what_write_writes_is_read_as_it_was(tmp_path: Path, rows: list[Row], kind: PayloadKind) -> None:
    manifest = tmp_path / "m"
    with manifest.open("wb") as stream:
        write(rows, kind, stream)

    assert without_lines(read(manifest, kind)) == rows


@OFTEN
@given(rows=some_rows(strange, abouts), inline=some_rows(strange, st.just(NOTHING)))
def test_what_write_json_writes_is_read_as_it_was(tmp_path: Path, rows: list[Row], inline: list[Row]) -> None:
    rows = [*rows, Row(url="", name="inline", files=tuple(inline))]
    manifest = tmp_path / "m"
    with manifest.open("wb") as stream:
        write_json(rows, PayloadKind.BATCH_MANIFEST, stream)

    *urls, last = without_lines(read(manifest))

    assert urls == rows[:-1]
    assert without_lines(last.files) == inline


@OFTEN
@given(rows=some_rows(strange, abouts))
def test_write_refuses_what_would_be_read_otherwise(rows: list[Row], tmp_path: Path) -> None:
    manifest = tmp_path / "m"
    try:
        with manifest.open("wb") as stream:
            write(rows, PayloadKind.BATCH_MANIFEST, stream)
    except NotAdmitted:
        return

    assert without_lines(read(manifest)) == rows


# --- any bytes ----------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        b"#%checkm_0.7\n",
        f"#%profile | {PROFILES}mrt-ingest-manifest\n".encode(),
        f"#%profile | {PROFILES}mrt-batch-manifest\n".encode(),
        f"{MRT}\n{NFO}\n".encode(),
        f"#%fields | {FILE}\n".encode(),
        f"#%fields | {OBJECT}\n".encode(),
        b"https://example.org/a | md5 | 0 | 1 |  | a/b\n",
        b"#%eof\n",
        b'{"profile": "object-manifest"}\n',
        b'{"profile": "batch-manifest", "objects": [',
        b'{"url": "https://example.org/a", "name": "a"}\n',
        b'{"end": 1}',
        b"]}",
        b'"\\ud800"',
        b"|",
        b"#%",
        b"\xef\xbb\xbf",
        b"\r",
        b"\0",
        b"\xff",
    ]
)
rubbish = st.lists(pieces | st.binary(max_size=8), max_size=14).map(b"".join)


@OFTEN
@given(content=rubbish)
def test_any_bytes_are_read_or_not_admitted(tmp_path: Path, content: bytes) -> None:
    manifest = tmp_path / "m"
    manifest.write_bytes(content)
    refused: str | None = None

    try:
        kind = kind_of(manifest)
        assert all(isinstance(row, Row) for row in read(manifest, kind))
    except NotAdmitted as error:
        refused = str(error)
    judged = judge(manifest)

    assert refused is None or refused.isprintable()
    assert (refused is None) == (judged.problems == ())
    if judged.problems:
        assert refused == f"manifest 'm', {judged.problems[0]}"
        assert all(isinstance(p, Problem) and str(p).isprintable() for p in judged.problems)


@OFTEN
@given(
    key=st.sampled_from(["url", "name", "size", "digest", "local_ids", "title", "files"]),
    value=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists),
)
def test_any_json_in_any_place_is_read_or_not_admitted(tmp_path: Path, key: str, value: object) -> None:
    entry = {"url": "https://example.org/a", key: value}
    manifest = tmp_path / "m"
    manifest.write_text(json.dumps({"profile": "batch-manifest", "objects": [entry]}), encoding="utf-8")

    with suppress(NotAdmitted):
        assert all(isinstance(row, Row) for row in read(manifest))
    assert all(str(problem).isprintable() for problem in judge(manifest).problems)


def test_a_stream_that_is_refused_half_way_has_no_end() -> None:
    stream = io.BytesIO()
    rows = [Row(url="https://example.org/a", name="a"), Row(url="https://example.org/b", name="a\nb")]

    with pytest.raises(NotAdmitted, match="write it as JSON"):
        write(rows, PayloadKind.OBJECT_MANIFEST, stream)

    assert not stream.getvalue().endswith(b"#%eof\n")
