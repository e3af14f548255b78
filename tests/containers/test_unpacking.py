"""Honest containers come out whole; who unpacks can follow it, stop it and do it again."""

import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from containers.archives import RawZip, header, make_tar, make_zip, raw_header
from containers.conftest import Refused, Unpack
from spinney.containers import Limits, Member, unpack

FILES = {"a.txt": b"one", "empty": b"", "deep/er/b": b"two" * 400_000, "deep/näme 100%\n": b"three"}
NAMES = ("x.zip", "x.ZIP", "x.tar", "x.tar.gz", "x.tgz", "x.tar.bz2")


def make(path: Path, files: dict[str, bytes]) -> Path:
    return make_zip(path, files) if path.name.lower().endswith("zip") else make_tar(path, *files.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_comes_out_whole(name: str, tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    members = unpacked(make(tmp_path / name, FILES))

    assert members == [Member(path=p, size_bytes=len(content)) for p, content in FILES.items()]
    assert {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file()} == FILES


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_every_form_with_long_names(form: int, tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    long = f"{'folder/' * 12}{'n' * 90}"

    unpacked(make_tar(tmp_path / "x.tar", (long, b"1"), form=form))

    assert (into / long).read_bytes() == b"1"


def test_a_large_zip_says_its_size_elsewhere(
    tmp_path: Path, unpacked: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)  # of which on it writes the large form
    container = make_zip(tmp_path / "x.zip", FILES)
    assert b"PK\x06\x07" in container.read_bytes()

    assert len(unpacked(container)) == len(FILES)


def test_a_large_zip_that_lies_about_its_count(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    whole = make_zip(tmp_path / "x.zip", FILES).read_bytes()
    at = whole.index(b"PK\x06\x06") + 24
    (tmp_path / "x.zip").write_bytes(whole[:at] + (2**40).to_bytes(8, "little") * 2 + whole[at + 16 :])

    assert f"declares {2**40} members and has 4" in refused(tmp_path / "x.zip")


def test_what_tar_writes_before_names_is_taken_off(tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    top, sub = header(".", tarfile.DIRTYPE), header("./sub", tarfile.DIRTYPE)

    members = unpacked(
        make_tar(tmp_path / "x.tar", top, sub, ("./sub/a", b"1"), header("./sub", tarfile.DIRTYPE))
    )

    assert [m.path for m in members] == ["sub/a"]


def test_names_in_utf8_without_the_flag_are_read_as_such(
    tmp_path: Path, into: Path, unpacked: Unpack
) -> None:
    unpacked(RawZip().add("é".encode(), b"1", flags=0).write(tmp_path / "x.zip"))

    assert [p.name for p in into.iterdir()] == ["é"]


@pytest.mark.parametrize("name", ["x.zip", "x.tar"])
def test_modes_are_ours(name: str, tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    if name == "x.zip":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            info = zipfile.ZipInfo("tool")
            info.external_attr = (stat.S_IFREG | 0o6777) << 16
            archive.writestr(info, b"#!")
    else:
        make_tar(tmp_path / name, header("tool", mode=0o6777, uid=12345, gid=12345))

    unpacked(tmp_path / name)

    status = (into / "tool").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o644, os.getuid())


def test_containers_within_are_files(tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    inner = make_zip(tmp_path / "bomb.zip", {"zeros": bytes(40_000_000)}).read_bytes()

    members = unpacked(make_zip(tmp_path / "x.zip", {"bomb.zip": inner}, zipfile.ZIP_STORED))

    assert members == [Member(path="bomb.zip", size_bytes=len(inner))]
    assert [p.name for p in into.iterdir()] == ["bomb.zip"]


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
def test_who_follows_it_can_call_it_off(name: str, tmp_path: Path, into: Path) -> None:
    container = make(tmp_path / name, FILES)
    seen: list[int] = []

    def between(size: int) -> None:
        seen.append(size)
        if len(seen) == 3:
            raise InterruptedError("called off")

    with pytest.raises(InterruptedError):
        unpack(container, into, name=name, limits=Limits(total_bytes=10**9), between=between)

    assert seen == [3, 0, 1 << 20]
    assert not into.exists()


def test_what_lies_there_is_left_alone(tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    into.mkdir(parents=True)
    (into / "mine").touch()

    with pytest.raises(FileExistsError, match="not empty"):
        unpacked(make_zip(tmp_path / "x.zip", FILES))

    assert [p.name for p in into.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.lha", b"-lh5-", "its name ends in none of"),
        ("x.zip", b"\x1f\x8b\x08\x00", "begins like tar.gz"),
        ("x.tar", b"PK\x03\x04", "begins like zip"),
        ("x.tgz", b"BZh9", "begins like tar.bz2"),
        ("x.zip", b"<html>", "it is named zip and is no such file (first bytes '<htm'); name it"),
        ("x.zip", b"", "it is empty; send it again"),
        ("x.tar", b"<html>" * 200, "damaged"),
        ("x.tar", b"", "it is empty; send it again"),
        ("x.tar.gz", b"\x1f\x8b\x08\x00nonsense", "damaged"),
        ("x.tar.bz2", b"BZh9nonsense", "damaged"),
    ],
)
def test_name_and_content_must_agree(
    name: str, content: bytes, words: str, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / name).write_bytes(content)

    assert words in refused(tmp_path / name)


def test_a_member_larger_than_the_disk_is_not_begun(tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    (tmp_path / "x.tar").write_bytes(raw_header(b"huge", 1 << 60) + bytes(1024))

    with pytest.raises(OSError, match="no room") as full:
        unpacked(tmp_path / "x.tar", total_bytes=1 << 62, ratio=1e18)

    assert not isinstance(full.value, FileExistsError)
    assert not into.exists()
