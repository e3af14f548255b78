"""Folders and manifests: what becomes an object, what is left out, what is refused."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from spinney.apps.ingest import sources
from spinney.apps.ingest.paths import NotAdmitted
from spinney.apps.ingest.sources import Listing, Payload


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "letters" / "1907").mkdir(parents=True)
    (root / "letters" / "1907" / "p1.txt").write_text("dear")
    (root / "letters" / "index").write_text("all")
    (root / "single.txt").write_text("one")
    return root


def test_every_top_level_entry_is_one_object(source: Path) -> None:
    assert sources.read_folder(source).names == ("letters", "single.txt")


def test_an_object_lists_its_files_with_their_sizes(source: Path) -> None:
    listing = sources.list_entry(source, "letters")

    assert listing.payloads == (
        Payload(path="1907/p1.txt", source="letters/1907/p1.txt", size_bytes=4),
        Payload(path="index", source="letters/index", size_bytes=3),
    )
    assert listing.size_bytes == 7


def test_a_file_at_the_top_is_an_object_of_one_file(source: Path) -> None:
    listing = sources.list_entry(source, "single.txt")

    assert listing.payloads == (Payload(path="single.txt", source="single.txt", size_bytes=3),)


def test_links_special_files_and_empty_folders_are_left_out_with_a_note(source: Path) -> None:
    (source / "link").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    (source / "letters" / "inner").symlink_to("index")
    (source / "letters" / "empty").mkdir()

    assert [n.rpartition("/")[0] for n in sources.read_folder(source).skipped] == [
        f"symbolic link left out: {source}",
        f"special file left out: {source}",
    ]
    notes = sorted(sources.list_entry(source, "letters").skipped)
    assert notes == ["empty folder left out: empty/", f"symbolic link left out: {source}/letters/inner"]


def test_what_is_left_out_by_name_is_neither_an_object_nor_a_file(source: Path) -> None:
    (source / "__pycache__").mkdir()
    (source / "letters" / "__pycache__").mkdir()
    (source / "letters" / "__pycache__" / "x.pyc").touch()

    assert "__pycache__" not in sources.read_folder(source, ["__pycache__"]).names
    listed = [p.path for p in sources.list_entry(source, "letters", ["__pycache__"]).payloads]
    assert listed == ["1907/p1.txt", "index"]


def test_a_name_that_is_not_utf8_is_refused_by_name(source: Path) -> None:
    Path(os.fsdecode(bytes(source) + b"/caf\xe9")).touch()
    Path(os.fsdecode(bytes(source) + b"/letters/caf\xe9")).touch()

    found = sources.read_folder(source)
    assert len(found.names) == 2
    assert "caf\\udce9" in found.refused[0]
    with pytest.raises(NotAdmitted, match=r"caf\\udce9.*rename"):
        sources.list_entry(source, "letters")


def test_a_listing_survives_json(source: Path) -> None:
    (source / "letters" / "line\nbreak %0A").touch()
    listing = sources.list_entry(source, "letters")

    assert Listing.from_json(json.loads(json.dumps(listing.to_json()))) == listing


def test_a_tree_that_is_too_deep_to_remove_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep" / "/".join("d" * 202)).mkdir(parents=True)

    with pytest.raises(NotAdmitted, match="200 folders deep"):
        sources.list_entry(tmp_path, "deep")


# --- manifests


def manifest(source: Path, *lines: Any) -> Path:
    path = source.parent / "manifest.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def entry(source: Path, name: str = "single.txt", **more: Any) -> dict[str, Any]:
    return {"url": (source / name).as_uri(), **more}


def test_a_manifest_gives_objects_with_digests(source: Path) -> None:
    digest = hashlib.sha256(b"one").hexdigest()
    lines = manifest(
        source,
        {"object": "A", "files": [entry(source, path="a/b.txt", sha256=digest.upper(), size=3)]},
        "",
        {"object": "B", "files": [entry(source, "letters/index")]},
    )

    found = dict(sources.read_manifest(lines, source))

    assert found["A"].payloads == (
        Payload(path="a/b.txt", source="single.txt", size_bytes=3, digests={"sha256": digest}),
    )
    assert found["B"].payloads == (Payload(path="index", source="letters/index", size_bytes=3),)


def test_an_escaped_url_names_the_file_that_it_names(source: Path) -> None:
    (source / "100% né").write_text("x")

    line = {"object": "A", "files": [entry(source, "100% né")]}

    found = dict(sources.read_manifest(manifest(source, line), source))

    assert found["A"].payloads[0].path == "100% né"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no name"),
        ({"object": "A"}, "no files"),
        ({"object": "A", "files": []}, "no files"),
        ({"object": "../A", "files": [{"url": "SINGLE"}]}, "'/'"),
        ({"object": "A", "files": [{}]}, "no url"),
        ({"object": "A", "files": [{"url": "https://host/x"}]}, "no file on this machine"),
        ({"object": "A", "files": [{"url": "file://host/x"}]}, "no file on this machine"),
        ({"object": "A", "files": [{"url": "file:x"}]}, "no file on this machine"),
        ({"object": "A", "files": [{"url": "SINGLE?x"}]}, "%3F"),
        ({"object": "A", "files": [{"url": "file:///etc/passwd"}]}, "does not lie in"),
        ({"object": "A", "files": [{"url": "ROOT/../secret"}]}, "downward only"),
        ({"object": "A", "files": [{"url": "ROOT/out/secret"}]}, "does not lie in"),
        ({"object": "A", "files": [{"url": "ROOT/link"}]}, "symbolic link"),
        ({"object": "A", "files": [{"url": "ROOT/gone"}]}, "not there"),
        ({"object": "A", "files": [{"url": "ROOT/letters"}]}, "no regular file"),
        ({"object": "A", "files": [{"url": "SINGLE", "path": "../x"}]}, "downward only"),
        ({"object": "A", "files": [{"url": "SINGLE", "path": 1}]}, "no text"),
        ({"object": "A", "files": [{"url": "SINGLE", "size": -1}]}, "no number of bytes"),
        ({"object": "A", "files": [{"url": "SINGLE", "md5": "beef"}]}, "32 hexadecimal digits"),
        ({"object": "A", "files": [{"url": "SINGLE", "crc": "1"}]}, "unknown field 'crc'"),
        ({"object": "A", "files": [{"url": "SINGLE"}, {"url": "SINGLE"}]}, "two files go to"),
        (
            {"object": "A", "files": [{"url": "SINGLE", "path": "a"}, {"url": "SINGLE", "path": "a/b"}]},
            "a file and a folder at once",
        ),
    ],
)
def test_a_manifest_at_fault_is_refused_with_its_line(source: Path, line: Any, said: str) -> None:
    secret = source.parent / "outside"
    secret.mkdir()
    (secret / "secret").write_text("s3cret")
    (source / "out").symlink_to(secret)
    (source / "link").symlink_to("single.txt")
    text = line if isinstance(line, str) else json.dumps(line)
    text = text.replace("SINGLE", (source / "single.txt").as_uri()).replace("ROOT", source.as_uri())
    good = {"object": "first", "files": [entry(source)]}

    with pytest.raises(NotAdmitted, match=r"manifest.jsonl line 2: ") as refusal:
        list(sources.read_manifest(manifest(source, good, text), source))

    assert said in str(refusal.value)


def test_an_object_that_is_named_twice_is_refused(source: Path) -> None:
    line = {"object": "A", "files": [entry(source)]}

    with pytest.raises(NotAdmitted, match="line 2: the object 'A' is there twice"):
        list(sources.read_manifest(manifest(source, line, line), source))
