"""Pieces of files for somebody elsewhere: only what lies in the job's folder, whatever is asked for."""

import os
import resource
from pathlib import Path

import pytest

from deep_folders import LEVELS, deep_folder
from spinney.folders import folder_reader, folders
from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, DirectoryEntry, Fetch, FetchResult

JOB = 1270


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root; job 1270's folder has a file in a folder, and all that might lead out of it."""
    root = tmp_path / "root"
    root.mkdir()
    folders.write_token(root, "token")
    folder = folders.make(root, JOB)
    (tmp_path / "secret").write_text("secret")
    (folder / "in").mkdir()
    (folder / "in" / "file").write_bytes(b"0123456789")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "way").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    other = folders.make(root, 4)
    (other / "theirs").write_text("secret")
    return root


def ask(root: Path, path: str, start: int = 0, length: int = 100, job: int = JOB) -> FetchResult:
    return folder_reader.read(root, Fetch(1, job, path, start, length))


def test_a_file_is_read_in_pieces(place: Path) -> None:
    assert ask(place, "in/file").data == b"0123456789"
    assert ask(place, "in/file", start=4, length=3).data == b"456"
    assert ask(place, "in/file", start=10).data == b""
    assert ask(place, "in/file", start=-3, length=2).data == b"01"
    (folders.path(place, JOB) / "big").write_bytes(b"x" * 2 * PIECE_BYTES)
    assert len(ask(place, "big", length=10**9).data or b"") == PIECE_BYTES


def test_names_come_in_their_order_with_what_they_are(place: Path) -> None:
    reply = ask(place, "", length=0)
    assert [(e.name, e.kind) for e in reply.names or ()] == [
        ("in", "folder"),
        ("link", "other"),
        ("pipe", "other"),
        ("way", "other"),
    ]
    assert ask(place, "in", length=0).names == (DirectoryEntry("file", "file", 10),)


def test_many_names_come_in_pages_and_none_twice(place: Path) -> None:
    crowd = folders.path(place, JOB) / "crowd"
    crowd.mkdir()
    for n in range(NAMES_MOST + 3):
        (crowd / f"{n:04d}").touch()
    first, second = (ask(place, "crowd", start=s, length=0).names or () for s in (0, NAMES_MOST))
    assert (len(first), [e.name for e in second]) == (NAMES_MOST, ["0500", "0501", "0502"])


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../../../../secret",
        "in/../../x",
        "/etc/passwd",
        "in//file",
        "./in",
        "in/",
        "a\0b",
        "../000000000004/theirs",
    ],
)
def test_no_path_leads_out_of_the_folder(place: Path, path: str) -> None:
    assert ask(place, path) == FetchResult(error="is no path within a job's folder")


@pytest.mark.parametrize("path", ["link", "way/secret", "way"])
def test_no_link_is_followed(place: Path, path: str) -> None:
    for length in (0, 100):
        reply = ask(place, path, length=length)
        assert reply.data is reply.names is None
        assert reply.error


def test_a_folder_that_is_a_link_itself_is_not_followed(place: Path) -> None:
    folders.path(place, 1271).symlink_to(place.parent)
    assert ask(place, "secret", job=1271).data is None
    assert ask(place, "secret", job=1271).error


def test_what_is_no_file_is_not_waited_for(place: Path) -> None:
    assert ask(place, "pipe").error == "is no plain file"
    assert ask(place, "in").error == "is no plain file"
    assert ask(place, "in/file", length=0).error == "is no folder"
    assert ask(place, "in/file/below").error
    assert ask(place, "nothing").error == MISSING
    assert ask(place, "", length=0, job=77).error == MISSING
    assert ask(place, "n" * 5000).error


def test_a_deep_path_takes_no_more_open_files_than_a_short_one(place: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with deep_folder(folders.make(place, JOB)):
        try:
            highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, limits[1]))
            names = ask(place, "/".join("a" * LEVELS), length=0).names
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert names is not None
    assert [entry.name for entry in names] == ["file"]


def test_a_name_that_is_no_text_is_told(place: Path) -> None:
    folder = os.fsencode(folders.path(place, JOB) / "in")
    Path(os.fsdecode(folder + b"/\xff\xfe")).write_text("x")
    names = ask(place, "in", length=0).names or ()
    assert [e.name for e in names] == ["file", "\\xff\\xfe"]
