"""Entering versions of objects."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from long_tests import LONG
from spinney.apps.ingest.inventory import LocalIdTaken
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.files.paths import NotAdmitted

from .words import ARK, NOON, contents, count, entry, file, sha256, sums


def test_what_was_recorded_is_there(inventory: Inventory) -> None:
    digests = {"SHA-256": sha256("map").upper(), "crc32": "9c8e4b2f", "md5": "0" * 32}
    files = [file("a/map.tif", "map", digests=digests), file("z", "", mime_type=None, digests={})]

    inventory.record(entry(files=files, local_ids=["m-2", "m-1"]))

    record = inventory.object(ARK)
    assert record is not None
    assert (record.collection, record.owner, record.local_ids) == ("maps", "library", ["m-1", "m-2"])
    (version,) = record.versions
    assert (version.version, version.batch_id, version.job_id, version.submitter) == (
        1,
        "bid-1",
        "jid-1",
        "ann",
    )
    assert (version.who, version.what, version.when, version.storage) == ("Ortelius", "A map", "1570", "main")
    assert (version.created, version.files, version.size_bytes) == (NOON, 2, 3)
    map_, empty = inventory.files(ARK, 1)
    assert (map_.path, map_.size_bytes, map_.mime_type) == ("a/map.tif", 3, "text/plain")
    assert map_.digests == {"crc32": "9c8e4b2f", "md5": "0" * 32, "sha256": sha256("map")}
    assert (empty.path, empty.mime_type, empty.digests) == ("z", None, {})


def test_the_same_entry_twice_is_there_once(inventory: Inventory) -> None:
    inventory.record(entry(local_ids=["m-1"]))

    inventory.record(entry(local_ids=["m-1"], created=NOON + timedelta(seconds=9)))

    assert [count(inventory, table) for table in ("inv_objects", "inv_versions", "inv_files")] == [1, 1, 1]
    assert inventory.object(ARK).versions[0].created == NOON


@pytest.mark.parametrize("other", [{"mime_type": "image/tiff"}, {"modified": "2026-02-02"}])
def test_a_repetition_with_another_type_or_date_of_a_file_keeps_the_first(
    inventory: Inventory, other: dict[str, str]
) -> None:
    first = file("map.tif", "map", mime_type="text/plain", modified="2026-01-01")
    inventory.record(entry(files=[first]))

    inventory.record(entry(files=[replace(first, **other)]))

    (kept,) = inventory.files(ARK, 1)
    assert (kept.mime_type, kept.modified) == ("text/plain", "2026-01-01")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"files": {"map.tif": "another"}}, "another 'map.tif'"),
        ({"files": {"map.tif": "map", "more": ""}}, "another 'more'"),
        ({"job_id": "jid-9"}, "another job: 'jid-1'"),
        ({"batch_id": "bid-9"}, "another batch: 'bid-1'"),
        ({"what": None}, "another what: 'A map'"),
        ({"storage": "other"}, "another storage: 'main'"),
    ],
)
def test_a_version_that_is_there_with_other_content_is_refused(
    inventory: Inventory, other, named: str
) -> None:
    inventory.record(entry())

    with pytest.raises(NotAdmitted, match=f"version 1 of {ARK} is in the inventory with {named}"):
        inventory.record(entry(**other))

    assert contents(inventory) == {"map.tif": sha256("map")}


@pytest.mark.parametrize(
    ("other", "named"), [({"collection": "x"}, "collection 'maps'"), ({"owner": "x"}, "owner")]
)
def test_an_object_stays_in_its_collection(inventory: Inventory, other, named: str) -> None:
    inventory.record(entry())

    with pytest.raises(NotAdmitted, match=named):
        inventory.record(entry(version=2, **other))

    assert len(inventory.object(ARK).versions) == 1


def test_versions_may_come_in_any_order(inventory: Inventory) -> None:
    had = {
        1: {"a": "1", "b": "1"},
        2: {"a": "1", "b": "2"},
        3: {"a": "1"},
        5: {"a": "1", "b": "1", "c": "1"},
        8: {"a": "2", "b": "1", "c": "1"},
    }
    for version in random.Random(5).sample(sorted(had), len(had)):
        inventory.record(entry(version=version, files=had[version]))

    for version, files in had.items():
        assert contents(inventory, version) == sums(**files)
        inventory.record(entry(version=version, files=files))
    assert [v.version for v in inventory.object(ARK).versions] == sorted(had)
    assert inventory.find(ark=ARK)[0].head.version == 8
    # a twice, b three times, c once
    assert count(inventory, "inv_files") == 6


def test_a_version_takes_rows_for_what_differs_alone(inventory: Inventory) -> None:
    versions, files = (1000, 1000) if LONG else (30, 100)
    now = {f"f{n:03}": "" for n in range(files)}

    for version in range(1, versions + 1):
        now[f"f{version % files:03}"] = f"of version {version}"
        inventory.record(entry(version=version, files=now))

    assert count(inventory, "inv_files") == files + versions - 1
    assert contents(inventory, versions) == sums(**now)
    assert contents(inventory, 2)["f001"] == sha256("of version 1")
    assert contents(inventory, 2)["f003"] == sha256("")


def test_a_local_id_of_another_object_leaves_nothing_recorded(inventory: Inventory) -> None:
    inventory.record(entry(local_ids=["m-1"]))

    with pytest.raises(LocalIdTaken, match=f"'m-1' of collection 'maps' belongs to {ARK}"):
        inventory.record(entry("ark:/99999/other", local_ids=["m-0", "m-1"]))

    assert inventory.object("ark:/99999/other") is None
    assert inventory.ark_of("maps", "m-0") is None


def test_times_are_kept_whatever_their_zone(inventory: Inventory) -> None:
    there = datetime(1969, 7, 20, 16, 17, 40, 1, tzinfo=timezone(timedelta(hours=-4)))

    inventory.record(entry(created=there))

    assert inventory.object(ARK).versions[0].created == there.astimezone(UTC)
    with pytest.raises(ValueError, match="time zone"):
        inventory.record(entry(version=2, created=datetime(2024, 1, 1)))


@pytest.mark.parametrize(
    "other",
    [
        {"files": [file("../../etc/passwd")]},
        {"files": [file("/etc/passwd")]},
        {"files": [file("a//b")]},
        {"files": [file("a\0b")]},
        {"files": [file("caf\udce9")]},
        {"files": [file("a"), file("a")]},
        {"files": [file("a", digests={"sha256": "12"})]},
        {"files": [file("a", digests={"sha-3": "12"})]},
        {"files": [file("a", digests={"sha256": sha256("a"), "SHA-256": sha256("b")})]},
        {"files": [file("a", digests={"md5": "'; drop table inv_files; --"})]},
        {"files": [file("a", mime_type="t" * 300)]},
        {"version": 0},
        {"version": 2**31 - 1},
        {"collection": ""},
        {"owner": "o" * 256},
        {"who": "\0"},
        {"what": "\udcff"},
        {"batch_id": "1"},
        {"job_id": "jid-\n"},
        {"local_ids": [""]},
        {"local_ids": ["x" * 1001]},
    ],
    ids=lambda other: ascii(other)[:60],
)
def test_what_no_database_should_see_does_not_enter(inventory: Inventory, other) -> None:
    with pytest.raises(NotAdmitted) as refused:
        inventory.record(entry(**other))

    assert str(refused.value).isprintable()
    assert count(inventory, "inv_objects") == 0


def test_sizes_that_no_number_holds_do_not_enter(inventory: Inventory) -> None:
    with pytest.raises(NotAdmitted, match=f"'b' cannot have {2**62} bytes"):
        inventory.record(entry(files=[file(name, size_bytes=2**62) for name in "ab"]))
    with pytest.raises(NotAdmitted, match="'a' cannot have -1 bytes"):
        inventory.record(entry(files=[file("a", size_bytes=-1)]))


@pytest.mark.parametrize("name", ["a'; drop table inv_files; --", "%_\\", "a\nb", "ИМЯ/é", "A", "x" * 255])
def test_any_other_name_survives(inventory: Inventory, name: str) -> None:
    inventory.record(entry(files={name: "x"}, local_ids=[name], what=name))

    assert list(contents(inventory)) == [name]
    assert inventory.ark_of("maps", name) == ARK
    assert [result.file.file.path for result in inventory.find(file_name=name)] == [name]
    assert inventory.find(file_name=name.swapcase()) == [] or name == name.swapcase()


def test_files_that_grow_into_many_are_recorded_and_read_in_order_of_path(inventory: Inventory) -> None:
    many = {f"d{n % 7}/f{n}": "" for n in range(2500)}

    inventory.record(entry(files=many))

    assert [file.path for file in inventory.files(ARK, 1)] == sorted(many)
