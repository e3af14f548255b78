"""A manifest of any length is read in the memory of a row, and what is written is a whole manifest."""

import io
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import BinaryIO

import pytest

from apps.ingest.manifests.texts import URL, put
from long_tests import LONG
from spinney.apps.ingest.manifests import NOTHING, About, PayloadKind, Row, judge, read, write, write_json
from spinney.files.paths import NotAdmitted

Writer = Callable[[Iterable[Row], PayloadKind, BinaryIO], None]
WRITERS = pytest.mark.parametrize("writer", [write, write_json])
ROWS = 1_000_000 if LONG else 1_500


@WRITERS
def test_objects_take_no_memory_once_they_are_read(tmp_path: Path, writer: Writer) -> None:
    # Given a batch manifest of more than two megabytes
    manifest = tmp_path / "m"
    rows = (Row(url=f"https://example.org/{n:01500}", name="p.tif", size_bytes=n) for n in range(ROWS))
    with manifest.open("wb") as stream:
        writer(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    assert manifest.stat().st_size > 2_000_000

    tracemalloc.start()
    try:
        assert sum(1 for _ in read(manifest)) == ROWS
        assert judge(manifest).rows == ROWS
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # Then there was the buffer, and not the manifest
    assert peak_bytes < 1_000_000


def test_an_endless_line_takes_no_memory(tmp_path: Path) -> None:
    # Given a sparse file whose second line has 64 MB
    manifest = put(tmp_path, b"#%checkm_0.7\n#")
    with manifest.open("r+b") as file:
        file.truncate(64 << 20)

    tracemalloc.start()
    try:
        judgement = judge(manifest)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [problem.line for problem in judgement.problems] == [2, 2]
    assert peak_bytes < 1_000_000


def test_rows_are_written_as_they_come() -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            written = super().write(data)  # type: ignore[arg-type]
            if self.tell() > 10_000:
                raise OSError("no space left")
            return written

    endless = (Row(url=URL, name=f"{n}") for n in count())
    for writer in (write, write_json):
        with pytest.raises(OSError, match="no space left"):
            writer(endless, PayloadKind.OBJECT_MANIFEST, Full())


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (Row(url=URL, name="a", modified="a|b"), r"'a\|b' has a '\|'"),
        (Row(url=URL, name="a\nb"), r"'a\\nb' has a"),
        (Row(url=URL, name="a", modified=" a"), "blank at an end"),
        (Row(url=URL, name="../a"), "go downward only"),
        (Row(url="", name="a"), "no URL"),
        (Row(url="https://user:pw@example.org/a", name="a"), "user name or password"),
        (Row(url="", name="a", files=(Row(url=URL, name="b"),)), "files in place of a URL"),
        (Row(url=URL, name="a", about=About(title="x")), "description of an object"),
    ],
)
def test_write_refuses_a_row_that_checkm_cannot_tell(row: Row, says: str) -> None:
    with pytest.raises(NotAdmitted, match=says):
        write([row], PayloadKind.OBJECT_MANIFEST, io.BytesIO())


@pytest.mark.parametrize("ids", [("a;b",), (" a",), ("a", "a"), ("",)])
def test_write_refuses_local_ids_that_would_be_read_otherwise(ids: tuple[str, ...]) -> None:
    row = Row(url=URL, name="a", about=About(local_ids=ids))

    with pytest.raises(NotAdmitted, match="local ids of 'a'"):
        write([row], PayloadKind.BATCH_MANIFEST, io.BytesIO())


@WRITERS
@pytest.mark.parametrize("kind", [PayloadKind.FILE, PayloadKind.CONTAINER])
def test_what_is_no_manifest_is_not_written(kind: PayloadKind, writer: Writer) -> None:
    with pytest.raises(NotAdmitted, match=f"kind {kind} is no manifest"):
        writer([Row(url=URL, name="a", about=NOTHING)], kind, io.BytesIO())
