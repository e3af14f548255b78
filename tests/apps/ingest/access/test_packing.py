"""A package: what is in it, that it is whole or not there, and that nothing damaged leaves the house."""

import hashlib
import io
import os
import resource
import signal
import subprocess
import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import bagit
import pytest

from long_tests import long_alone
from small_disk import small_disk
from spinney.apps.ingest.access import bags, packages
from spinney.apps.ingest.access.package_job import accesses, parsed_date
from spinney.apps.ingest.access.tickets import AccessOrder
from spinney.apps.ingest.storage import Damaged, Storage
from spinney.containers.pack import Format, writing
from spinney.model.outcomes import Outcome
from spinney.testing import StageHarness, StageResult

from ..places import each, on_disk
from ..signals import deferral
from .filled_service import ARK, SECRET, WHEN, Service

NAME = "ark_99999_fk4abc_v1"
ORDER = AccessOrder(
    ark=ARK, version=1, created=WHEN, storage="main", files=1, size_bytes=1, format=Format.ZIP, secret=SECRET
)
PLAIN = {"producer/map.tif": b"a map", "producer/deep/er/empty": b"", "system/mrt-erc.txt": b"who: me\n"}
ODD = {
    "producer/a\nb\r.txt": b"3",
    "producer/-rf *": b"4",
    "producer/Zürich \U0001f5fa.txt": b"5",
    "bagit.txt": b"7",
    "manifest-sha512.txt": b"8",
    "data/data": b"9",
    "producer/" + "n" * 250: b"10",
}
HOSTILE = ODD | {
    "producer/..\\..\\evil.exe": b"1",
    "producer/C:\\autoexec.bat": b"2",
    "producer/..=5C..=5Cevil.exe": b"6",
    "producer/..%5C..%5Cevil.exe": b"12",
    "producer/%0A": b"11",
}


@pytest.mark.parametrize("format_", list(Format))
@pytest.mark.parametrize("files", [PLAIN, ODD], ids=["plain", "odd"])
def test_a_package_is_a_valid_bag_of_just_the_version(
    archive: Service, tmp_path: Path, files: dict[str, bytes], format_: Format
) -> None:
    # Given a version, and one after it
    archive.holds(files)
    archive.holds({"producer/other": b"newer"}, version=2)

    made = pack(archive, format=format_)

    # Then another program finds a valid bag in it, with each file once
    bag = bagit.Bag(str(unpacked(package_of(archive, made), tmp_path / "out") / NAME))
    bag.validate()
    payload = [Path(bag.path, name).read_bytes() for name in bag.payload_entries()]
    assert sorted(payload) == sorted(files.values())
    assert bag.info["External-Identifier"] == ARK
    assert made.value["files"] == len(files)


@pytest.mark.parametrize("format_", list(Format))
def test_no_name_in_it_leads_out(archive: Service, format_: Format) -> None:
    archive.holds(HOSTILE)

    names = members(package_of(archive, pack(archive, format=format_)))

    assert [n for n in names if not n.startswith(f"{NAME}/") or "\\" in n or ".." in n.split("/")] == []
    assert len(set(names)) == len(names) == len(HOSTILE) + 4


def test_another_program_takes_the_bags_of_all_names_but_these(archive: Service, tmp_path: Path) -> None:
    """bagit-python takes ``%25`` for what it is, drops blanks at the ends of lines, ends lines at U+2028 and the like,
    and reads two line breaks of a kind in a name. RFC 8493, section 2.1.3, has nothing that would mend that."""
    taken = {
        "a b": True,
        "*": True,
        "C:\\x\\..\\y": True,
        "a\nb\r\nc\r": True,
        " a": True,
        "a\tb": True,
        "ü|;": True,
    }
    taken |= {
        "100%": False,
        "%41": False,
        "a ": False,
        "a\u2028b": False,
        "a\x85b": False,
        "a\nb\nc\n": False,
    }
    contents = {}
    for number, name in enumerate(taken):
        ark = f"ark:/99999/fk4n{number}"
        archive.holds({f"producer/{name}": b"x"}, ark)
        made = package_of(archive, pack(archive, ark=ark, secret=f"{number:032x}"))
        bag = bagit.Bag(str(unpacked(made, tmp_path / str(number)) / f"ark_99999_fk4n{number}_v1"))
        contents[name] = bag.is_valid()
    assert contents == taken


