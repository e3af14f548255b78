"""Bags are whole or not there, never overwritten, and valid in the eyes of another's validator."""

import hashlib
import os
from pathlib import Path

import bagit
import pytest

from spinney.apps.ingest import bagging
from spinney.apps.ingest.bagging import Stored
from spinney.apps.ingest.paths import NotAdmitted

CONTENT = {"a.txt": b"alpha", "sub/b.bin": bytes(range(256)), "sub/empty": b""}


def working_copy(folder: Path, content: dict[str, bytes] = CONTENT) -> tuple[Path, list[Stored]]:
    payload = folder / "payload"
    for path, data in content.items():
        (payload / path).parent.mkdir(parents=True, exist_ok=True)
        (payload / path).write_bytes(data)
    payload.mkdir(exist_ok=True)
    return payload, [
        Stored(path=p, size_bytes=len(d), sha256=hashlib.sha256(d).hexdigest()) for p, d in content.items()
    ]


def place(tmp_path: Path, payload: Path, files: list[Stored], builder: str = "d.1.1") -> tuple[Path, bool]:
    archive = tmp_path / "archive"
    archive.mkdir(exist_ok=True)
    target = archive / "deposit" / "object"
    placed = bagging.place_bag(
        payload, files, target, archive=archive, builder=builder, info={"External-Identifier": "object\nX: y"}
    )
    return target, placed


def test_a_bag_is_valid_for_another_implementation(tmp_path: Path) -> None:
    bag, placed = place(tmp_path, *working_copy(tmp_path))

    assert placed
    bagit.Bag(str(bag)).validate()
    assert (bag / "data" / "sub" / "b.bin").read_bytes() == CONTENT["sub/b.bin"]
    assert "Payload-Oxum: 261.3" in (bag / "bag-info.txt").read_text()
    assert list((tmp_path / "archive" / ".building").iterdir()) == []


def test_a_value_cannot_add_a_tag(tmp_path: Path) -> None:
    bag, _ = place(tmp_path, *working_copy(tmp_path))

    assert "External-Identifier: object X: y\n" in (bag / "bag-info.txt").read_text()


@pytest.mark.parametrize(
    "name",
    ["a b", "line\nbreak", "cr\rlf\n", "100%", "a%0A", "%250D", "two  blanks", "né", "\x1b[m", "u\u2028v", "-r '\"`$"],
)
def test_odd_names_survive(tmp_path: Path, name: str) -> None:
    bag, _ = place(tmp_path, *working_copy(tmp_path, {name: b"x"}))

    assert (bag / "data" / name).read_bytes() == b"x"
    assert bagging.verify_bag(bag).faults == ()
    assert [p for p, _ in bagging.read_manifest_entries(bag / "manifest-sha256.txt")] == [f"data/{name}"]


def test_running_again_finds_its_own_bag(tmp_path: Path) -> None:
    payload, files = working_copy(tmp_path)
    bag, first = place(tmp_path, payload, files)
    inode = bag.stat().st_ino

    _, second = place(tmp_path, payload, files, builder="d.1.2")

    assert (first, second) == (True, False)
    assert bag.stat().st_ino == inode


def test_what_is_in_the_archive_is_never_overwritten(tmp_path: Path) -> None:
    bag, _ = place(tmp_path, *working_copy(tmp_path))
    other = working_copy(tmp_path / "other", {"a.txt": b"changed"})

    with pytest.raises(NotAdmitted, match="never overwritten"):
        place(tmp_path, *other, builder="d.1.2")

    assert (bag / "data" / "a.txt").read_bytes() == b"alpha"


def test_of_two_that_build_at_once_the_second_finds_the_bag_of_the_first(tmp_path: Path) -> None:
    payload, files = working_copy(tmp_path)
    archive = tmp_path / "archive"
    archive.mkdir()
    target = archive / "deposit" / "object"
    raced: list[bool] = []

    def overtake(_: int) -> None:
        if not raced:
            raced.append(True)
            place(tmp_path, payload, files, builder="d.1.2")

    placed = bagging.place_bag(
        payload, files, target, archive=archive, builder="d.1.1", info={}, between=overtake
    )

    assert not placed
    assert bagging.verify_bag(target).faults == ()
    assert list((archive / ".building").iterdir()) == []


def test_a_working_copy_that_changed_is_refused(tmp_path: Path) -> None:
    payload, files = working_copy(tmp_path)
    (payload / "a.txt").write_bytes(b"alphA")

    with pytest.raises(NotAdmitted, match=r"'a\.txt' has changed"):
        place(tmp_path, payload, files)

    assert not (tmp_path / "archive" / "deposit").exists()


def test_what_a_crash_left_half_built_is_swept(tmp_path: Path) -> None:
    building = tmp_path / "archive" / ".building"
    for name in ("d.1.1", "d.1.2", "d.12.1"):
        (building / name / "data").mkdir(parents=True)

    bagging.sweep_builders(tmp_path / "archive", "d.1.", but="d.1.2")

    assert sorted(p.name for p in building.iterdir()) == ["d.1.2", "d.12.1"]


def test_an_object_without_files_makes_a_valid_bag(tmp_path: Path) -> None:
    bag, _ = place(tmp_path, *working_copy(tmp_path, {}))

    assert bagging.verify_bag(bag).faults == ()
    assert (bag / "data").is_dir()


def test_times_are_kept(tmp_path: Path) -> None:
    payload, files = working_copy(tmp_path)
    os.utime(payload / "a.txt", ns=(1_000_000_007, 1_000_000_007))

    bag, _ = place(tmp_path, payload, files)

    assert (bag / "data" / "a.txt").stat().st_mtime_ns == 1_000_000_007


def test_verifying_names_what_is_wrong(tmp_path: Path) -> None:
    bag, _ = place(tmp_path, *working_copy(tmp_path))
    (bag / "data" / "a.txt").write_bytes(b"alphA")
    (bag / "data" / "sub" / "b.bin").unlink()
    (bag / "data" / "stray").touch()

    faults = "\n".join(bagging.verify_bag(bag).faults)

    assert "data/a.txt does not have the digest" in faults
    assert "data/sub/b.bin is missing" in faults
    assert "data/stray is in no manifest" in faults
    assert len(faults.splitlines()) == 3
