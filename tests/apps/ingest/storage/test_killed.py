"""A put is killed after each of its steps: readers never see half of it, and the next put makes it whole."""

import os
from pathlib import Path

import pytest

from apps.ingest.places import Bed
from apps.ingest.storage.dying import put_and_die, put_without_room
from apps.ingest.storage.judge import (
    ARK,
    at_rest,
    complaints,
    contents,
    incoming,
    is_stored,
    leftovers,
    put,
    where,
)
from long_tests import LONG
from spinney.apps.ingest.storage.layout import STAGING, staging
from spinney.host import filesystem

OLD, NEW = {"a": b"old", "b": b"kept"}, {"a": b"new", "b": b"kept", "c": b"more"}
DISK = ["claimed", "kept", "content", "built", "moved", "inventory", "sidecar", "cleared"]
S3 = ["claimed", "kept", "content", "built", "inventory", "sidecar", "swept", "cleared"]
COUNTS = {"disk": ("inventory", "sidecar", "cleared"), "s3": ("inventory", "sidecar", "swept", "cleared")}
"""The steps after which readers see the new version."""

EACH = [("disk", s) for s in DISK] + [("s3", s) for s in (S3 if LONG else ["built", "inventory"])]


@pytest.mark.parametrize(("kind", "step"), EACH)
def test_the_next_put_makes_it_whole(
    kind: str, step: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Given an object, and a put of its second version that was killed
    bed: Bed = request.getfixturevalue(kind)
    put(bed.open(), *[incoming(tmp_path, p, raw) for p, raw in OLD.items()], key="one")
    more = [incoming(tmp_path, "a", b"new", "sha512"), incoming(tmp_path, "c", b"more")]
    put_and_die(bed.open, step, *more, key="two", merge=True)
    # Then readers see a version whole
    storage = bed.open()
    assert contents(storage) == (NEW if step in COUNTS[kind] else OLD)
    # When it is put again, then it is there once, and nothing else is
    stored = put(storage, *more, key="two", merge=True, fence=2)
    assert (stored.version, stored.changed, stored.added_bytes) == (2, True, 7)
    assert contents(storage) == NEW
    assert [v.key for v in storage.versions(ARK)] == ["one", "two"]
    assert at_rest(bed.fetch())
    assert storage.verify(ARK).faults == ()


@pytest.mark.parametrize(
    ("kind", "step"), [("disk", "built"), ("disk", "moved"), ("s3", "declared")], ids=lambda value: str(value)
)
def test_a_first_version_too(kind: str, step: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    bed: Bed = request.getfixturevalue(kind)
    files = [incoming(tmp_path, p, raw) for p, raw in OLD.items()]
    bed.open()
    put_and_die(bed.open, step, *files, key="one")
    assert is_stored(bed.open()) is (step == "moved")
    put(bed.open(), *files, key="one", fence=2)
    assert contents(bed.open()) == OLD
    assert at_rest(bed.fetch())


@pytest.mark.parametrize(("kind", "step"), [("disk", "content"), ("disk", "moved"), ("s3", "built")])
def test_another_put_may_come_next(
    kind: str, step: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Given a dead put of key two
    bed: Bed = request.getfixturevalue(kind)
    put(bed.open(), *[incoming(tmp_path, p, raw) for p, raw in OLD.items()], key="one")
    put_and_die(bed.open, step, incoming(tmp_path, "c", b"more"), key="two", merge=True)
    # When key three is put
    storage = bed.open()
    put(storage, incoming(tmp_path, "d", b"other"), key="three", merge=True)
    # Then a version that had been moved in is finished before it, and what had not come so far is gone
    expected = ["one", "two", "three"] if step == "moved" else ["one", "three"]
    assert [v.key for v in storage.versions(ARK)] == expected
    assert at_rest(bed.fetch())


def test_content_that_a_dead_put_staged_is_not_copied_again(
    disk: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.open()
    file = incoming(tmp_path, "a", b"large" * 100, "sha512", "md5")
    put_and_die(disk.open, "content", file, key="one")
    value = file.sums["sha512"]
    staged = disk.fetch() / STAGING / staging(ARK) / "object/v1/content" / value
    before = staged.stat().st_ino
    whole: list[int] = []
    monkeypatch.setattr(filesystem, "is_worth_it", lambda device: True)
    monkeypatch.setattr(filesystem, "sync_whole", whole.append)
    put(disk.open(), file, key="one", fence=2)
    assert whole == [], "a failure to write it back may have been told to others since"
    assert (disk.fetch() / where() / "v1/content" / value).stat().st_ino == before
    assert at_rest(disk.fetch())


def test_content_that_a_dead_put_uploaded_does_not_go_up_again(s3: Bed, tmp_path: Path) -> None:
    s3.open()
    file = incoming(tmp_path, "a", os.urandom(9 << 20), "sha512")
    put_and_die(s3.open, "content", file, key="one")
    steps: list[str] = []
    put(s3.open(on_step=steps.append), file, key="one", fence=2)
    assert "part" not in steps
    assert at_rest(s3.fetch())


def test_a_full_disk_leaves_room_for_others(disk: Bed, tmp_path: Path) -> None:
    disk.open()
    file = incoming(tmp_path, "a", b"x" * 300_000)
    put_without_room(disk.open, 100_000, file)
    root = disk.fetch()
    assert leftovers(root) == []
    assert sorted(p.name for p in root.iterdir()) == ["0=ocfl_1.1", "extensions", "ocfl_layout.json"]
    put(disk.open(), file)
    assert complaints(root) == []
