"""Looking up."""

import hashlib

import pytest

from spinney.apps.ingest.inventory import searches
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.files.paths import NotAdmitted

from .words import ARK, contents, entry, file, sha256, sums


@pytest.fixture
def filled(inventory: Inventory) -> Inventory:
    """Five objects with a file of the same name and content in each; odd ones are letters."""
    for n in range(5):
        files = {"producer/notes.txt": "the same", f"producer/page-{n}.txt": f"page {n}"}
        kind = "letters" if n % 2 else "maps"
        inventory.record(entry(f"ark:/9/{n}", files=files, collection=kind, local_ids=[f"l-{n}"]))
    return inventory


def arks(entries) -> list[str]:
    return [one.ark for one in entries]


def test_by_ark(filled: Inventory) -> None:
    (entry,) = filled.find(ark="ark:/9/3")

    assert (entry.collection, entry.owner, entry.local_ids, entry.file) == (
        "letters",
        "library",
        ["l-3"],
        None,
    )
    assert (entry.head.version, entry.head.what) == (1, "A map")
    assert filled.find(ark="ark:/9/3", collection="maps") == []
    assert filled.find(ark="ark:/9/9") == []
    assert filled.object("ark:/9/9") is None


def test_by_local_id_with_and_without_collection(inventory: Inventory) -> None:
    inventory.record(entry("ark:/9/a", collection="maps", local_ids=["1"]))
    inventory.record(entry("ark:/9/b", collection="letters", local_ids=["1"]))

    assert arks(inventory.find(local_id="1")) == ["ark:/9/a", "ark:/9/b"]
    assert arks(inventory.find(local_id="1", collection="letters")) == ["ark:/9/b"]
    assert inventory.find(local_id="1", ark="ark:/9/a", collection="letters") == []


def test_by_file_name_or_by_the_end_of_its_path(filled: Inventory) -> None:
    assert arks(filled.find(file_name="page-2.txt")) == ["ark:/9/2"]
    assert arks(filled.find(file_name="producer/page-2.txt")) == ["ark:/9/2"]
    assert filled.find(file_name="ducer/page-2.txt") == []
    assert filled.find(file_name="x/producer/page-2.txt") == []
    assert filled.find(file_name="PAGE-2.txt") == []
    assert filled.find(file_name="page-%.txt") == []
    assert arks(filled.find(file_name="notes.txt", collection="letters")) == ["ark:/9/1", "ark:/9/3"]


def test_by_a_digest_of_any_algorithm_in_any_form(inventory: Inventory) -> None:
    def of(name: str, content: str) -> str:
        return hashlib.new(name, content.encode()).hexdigest()

    for name in ("md5", "sha1", "sha256", "sha384", "sha512"):
        inventory.record(entry(f"ark:/9/{name}", files=[file("f", digests={name: of(name, "x")})]))
    for name in ("adler32", "crc32"):
        inventory.record(entry(f"ark:/9/{name}", files=[file("f", digests={name: "00790079"})]))

    for name in ("md5", "sha1", "sha256", "sha384", "sha512"):
        for form in (
            of(name, "x"),
            of(name, "x").upper(),
            f"{name}:{of(name, 'x')}",
        ):
            (matched,) = inventory.find(digest=form)
            assert (matched.ark, matched.file.file.digests) == (f"ark:/9/{name}", {name: of(name, "x")})
    assert arks(inventory.find(digest="00790079")) == ["ark:/9/adler32", "ark:/9/crc32"]
    assert arks(inventory.find(digest="crc32:00790079")) == ["ark:/9/crc32"]
    assert inventory.find(digest=sha256("y")) == []


@pytest.mark.parametrize(
    "wrong", ["", "xyz", "12" * 17, "z" * 64, "sha3:12", "sha256:12", "' or 1=1 --", "ⅷ" * 8]
)
def test_what_is_no_digest_is_told(inventory: Inventory, wrong: str) -> None:
    with pytest.raises(NotAdmitted):
        inventory.find(digest=wrong)


def test_a_file_is_told_with_the_versions_that_have_it(inventory: Inventory) -> None:
    for version, content in ((2, "old"), (3, "old"), (5, "new"), (7, "old")):
        inventory.record(entry(version=version, files={"a": content, "b": "b"}))

    versions = [(f.file.first_version, f.file.last_version) for f in inventory.find(digest=sha256("old"))]

    assert sorted(versions) == [(2, 3), (7, 7)]
    (all_along,) = inventory.find(file_name="b")
    assert (all_along.file.first_version, all_along.file.last_version, all_along.head.version) == (2, 7, 7)


