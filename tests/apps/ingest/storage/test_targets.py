"""Targets, layouts, and roots that others have made."""

import tracemalloc
from pathlib import Path

import ocfl
import orjson
import pytest

from apps.ingest.storage.judge import ARK, at_rest, complaints, contents, incoming, put, where
from long_tests import LONG
from spinney.apps.ingest.storage import Damaged, NoSuchObject, open_storage
from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage.layout import CONFIG, LAYOUT, Layout, read_layout
from spinney.apps.ingest.storage.place import Document
from spinney.files.paths import NotAdmitted

_NO_FOLDER = "the URL of a storage on this machine is file:///folder"
_NO_BUCKET = "the URL of an S3 storage is s3://bucket/prefix, without credentials"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("relative/folder", "is not absolute"),
        ("file://elsewhere/archive", _NO_FOLDER),
        ("file:relative", _NO_FOLDER),
        ("s3://", _NO_BUCKET),
        ("s3://key:secret@bucket/x", _NO_BUCKET),
        ("s3://bucket/../x", "'..' is no name of a file"),
        ("s3://bucket/x?versionId=1", _NO_BUCKET),
    ],
)
def test_what_is_no_target(target: str, reason: str) -> None:
    with pytest.raises(NotAdmitted) as refusal:
        open_storage(target)
    assert reason in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_an_endpoint_may_not_carry_credentials() -> None:
    with pytest.raises(NotAdmitted, match="has credentials in it") as refusal:
        open_storage("s3://bucket", endpoint="https://key:secret@127.0.0.1")
    assert "secret" not in str(refusal.value)


def test_a_file_url(tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/a%20root")
    put(storage, incoming(tmp_path / "in", "a", b"1"))
    assert at_rest(tmp_path / "a root")


@pytest.mark.parametrize(
    ("layout", "object_id", "path"),
    [  # the examples of extension 0003
        (Layout(), "object-01", "3c0/ff4/240/object-01"),
        (Layout(), "..hor/rib:le-$id", "487/326/d8c/%2e%2ehor%2frib%3ale-%24id"),
        (Layout(), "..Hor/rib:lè-$id", "373/529/21a/%2e%2eHor%2frib%3al%c3%a8-%24id"),
        (
            Layout(digestAlgorithm="md5", tupleSize=2, numberOfTuples=15),
            "object-01",
            "ff/75/53/44/92/48/5e/ab/b3/9f/86/35/67/28/88/object-01",
        ),
        (Layout(tupleSize=0, numberOfTuples=0), "object-01", "object-01"),
        (
            Layout(),
            "abcdefghij" * 10 + "a",
            f"5cc/73e/648/{'abcdefghij' * 10}-5cc73e648fbcff136510e330871180922ddacf193b68fdeff855683a01464220",
        ),
    ],
)
def test_where_an_object_lies(layout: Layout, object_id: str, path: str) -> None:
    assert layout.path(object_id) == path


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"tupleSize": 33}, "tupleSize: Input should be less than or equal to 32"),
        ({"tupleSize": "3"}, "tupleSize: Input should be a whole number"),
        ({"digestAlgorithm": ["x"]}, "digestAlgorithm: Input should be 'md5', "),
        ({"tupleSize": 0}, "the file: tupleSize and numberOfTuples are 0 only together"),
    ],
)
def test_parameters_of_a_layout_that_are_not_lawful(parameters: dict[str, object], reason: str) -> None:
    declared = b'{"extension": "0003-hash-and-id-n-tuple-storage-layout"}'
    documents = {LAYOUT: Document(raw=declared), CONFIG: Document(raw=orjson.dumps(parameters))}
    with pytest.raises(NotAdmitted, match=rf"is not valid \({reason}"):
        read_layout(documents.get, "/archive")


def test_keys_that_a_layout_has_not_are_ignored() -> None:
    declared = b'{"extension": "0003-hash-and-id-n-tuple-storage-layout"}'
    parameters = {"tupleSize": 2, "tuples": 9, "algorithm": "md5"}
    documents = {LAYOUT: Document(raw=declared), CONFIG: Document(raw=orjson.dumps(parameters))}
    assert read_layout(documents.get, "/archive") == Layout(tupleSize=2)


def test_an_object_that_another_program_made_is_read_and_continued(tmp_path: Path) -> None:
    # Given an object of ocfl-py's, with another content folder, and names of its own for the content
    storage = open_storage(tmp_path / "root")
    made = tmp_path / "root" / where()
    made.parent.mkdir(parents=True)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "x.txt").write_bytes(b"theirs")
    ocfl.Object(identifier=ARK, content_directory="data", digest_algorithm="sha256").create(
        srcdir=str(theirs), metadata=ocfl.VersionMetadata(message="made", name="them"), objdir=str(made)
    )
    # When it is read, continued and verified, then it is as lawful as before
    assert contents(storage) == {"x.txt": b"theirs"}
    assert [v.key for v in storage.versions(ARK)] == [None]
    put(storage, incoming(tmp_path, "y.txt", b"ours"), merge=True)
    assert contents(storage) == {"x.txt": b"theirs", "y.txt": b"ours"}
    assert (made / "v2/data").is_dir()
    assert storage.verify(ARK).faults == ()
    assert all("E0" not in error for error in complaints(tmp_path / "root"))


SUM = "ab" * 64
SOUND: dict[str, object] = {
    "id": ARK,
    "type": "https://ocfl.io/1.1/spec/#inventory",
    "digestAlgorithm": "sha512",
    "head": "v01",
    "manifest": {SUM: ["v01/content/x"]},
    "versions": {"v01": {}},
}


