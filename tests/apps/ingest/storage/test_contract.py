"""What every storage keeps, on a file system as in S3; the judge is ocfl-py."""

import hashlib
import os
from pathlib import Path
from urllib.request import urlopen

import pytest

from apps.ingest.places import Bed
from apps.ingest.storage.judge import (
    ARK,
    WHEN,
    at_rest,
    complaints,
    contents,
    incoming,
    is_stored,
    leftovers,
    put,
    where,
)
from long_tests import long_alone
from spinney.apps.ingest.storage import Incoming, Late, NoSuchObject
from spinney.apps.ingest.storage.layout import STAGING, staging
from spinney.files.paths import NotAdmitted


def test_a_first_version(bed: Bed, tmp_path: Path) -> None:
    # Given an empty place and two files
    storage = bed.open()
    files = [incoming(tmp_path, "a.txt", b"one", "md5"), incoming(tmp_path, "deep/b.txt", b"two")]
    assert not is_stored(storage)
    # When they are put
    stored = put(storage, *files)
    # Then there is a version, it is what went in, and it is lawful OCFL
    assert (stored.version, stored.changed, stored.files, stored.added_bytes) == (1, True, 2, 6)
    assert is_stored(storage)
    assert contents(storage) == {"a.txt": b"one", "deep/b.txt": b"two"}
    assert at_rest(bed.fetch())
    (version,) = storage.versions(ARK)
    assert (version.number, version.created, version.message) == (1, WHEN, "A deposit")
    assert (version.user, version.key, version.files) == ("Ada Lovelace", "jid-1", 2)


def test_what_is_no_file_yet_is_stored_by_its_content(either: Bed) -> None:
    storage = either.open()
    with pytest.raises(NotAdmitted, match="should have 9 bytes and has 3"):
        put(storage, Incoming(path="a.txt", source=b"one", size_bytes=9))
    with pytest.raises(NotAdmitted, match="the md5 of"):
        put(storage, Incoming(path="a.txt", source=b"one", size_bytes=3, sums={"md5": "0" * 32}))
    put(storage, Incoming(path="a.txt", source=b"one", size_bytes=3))
    assert contents(storage) == {"a.txt": b"one"}
    assert at_rest(either.fetch())