@pytest.mark.parametrize(
    ("criteria", "hits"),
    [
        ({}, 5),
        ({"collection": "maps"}, 3),
        ({"file_name": "notes.txt"}, 5),
        ({"digest": sha256("the same")}, 5),
    ],
    ids=str,
)
def test_pages_give_each_hit_once(filled: Inventory, criteria, hits: int) -> None:
    seen: list[str] = []
    after = None
    while page := filled.find(**criteria, limit=2, after=after):
        assert len(page) <= 2
        seen += arks(page)
        after = page[-1].place

    assert len(seen) == len(set(seen)) == hits
    assert seen == sorted(seen)


def test_files_of_one_object_are_paged_too(inventory: Inventory) -> None:
    inventory.record(entry(files={f"{n}/same": "s" for n in range(5)}))

    first = inventory.find(file_name="same", limit=3)
    rest = inventory.find(file_name="same", limit=3, after=first[-1].place)

    assert sorted(f.file.file.path for f in first + rest) == [f"{n}/same" for n in range(5)]


@pytest.mark.parametrize("after", ["", "x", "1.2.3", "-1", "1; drop table inv_objects", "9" * 40, "١"])
def test_what_is_no_place_is_told(inventory: Inventory, after: str) -> None:
    with pytest.raises(NotAdmitted, match="place"):
        inventory.find(after=after)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_is_bounded(inventory: Inventory, limit: int) -> None:
    with pytest.raises(NotAdmitted, match="1 to 1000"):
        inventory.find(limit=limit)


def test_text_that_no_row_can_have_is_told(inventory: Inventory) -> None:
    for criteria in ({"ark": "a\0"}, {"local_id": "\udcff"}, {"file_name": "x\0y"}, {"collection": "\0"}):
        with pytest.raises(NotAdmitted):
            inventory.find(**criteria)


def test_a_batch_gives_what_it_brought_page_after_page(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "PAGE_MAX", 2)
    for n in range(5):
        inventory.record(entry(f"ark:/9/{n}", local_ids=[f"l-{n}"]))
    inventory.record(entry("ark:/9/0", version=2, files={"new": ""}))
    inventory.record(entry("ark:/9/1", version=2, batch_id="bid-2"))

    brought = list(inventory.batch_entries("bid-1"))

    assert sorted((r.ark, r.version.version) for r in brought) == [
        ("ark:/9/0", 1),
        ("ark:/9/0", 2),
        ("ark:/9/1", 1),
        ("ark:/9/2", 1),
        ("ark:/9/3", 1),
        ("ark:/9/4", 1),
    ]
    assert {tuple(r.local_ids) for r in brought} == {(f"l-{n}",) for n in range(5)}
    assert list(inventory.batch_entries("bid-9")) == []


def test_what_lies_below_a_folder_is_counted_apart_in_each_version(inventory: Inventory) -> None:
    inventory.record(
        entry(files={"producer/a": "", "system": "", "system/a": "", "system0/a": "", "a/system/b": ""})
    )
    inventory.record(entry(version=2, files={"producer/a": "", "system/a": "", "system/b/c": ""}))

    numbers = [(r.version.files, r.apart_files) for r in inventory.batch_entries("bid-1", apart="system")]

    assert numbers == [(5, 1), (3, 2)]
    assert {(r.apart_files, r.apart_bytes) for r in inventory.batch_entries("bid-1")} == {(0, 0)}


def test_files_are_those_of_the_moment_when_they_were_asked_for(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "PAGE_MAX", 2)
    old = {f"f{n}": "old" for n in range(9)}
    inventory.record(entry(version=2, files=old))
    reading = inventory.files(ARK, 2)
    seen = [next(reading).path]

    inventory.record(entry(version=1, files={"f8": "new"}))
    inventory.record(entry(version=3, files={"f5": "new"}))

    assert seen + [rest.path for rest in reading] == sorted(old)
    assert contents(inventory, 3) == sums(f5="new")


def test_files_of_a_version_that_is_not_there_are_refused(inventory: Inventory) -> None:
    inventory.record(entry(version=2))

    for ark, version in ((ARK, 1), (ARK, 3), ("ark:/9/none", 1)):
        with pytest.raises(NotAdmitted, match=f"version {version} of {ark} is not in the inventory"):
            next(inventory.files(ark, version))