_NO_NAME = "head: String should match pattern"
_NO_DIGEST = "in the manifest is no lowercase digest of a content"
_NO_VERSIONS = "there are not exactly the versions 1 to 1"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"type": "https://ocfl.io/2.0/spec/#inventory"}, "is not of OCFL 1.0 or 1.1"),
        ({"id": "ark:/1/other"}, "is that of 'ark:/1/other'"),
        ({"digestAlgorithm": "md5"}, "digestAlgorithm: Input should be 'sha512' or 'sha256'"),
        ({"head": "v00"}, _NO_NAME),
        ({"head": "1"}, _NO_NAME),
        ({"head": 1}, "head: Input should be a valid string"),
        ({"contentDirectory": ".."}, "'..' is no name of a file"),
        ({"contentDirectory": "a/b"}, "'a/b' has a '/' or a NUL in it"),
        ({"contentDirectory": 1}, "contentDirectory: Input should be a valid string"),
        ({"manifest": []}, "manifest: Input should be a valid dictionary"),
        ({"manifest": {SUM.upper(): ["v01/content/x"]}}, _NO_DIGEST),
        ({"manifest": {"ab": ["v01/content/x"]}}, _NO_DIGEST),
        ({"manifest": {SUM: []}}, _NO_DIGEST),
        ({"manifest": {SUM: [1]}}, f"manifest.{SUM}.0: Input should be a valid string"),
        ({"manifest": {SUM: "v01/content/x"}}, f"manifest.{SUM}: Input should be a valid list"),
        ({"manifest": {SUM: ["../x"]}}, "path '../x': '..' is no name of a file"),
        ({"fixity": None}, "fixity: Input should be a valid dictionary"),
        ({"fixity": {"md5": {"0": ["/x"]}}}, "'/x' is absolute"),
        ({"versions": {}}, _NO_VERSIONS),
        ({"versions": {"v1": {}}}, _NO_VERSIONS),
        ({"versions": {"v01": {}, "v02": {}}}, _NO_VERSIONS),
    ],
)
def test_an_inventory_that_is_not_valid_is_damaged(changed: dict[str, object], reason: str) -> None:
    sound = inventories.parse(orjson.dumps(SOUND), ARK)
    assert (sound.head, sound.name(2)) == (1, "v02")

    with pytest.raises(Damaged, match=r"the inventory of .*; restore it from a copy") as refusal:
        inventories.parse(orjson.dumps({**SOUND, **changed}), ARK)
    assert reason in str(refusal.value)


def test_a_damaged_head_takes_no_memory() -> None:
    document = orjson.dumps({**SOUND, "head": "v2000000"})
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match="there are not exactly the versions 1 to 2000000"):
            inventories.parse(document, ARK)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_refusal_of_a_state_names_its_version() -> None:
    inventory = inventories.parse(orjson.dumps({**SOUND, "versions": {"v01": {"state": {SUM: "x"}}}}), ARK)
    with pytest.raises(Damaged, match=rf"is not valid \(v01\.state\.{SUM}: Input should be a valid list\)"):
        inventories.state(inventory)


@pytest.mark.parametrize("path", ["../../../../secret", "/etc/passwd", "v1/content/../../../x"])
def test_an_inventory_cannot_lead_a_reader_out_of_its_object(tmp_path: Path, path: str) -> None:
    storage = open_storage(tmp_path / "root")
    put(storage, incoming(tmp_path, "a", b"1"))
    (tmp_path / "secret").write_text("secret")
    inventory_file = tmp_path / "root" / where() / inventories.NAME
    document = orjson.loads(inventory_file.read_bytes())
    (value,) = document["manifest"]
    document["manifest"][value] = [path]
    inventory_file.write_bytes(orjson.dumps(document))
    inventory_file.with_name("inventory.json.sha512").write_bytes(
        inventories.sidecar(inventory_file.read_bytes(), "sha512")
    )
    with pytest.raises(NotAdmitted, match="leads elsewhere"):
        list(storage.files(ARK))


def test_a_content_that_was_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "root")
    put(storage, incoming(tmp_path, "a", b"1"))
    (tmp_path / "secret").write_text("secret")
    (file,) = storage.files(ARK)
    (content,) = (tmp_path / "root" / where() / "v1/content").iterdir()
    content.unlink()
    content.symlink_to(tmp_path / "secret")
    with pytest.raises(NotAdmitted, match="symbolic link"), storage.opened(ARK, file):
        pass
    assert "cannot be read" in storage.verify(ARK).faults[0]


def test_a_first_put_needs_no_root_that_is_empty_of_ones_own_leftovers(tmp_path: Path) -> None:
    # Given a root whose making was cut off before its declaration
    open_storage(tmp_path / "root")
    (tmp_path / "root/0=ocfl_1.1").unlink()
    # When it is opened again, then it is made whole
    storage = open_storage(tmp_path / "root")
    put(storage, incoming(tmp_path, "a", b"1"))
    assert at_rest(tmp_path / "root")
    with pytest.raises(NoSuchObject):
        storage.versions("ark:/99999/fk4none")


def test_an_object_of_many_files(tmp_path: Path) -> None:
    # 20,000 take 25 seconds on 2 cores
    number = 20_000 if LONG else 500
    storage = open_storage(tmp_path / "root")
    files = [incoming(tmp_path / "in", f"{n % 100}/{n}", str(n).encode(), "sha512") for n in range(number)]
    stored = put(storage, *files)
    again = put(storage, *files, incoming(tmp_path, "one-more", b"x"), key="two")
    assert (stored.files, again.files, again.added_bytes) == (number, number + 1, 1)
    assert storage.verify(ARK).files == number + 1