def test_digests_given_and_computed_are_on_record(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    algorithms = ("md5", "sha1", "sha256", "sha384", "crc32")
    raw = b"known by many names"
    file = incoming(tmp_path, "a", raw, *algorithms[:4], crc32="fec48e3e")
    with pytest.raises(NotAdmitted, match="crc32 of 'a' should be fec48e3e"):
        put(storage, file)
    put(storage, incoming(tmp_path, "a", raw, *algorithms[:4]))
    (stored,) = storage.files(ARK)
    # sha384 has been compared, but a fixity block may not have it
    expected = {a: hashlib.new(a, raw).hexdigest() for a in ("sha512", "md5", "sha1", "sha256")}
    assert stored.sums == expected
    assert (stored.digest.algorithm, stored.digest.value) == ("sha512", expected["sha512"])
    assert at_rest(either.fetch())


@pytest.mark.parametrize(
    "algorithms", [("sha512",), pytest.param((), marks=long_alone)], ids=["known", "hashed"]
)
def test_versions_replace_or_are_laid_over(bed: Bed, tmp_path: Path, algorithms: tuple[str, ...]) -> None:
    storage = bed.open()
    put(
        storage,
        incoming(tmp_path, "a", b"1", *algorithms),
        incoming(tmp_path, "b", b"2", *algorithms),
        key="one",
    )
    # When two more are put: one over the newest version, one in place of it
    laid = put(
        storage,
        incoming(tmp_path, "b", b"3", *algorithms),
        incoming(tmp_path, "c", b"1", *algorithms),
        key="two",
        merge=True,
    )
    alone = put(storage, incoming(tmp_path, "z", b"2", *algorithms), key="three")
    # Then each version is as it was, and no content is kept twice
    assert (laid.version, laid.files, laid.added_bytes) == (2, 3, 1)
    assert (alone.version, alone.files, alone.added_bytes) == (3, 1, 0)
    assert contents(storage, 1) == {"a": b"1", "b": b"2"}
    assert contents(storage, 2) == {"a": b"1", "b": b"3", "c": b"1"}
    assert contents(storage) == {"z": b"2"}
    root = bed.fetch()
    assert len(list(root.glob("**/content/*"))) == 3
    assert at_rest(root)


def test_other_programs_find_a_content_by_its_url(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    put(storage, incoming(tmp_path, "a b%.txt", b"one"))
    (file,) = storage.files(ARK)
    either.open_to_all()
    with urlopen(storage.url(ARK, file)) as content:
        assert content.read() == b"one"


def test_the_same_content_twice_in_one_put_is_kept_once(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    stored = put(
        storage,
        incoming(tmp_path, "a", b"same"),
        incoming(tmp_path, "b", b"same", "sha512", "md5"),
        incoming(tmp_path, "c", b"same", "sha512"),
        incoming(tmp_path, "d", b"same"),
    )
    assert (stored.files, stored.added_bytes) == (4, 4)
    assert at_rest(either.fetch())


def test_the_same_key_answers_the_version_it_made(bed: Bed, tmp_path: Path) -> None:
    storage = bed.open()
    first = put(storage, incoming(tmp_path, "a", b"1"), key="one")
    put(storage, incoming(tmp_path, "a", b"2"), key="two")
    # When the first is asked for once more, by a later attempt, even with other files
    again = put(storage, incoming(tmp_path, "a", b"other"), key="one", fence=2)
    # Then it has made its version already, and nothing is written
    assert again == first
    assert [v.key for v in storage.versions(ARK)] == ["one", "two"]
    for version in storage.versions(ARK):
        described, files = storage.version(ARK, version.number)
        assert (described, list(files)) == (version, list(storage.files(ARK, version.number)))
    with pytest.raises(NoSuchObject, match="versions 1 to 2 and no version 3"):
        storage.version(ARK, 3)
    assert contents(storage) == {"a": b"2"}


def test_a_state_that_is_the_newest_makes_no_version(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    put(storage, incoming(tmp_path, "a", b"1"), incoming(tmp_path, "b", b"2"), key="one")
    for number, (merge, files) in enumerate([(True, ["a"]), (True, []), (False, ["a", "b"])]):
        raw = {"a": b"1", "b": b"2"}
        stored = put(storage, *[incoming(tmp_path, f, raw[f]) for f in files], key=f"k{number}", merge=merge)
        assert (stored.version, stored.changed, stored.files, stored.added_bytes) == (1, False, 2, 0)
    assert at_rest(either.fetch())


def test_sha256_addresses_new_objects_only(either: Bed, tmp_path: Path) -> None:
    put(either.open(), incoming(tmp_path, "a", b"1"), key="one")
    storage = either.open(algorithm="sha256")
    put(storage, incoming(tmp_path, "b", b"2"), key="two", merge=True)
    put(storage, incoming(tmp_path, "b", b"2"), object_id="ark:/99999/fk4other")
    assert {f.digest.algorithm for f in storage.files(ARK)} == {"sha512"}
    assert {f.digest.algorithm for f in storage.files("ark:/99999/fk4other")} == {"sha256"}
    errors = complaints(either.fetch())
    assert all("W004" in t and "E0" not in t for t in errors)  # sha512 is what OCFL would rather have


@pytest.mark.parametrize(
    ("raw", "sums", "message"),
    [
        (b"true", {"md5": "0" * 32}, "the md5 of 'a' should be 0000"),
        (b"true", {"sha512": "0" * 128}, "the sha512 of 'a' should be 0000"),
        (b"true", {"md5": "beef"}, "is no md5 value"),
        (b"true", {"whirlpool": "beef"}, "is no digest algorithm"),
    ],
)
def test_a_file_that_is_not_what_was_promised_is_refused(
    disk: Bed, tmp_path: Path, raw: bytes, sums: dict[str, str], message: str
) -> None:
    with pytest.raises(NotAdmitted, match=message):
        put(disk.open(), incoming(tmp_path, "a", raw, **sums))


def test_a_refused_put_leaves_nothing(bed: Bed, tmp_path: Path) -> None:
    storage = bed.open()
    with pytest.raises(NotAdmitted):
        put(storage, incoming(tmp_path, "good", b"good"), incoming(tmp_path, "a", b"true", md5="0" * 32))
    assert not is_stored(storage)
    root = bed.fetch()
    assert leftovers(root) == []
    assert list(root.glob("**/content/*")) == []


def test_what_the_object_has_already_is_still_held_to_its_size_and_its_other_digests(
    either: Bed, tmp_path: Path
) -> None:
    storage = either.open()
    put(storage, incoming(tmp_path, "a", b"1", "md5"), key="one")
    short = incoming(tmp_path, "b", b"1", "sha512")
    short = Incoming(path=short.path, source=short.source, size_bytes=9, sums=short.sums)
    with pytest.raises(NotAdmitted, match="should have 9 bytes and has 1"):
        put(storage, short, key="two")
    with pytest.raises(NotAdmitted, match="the md5 of 'b'"):
        put(storage, incoming(tmp_path, "b", b"1", "sha512", md5="0" * 32), key="two")
    with pytest.raises(NotAdmitted, match="is not there"):
        put(storage, Incoming(path="b", source=tmp_path / "gone", size_bytes=1, sums=short.sums), key="two")
    assert [v.key for v in storage.versions(ARK)] == ["one"]


@pytest.mark.parametrize(
    "path",
    ["../../../escaped", "/etc/passwd", "a/../b", "a//b", "", ".", "nul\0", "not-utf8-\udcff", "x" * 256],
)
def test_hostile_paths_are_refused(disk: Bed, tmp_path: Path, path: str) -> None:
    source = incoming(tmp_path / "in", "plain", b"1")
    hostile = Incoming(path=path, source=source.source, size_bytes=1)
    with pytest.raises(NotAdmitted):
        put(disk.open(), hostile)
    assert not (tmp_path / "escaped").exists()
    assert leftovers(disk.fetch()) == []


def test_names_that_a_file_system_could_not_tell_apart_or_hold(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    names = [
        "A",
        "a",
        "n\u0303",
        "\u00f1",
        "new\nline",
        "CON",
        "a:b?*|",
        " ",
        "d/" * 60 + "x" * 200,
        "inventory.json",
    ]
    put(storage, *[incoming(tmp_path, n, n.encode()) for n in names])
    assert contents(storage) == {n: n.encode() for n in names}
    assert at_rest(either.fetch())


@pytest.mark.parametrize("merge", [False, True])
def test_a_file_and_a_folder_of_one_name(disk: Bed, tmp_path: Path, merge: bool) -> None:
    storage = disk.open()
    put(storage, incoming(tmp_path, "a", b"1"), key="one")
    files = [incoming(tmp_path, "a/b/c", b"2")]
    if not merge:
        files.append(incoming(tmp_path, "a/b", b"3"))
    with pytest.raises(NotAdmitted, match="takes it for a folder"):
        put(storage, *files, key="two", merge=merge)


def test_a_source_that_is_a_link_or_a_pipe_is_not_followed(disk: Bed, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(NotAdmitted):
            put(disk.open(), Incoming(path="a", source=tmp_path / name, size_bytes=1))


@pytest.mark.parametrize("object_id", ["", " ark:/1/2", "ark:/1/2\n", "ark:\udcff", "x" * 5000])
def test_what_is_no_id(disk: Bed, tmp_path: Path, object_id: str) -> None:
    with pytest.raises(NotAdmitted):
        put(disk.open(), incoming(tmp_path, "a", b"1"), object_id=object_id)


@pytest.mark.parametrize("key", ["", "two\nlines", " x", "k" * 201])
def test_what_is_no_key(disk: Bed, tmp_path: Path, key: str) -> None:
    with pytest.raises(NotAdmitted, match="cannot be a put's key"):
        put(disk.open(), incoming(tmp_path, "a", b"1"), key=key)


def test_a_message_cannot_pretend_to_be_a_key(disk: Bed, tmp_path: Path) -> None:
    storage = disk.open()
    storage.put(
        ARK,
        [incoming(tmp_path, "a", b"1")],
        key="true",
        message="x\n\nSpinney-Key: forged",
        user="",
        created=WHEN,
        merge=False,
        fence=1,
    )
    (version,) = storage.versions(ARK)
    assert (version.key, version.message, version.user) == ("true", "x\n\nSpinney-Key: forged", "unknown")


def test_an_object_without_files_and_what_is_not_there(bed: Bed, tmp_path: Path) -> None:
    storage = bed.open()
    with pytest.raises(NotAdmitted, match="no file at all"):
        put(storage)
    for ask in (storage.versions, lambda i: list(storage.files(i))):
        with pytest.raises(NoSuchObject, match="is stored here"):
            ask(ARK)
    (fault,) = storage.verify(ARK).faults
    assert "is stored here" in fault
    put(storage, incoming(tmp_path, "a", b"1"))
    with pytest.raises(NoSuchObject, match="no version 2"):
        list(storage.files(ARK, 2))
    with storage.opened(ARK, next(storage.files(ARK, 1))) as file:
        assert file.read() == b"1"


def test_a_lower_fence_of_the_same_key_is_refused_while_the_higher_one_writes(
    bed: Bed, tmp_path: Path
) -> None:
    # Given attempt 7 that breaks off as if it had died, its claim standing
    class Died(BaseException):
        pass

    def die(step: str) -> None:
        if step == "content":
            raise Died

    if bed.kind == "disk":  # a raised error cleans up there; what a death leaves is shown in test_killed
        bed.open()
        bed.overwrite(f"{STAGING}/{staging(ARK)}/claim.json", b'{"key": "jid-1", "fence": 7}')
    else:
        with pytest.raises(Died):
            put(bed.open(on_step=die), incoming(tmp_path, "a", b"new"), fence=7)
    # When attempt 6 comes late, then it is refused; another key or a later attempt is not
    with pytest.raises(Late, match="attempt 7 has begun"):
        put(bed.open(), incoming(tmp_path, "a", b"old"), fence=6)
    assert not is_stored(bed.open())
    put(bed.open(), incoming(tmp_path, "a", b"new"), fence=8)
    put(bed.open(), incoming(tmp_path, "b", b"more"), fence=2, key="jid-2")
    assert contents(bed.open()) == {"b": b"more"}
    assert at_rest(bed.fetch())


def test_verify_reads_everything_and_finds_each_kind_of_damage(bed: Bed, tmp_path: Path) -> None:
    storage = bed.open()
    put(storage, incoming(tmp_path, "a", b"12345", "md5"), incoming(tmp_path, "b", b"67"), key="one")
    put(storage, incoming(tmp_path, "c", b"89"), key="two", merge=True)
    read: list[int] = []
    sound = storage.verify(ARK, read.append)
    assert (sound.files, sound.bytes, sound.faults, sum(read)) == (3, 9, (), 9)
    # When one content is changed, one is gone, one is astray, an old inventory is touched, and no file says what it is
    root, paths = where(), {f.path: f.content_path for f in storage.files(ARK)}
    bed.overwrite(f"{root}/{paths['a']}", b"12346")
    bed.overwrite(f"{root}/{paths['b']}", None)
    bed.overwrite(f"{root}/v1/content/astray", b"!")
    bed.overwrite(f"{root}/v1/inventory.json.sha512", b"0 inventory.json\n")
    bed.overwrite(f"{root}/0=ocfl_object_1.1", None)
    problems = storage.verify(ARK)
    # Then each is named, and the rest was read
    assert (problems.files, problems.bytes) == (2, 7)
    for sign in (
        "has the sha512",
        "has the md5",
        "cannot be read",
        "'v1/content/astray' lies in",
        "than its sidecar",
        "no 0=ocfl_object_1.1",
    ):
        assert [f for f in problems.faults if sign in f], sign
    assert len(problems.faults) == 6


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "is no JSON"),
        (b"[]", "is not of OCFL"),
        (
            b'{"type": "https://ocfl.io/1.1/spec/#inventory", "id": "ark:/1/other"}',
            "is that of 'ark:/1/other'",
        ),
    ],
)
def test_a_damaged_inventory_is_told_and_not_written_over(
    disk: Bed, tmp_path: Path, raw: bytes, message: str
) -> None:
    storage = disk.open()
    put(storage, incoming(tmp_path, "a", b"1"), key="one")
    disk.overwrite(f"{where()}/inventory.json", raw)
    with pytest.raises(NotAdmitted, match=message):
        put(storage, incoming(tmp_path, "a", b"2"), key="two")
    assert message in storage.verify(ARK).faults[0]


def test_an_inventory_that_was_changed_is_not_believed(either: Bed, tmp_path: Path) -> None:
    storage = either.open()
    put(storage, incoming(tmp_path, "a", b"1"), key="one")
    path = f"{where()}/inventory.json"
    either.overwrite(path, (either.fetch() / path).read_bytes().replace(b"A deposit", b"A forgery"))
    with pytest.raises(NotAdmitted, match="another sha512 than its sidecar"):
        storage.versions(ARK)


def test_a_place_that_is_no_storage_root_is_left_alone(either: Bed) -> None:
    either.overwrite("somebody/elses.txt", b"!")
    with pytest.raises(NotAdmitted, match="is no OCFL storage root"):
        either.open()
    assert [p.name for p in either.fetch().rglob("*") if p.is_file()] == ["elses.txt"]


def test_a_root_with_an_unknown_layout_is_refused(either: Bed) -> None:
    either.open()
    either.overwrite("ocfl_layout.json", b'{"extension": "0002-flat-direct-storage-layout"}')
    with pytest.raises(NotAdmitted, match="has the layout '0002-flat"):
        either.open(algorithm="sha512")