def test_a_manifest_escapes_what_the_rfc_has_escaped(archive: Service) -> None:
    archive.holds(HOSTILE)

    with zipfile.ZipFile(package_of(archive, pack(archive))) as zipped:
        lines = zipped.read(f"{NAME}/manifest-sha512.txt").decode().split("\n")[:-1]
        listed = {name: value for value, name in (line.split("  ", 1) for line in lines)}
        for name, value in listed.items():
            plain = name.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
            assert hashlib.sha512(zipped.read(f"{NAME}/{plain}")).hexdigest() == value
    assert len(listed) == len(HOSTILE)


@pytest.mark.parametrize("format_", list(Format))
def test_the_same_version_gives_the_same_bytes(archive: Service, format_: Format) -> None:
    archive.holds(HOSTILE)

    one, other = (
        package_of(archive, pack(archive, format=format_, secret=secret * 32)).read_bytes() for secret in "ab"
    )

    assert hashlib.sha256(one).hexdigest() == hashlib.sha256(other).hexdigest()


def test_it_bears_the_time_of_its_version_and_not_of_its_packing(archive: Service) -> None:
    archive.holds(PLAIN)
    zipped = package_of(archive, pack(archive, format=Format.ZIP))
    tarred = package_of(archive, pack(archive, format=Format.TAR_GZ, secret="f" * 32))

    with zipfile.ZipFile(zipped) as opened:
        assert {info.date_time for info in opened.infolist()} == {
            (2024, 2, 29, 12, 30, 14)
        }  # of two seconds each
    with tarfile.open(tarred) as opened:
        assert {(m.mtime, m.uid, m.uname) for m in opened.getmembers()} == {(WHEN.timestamp(), 0, "")}
    assert int.from_bytes(tarred.read_bytes()[4:8], "little") == WHEN.timestamp()  # RFC 1952: MTIME


def test_files_bear_the_time_at_which_they_were_last_changed_where_it_is_known(archive: Service) -> None:
    archive.holds(
        PLAIN, modified={"producer/map.tif": "2001-02-03T04:05:06", "system/mrt-erc.txt": "long ago"}
    )
    zipped = package_of(archive, pack(archive, format=Format.ZIP))
    tarred = package_of(archive, pack(archive, format=Format.TAR_GZ, secret="f" * 32))

    version, own = (2024, 2, 29, 12, 30, 14), (2001, 2, 3, 4, 5, 6)
    with zipfile.ZipFile(zipped) as opened:
        dates = {info.filename.rpartition("/")[2]: info.date_time for info in opened.infolist()}
    assert (dates["map.tif"], dates["mrt-erc.txt"], dates["bagit.txt"]) == (own, version, version)
    with tarfile.open(tarred) as opened:
        assert opened.getmember(f"{NAME}/data/producer/map.tif").mtime == 981173106


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2001-02-03T04:05:06Z", 981173106),
        ("2001-02-03T05:05:06+01:00", 981173106),
        ("2001-02-03 04:05:06", 981173106),
        ("Sat, 3 Feb 2001 04:05:06 GMT", 981173106),
        ("2001-02-03", 981158400),
        ("03/02/2001", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-08:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_in_usual_forms_are_read(text: str | None, seconds: int | None) -> None:
    date = parsed_date(text)

    assert (date and date.timestamp()) == seconds


@pytest.mark.parametrize("format_", list(Format))
@pytest.mark.parametrize(
    "modified", ["0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-08:00"]
)
def test_a_date_at_the_edge_of_the_calendar_spoils_no_package(
    archive: Service, format_: Format, modified: str
) -> None:
    archive.holds({"producer/a": b"1"}, modified={"producer/a": modified})

    assert members(package_of(archive, pack(archive, format=format_)))


def flipped(raw: bytes) -> bytes:
    return bytes([raw[0] ^ 1]) + raw[1:]


def shorter(raw: bytes) -> bytes:
    return raw[:-1]


def longer(raw: bytes) -> bytes:
    return raw + b"x"


def gone(raw: bytes) -> None:
    return None


@each("damage", [flipped, shorter, longer, gone], far=flipped)
def test_damage_fails_the_job_and_is_in_the_inventory(
    archive: Service, damage: Callable[[bytes], bytes | None]
) -> None:
    archive.holds(PLAIN)
    archive.overwrite("producer/map.tif", damage(PLAIN["producer/map.tif"]))

    assert is_found(archive, pack(archive, format=Format.ZIP))
    assert is_found(archive, pack(archive, format=Format.TAR_GZ))


@on_disk
def test_a_link_in_the_place_of_a_file_is_damage(archive: Service) -> None:
    archive.holds(PLAIN)
    path = archive.bed.fetch() / archive.content("producer/map.tif")
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")

    assert is_found(archive, pack(archive))


def is_found(archive: Service, ran: StageResult) -> bool:
    """What is damaged in the file, by the job and in the inventory; and nothing is left."""
    assert ran.outcome is Outcome.ERROR
    assert not ran.signal.retryable
    assert "producer/map.tif" in ran.message
    assert list(archive.settings.packages.iterdir()) == []
    with archive.inventory() as inventory:
        (damaged,) = inventory.damaged()
    assert damaged.ark == ARK
    return "producer/map.tif" in damaged.faults[0]


@on_disk
def test_a_file_that_grows_while_it_is_read_is_damaged(archive: Service) -> None:
    archive.holds({"a": b"whole"})

    def grow(read: int) -> None:
        with (archive.bed.fetch() / archive.content("a")).open("ab") as content:
            content.write(b"x")

    with pytest.raises(Damaged, match="longer than 5 bytes"):
        packages.make(archive.settings.packages / f"3-{SECRET}", 1, writer(archive.storage, grow))


@on_disk
def test_a_storage_that_is_not_mounted_damages_nothing(archive: Service) -> None:
    archive.holds(PLAIN)
    (archive.folder / "archive").rename(archive.folder / "unmounted")
    (archive.folder / "archive").mkdir()

    ran = pack(archive)

    assert ran.outcome is Outcome.DEFER
    assert "mount" in ran.message
    assert list((archive.folder / "archive").iterdir()) == []
    with archive.inventory() as inventory:
        assert inventory.damaged() == []


def test_killed_in_the_middle_there_is_no_package_and_the_next_attempt_makes_one(archive: Service) -> None:
    archive.holds({"a": b"1" * 100, "b": b"2" * 100})
    folder = archive.settings.packages / f"3-{SECRET}"
    first = iter([True])

    def kill(read: int) -> None:
        if not next(first, False):
            os.kill(os.getpid(), signal.SIGKILL)

    status = apart(lambda: packages.make(folder, 1, writer(archive.storage, kill)))

    assert os.WIFSIGNALED(status)
    assert [path.name for path in folder.iterdir()] == [".1.part"]
    assert packages.valid(folder, WHEN) is None
    packages.make(folder, 2, writer(archive.storage))
    assert sorted(path.name for path in folder.iterdir()) == [f"{NAME}.zip", "package.json"]


def test_killed_after_it_was_made_it_is_not_made_again(archive: Service) -> None:
    archive.holds(PLAIN)
    made = pack(archive)
    before = package_of(archive, made).stat()

    again = pack(archive)

    assert again.value == made.value
    assert package_of(archive, again).stat().st_ino == before.st_ino


def test_a_full_disk_is_left_as_it_was(archive: Service) -> None:
    archive.holds({"large": os.urandom(300_000)})

    def crowded() -> None:
        tempfile.tempdir = str(archive.folder)  # nobody removes the stage's temporary folder behind ``_exit``
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        ran = pack(archive)
        os._exit(42 if ran.outcome is Outcome.ERROR and ran.signal.retryable and "disk" in ran.message else 1)

    assert os.waitstatus_to_exitcode(apart(crowded)) == 42
    assert list(archive.settings.packages.iterdir()) == []


def test_what_finds_no_room_waits_and_writes_nothing(archive: Service) -> None:
    archive.holds(PLAIN)

    ran = pack(archive, size_bytes=1 << 60)

    assert deferral(ran).seconds <= 30, "as docs/ingest.md promises"
    assert "make room" in ran.message
    assert not archive.settings.packages.exists()


def test_a_package_waits_while_the_disk_is_read_only(archive: Service) -> None:
    archive.holds(PLAIN)
    with small_disk(archive.settings.packages, 2) as disk:
        for mode, outcome in (("ro", Outcome.DEFER), ("rw", Outcome.OK)):
            subprocess.run(["mount", "-o", f"remount,{mode}", disk.folder], check=True)
            ran = pack(archive)
            assert ran.outcome is outcome
            assert outcome is Outcome.OK or str(disk.folder) in ran.message


def test_one_that_is_cancelled_leaves_nothing(archive: Service) -> None:
    archive.holds(PLAIN)

    ran = StageHarness(cancelled=True).run(accesses, order=archive.order())

    assert ran.outcome is Outcome.CANCELLED
    assert list(archive.settings.packages.iterdir()) == []


@on_disk
@pytest.mark.parametrize("format_", [Format.ZIP, Format.TAR])
def test_memory_does_not_grow_with_a_file(archive: Service, format_: Format) -> None:
    archive.holds({"large": bytes(24 << 20)})
    tracemalloc.start()

    pack(archive, format=format_)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


@long_alone
def test_a_zip_of_more_than_four_gigabytes(tmp_path: Path) -> None:
    class Zeros:
        def read(self, size: int = -1, /) -> bytes:
            return bytes(size)

    class Holes(io.FileIO):
        """Zeros take no room on the disk."""

        def write(self, raw: bytes, /) -> int:
            size = len(raw)
            if size < 1 << 16:
                return super().write(raw)
            self.seek(size, os.SEEK_CUR)
            return size

    huge = (4 << 30) + 7
    with Holes(tmp_path / "huge.zip", "wb") as out, writing(Format.ZIP, out, WHEN) as zipped:
        zipped.add("huge", huge, Zeros())
        zipped.add("behind", 7, Zeros())

    with zipfile.ZipFile(tmp_path / "huge.zip") as opened:
        assert [(info.filename, info.file_size) for info in opened.infolist()] == [
            ("huge", huge),
            ("behind", 7),
        ]
        assert opened.read("behind") == bytes(7)
        with opened.open("huge") as member:
            member.seek(huge - 7)
            assert member.read() == bytes(7)


def test_others_cannot_list_the_tokens(archive: Service) -> None:
    archive.holds(PLAIN)

    pack(archive)

    assert archive.settings.packages.stat().st_mode & 0o077 == 0o011


# --- what is done and looked at -------------------------------------------------------------------


def pack(archive: Service, **more: object) -> StageResult:
    return StageHarness().run(accesses, order=archive.order(**more))


def package_of(archive: Service, made: StageResult) -> Path:
    """The newest of that name."""
    packages = archive.settings.packages.glob(f"*/{made.value['file']}")
    return max(packages, key=lambda path: path.stat().st_mtime_ns)


def members(package: Path) -> list[str]:
    if package.suffix == ".zip":
        with zipfile.ZipFile(package) as zipped:
            return zipped.namelist()
    with tarfile.open(package) as tarred:
        return tarred.getnames()


def unpacked(package: Path, into: Path) -> Path:
    if package.suffix == ".zip":
        with zipfile.ZipFile(package) as zipped:
            zipped.extractall(into)
    else:
        with tarfile.open(package) as tarred:
            tarred.extractall(into)  # of our own making; filters came with Python 3.11.4
    return into


Writer = Callable[[BinaryIO], packages.Package]


def writer(storage: Storage, between: Callable[[int], None] = lambda read: None) -> Writer:
    def write(out: BinaryIO) -> packages.Package:
        with writing(Format.ZIP, out, WHEN) as zipped:
            files, content_bytes = bags.bag(zipped, storage, ORDER, between)
        return packages.Package(
            file=f"{NAME}.zip",
            size_bytes=0,
            files=files,
            content_bytes=content_bytes,
            made=WHEN,
            expires=WHEN + timedelta(days=1),
            seconds=1,
        )

    return write


def apart(act: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]
