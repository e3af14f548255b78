"""No name leads out of the folder, and no two lead to one place."""

import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from containers.archives import RawZip, header, make_tar
from containers.conftest import Refused
from spinney.containers import Limits, unpack

LIMITS = Limits(total_bytes=1000)

LEADING_OUT = {
    "../up": "'..' is no name",
    "a/../../up": "'..' is no name",
    "a/..": "'..' is no name",
    "/etc/passwd": "absolute",
    ".//etc/passwd": "absolute",
    "C:/windows": "drive letter",
    "c:up": "drive letter",
    "..\\up": "backslash",
    "a\\b": "backslash",
    "a//b": "no name",
    "a/./b": "no name",
    "n" * 256: "longer than 255 bytes",
    "d/" * 21 + "f": "more than 20 folders deep",
    "/".join(["x" * 250] * 9): "longer than 2048 bytes",
}
CLASHES = [
    (["a", "a"], "twice"),
    (["a", "a/b"], "'a' is a file too"),
    (["a/b", "a"], "'a' is a folder too"),
]
NEAR = [
    ["Read.me", "READ.ME"],
    ["é", "e\u0301"],
    ["straße", "STRASSE"],
    ["Docs/a", "docs/b"],
    ["a/b", "A"],
]


@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.parametrize("kind", ["zip", "ustar or gnu", "pax"])
def test_names_that_lead_out_are_refused(name: str, kind: str, tmp_path: Path, refused: Refused) -> None:
    if kind == "zip":
        container = RawZip().add(name.encode(), b"1").write(tmp_path / "x.zip")
    elif kind == "pax":
        container = make_tar(tmp_path / "x.tar", header("harmless", pax_headers={"path": name}))
    else:
        container = make_tar(tmp_path / "x.tar", header(name), form=tarfile.GNU_FORMAT)

    message = refused(container)

    assert LEADING_OUT[name] in message
    assert f"member '{name[:200]}'" in message


@pytest.mark.parametrize(("names", "words"), CLASHES)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_clash_are_refused(
    names: list[str], words: str, kind: str, tmp_path: Path, refused: Refused
) -> None:
    assert words in refused(packed(kind, names, tmp_path))


@pytest.mark.parametrize("names", NEAR)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_nearly_meet_are_kept_and_told_of(names: list[str], kind: str, tmp_path: Path) -> None:
    met: list[tuple[str, str]] = []
    container = packed(kind, names, tmp_path)

    unpacked = unpack(
        container, tmp_path / "into", name=container.name, limits=LIMITS, near=lambda *pair: met.append(pair)
    )

    assert [member.path for member in unpacked] == names
    assert {p.relative_to(tmp_path / "into").as_posix() for p in (tmp_path / "into").rglob("*")} >= set(names)
    assert len(met) == 1


@pytest.mark.parametrize("names", [["Read.me", "READ.ME"], ["a/b", "A"], ["a", "A/b"]])
def test_a_disk_that_takes_two_names_for_one_is_told_of(
    names: list[str], tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_case(monkeypatch)

    assert f"the working disk takes it and '{names[0].partition('/')[0]}' for one" in refused(
        packed("zip", names, tmp_path)
    )


def without_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for a file system that knows no case, which no Linux has mounted where tests run."""
    opened, made = os.open, os.mkdir
    monkeypatch.setattr(os, "open", lambda path, *more, **how: opened(_lower(path), *more, **how))
    monkeypatch.setattr(os, "mkdir", lambda path, *more, **how: made(_lower(path), *more, **how))


def _lower(path: Any) -> Any:
    """Its last part, if it is of a test."""
    above, slash, last = str(path).rpartition("/")
    return path if not isinstance(path, str) or len(last) > 10 else f"{above}{slash}{last.lower()}"


def packed(kind: str, names: list[str], folder: Path) -> Path:
    if kind == "tar":
        return make_tar(folder / "x.tar", *((name, b"1") for name in names))
    raw = RawZip()
    for name in names:
        raw.add(name.encode(), b"1")
    return raw.write(folder / "x.zip")


def test_a_nul_in_a_name_is_seen(tmp_path: Path, refused: Refused) -> None:
    zipped = RawZip().add(b"safe\0/../../up", b"1").write(tmp_path / "x.zip")
    tarred = make_tar(tmp_path / "x.tar", header("harmless", pax_headers={"path": "safe\0up"}))

    assert "NUL" in refused(zipped)
    assert "NUL" in refused(tarred)


@pytest.mark.parametrize("flags", [0, 0x800])
def test_a_zip_with_names_that_are_not_utf8(flags: int, tmp_path: Path, refused: Refused) -> None:
    container = RawZip().add(b"caf\xe9", b"1", flags=flags).write(tmp_path / "x.zip")

    message = refused(container)

    assert "is not UTF-8" in message
    assert "caf\\xe9" in message.replace("\\\\", "\\")


def test_a_tar_with_names_that_are_not_utf8(tmp_path: Path, refused: Refused) -> None:
    container = make_tar(tmp_path / "x.tar", header("caf\udce9"), form=tarfile.GNU_FORMAT)

    assert "is not UTF-8" in refused(container)


SPECIAL_IN_TAR = {
    "symbolic link": header("l", tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": header("l", tarfile.LNKTYPE, linkname="a"),
    "character device": header("l", tarfile.CHRTYPE, devmajor=1, devminor=5),
    "block device": header("l", tarfile.BLKTYPE, devmajor=8),
    "fifo": header("l", tarfile.FIFOTYPE),
    "unknown": header("l", b"V"),
}


@pytest.mark.parametrize("what", SPECIAL_IN_TAR)
def test_a_tar_brings_files_and_folders_only(what: str, tmp_path: Path, refused: Refused) -> None:
    message = refused(make_tar(tmp_path / "x.tgz", ("a", b"1"), SPECIAL_IN_TAR[what], ("l/b", b"2")))

    assert "member 'l': it is no regular file or folder" in message


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR]
)
def test_a_zip_brings_files_and_folders_only(kind: int, tmp_path: Path, refused: Refused) -> None:
    container = RawZip().add(b"l", b"/etc/passwd", stored=True, mode=kind | 0o777).write(tmp_path / "x.zip")

    assert "member 'l': it is no regular file or folder" in refused(container)


def test_sparse_files_are_refused(tmp_path: Path, refused: Refused) -> None:
    old = header("s", tarfile.GNUTYPE_SPARSE)
    numbers = {"major": "0", "minor": "1", "map": "0,1", "size": "999999999999"}
    new = header("s", pax_headers={f"GNU.sparse.{name}": value for name, value in numbers.items()})

    assert "sparse" in refused(make_tar(tmp_path / "old.tar", old, form=tarfile.GNU_FORMAT))
    assert "sparse" in refused(make_tar(tmp_path / "new.tar", new))


def test_no_more_names_than_the_limit(tmp_path: Path, refused: Refused) -> None:
    many = [(f"f{i}", b"") for i in range(101)]
    folders = [(f"{i}/" * 5 + "f", b"") for i in range(20)]

    assert "more than 100 files and folders" in refused(make_tar(tmp_path / "x.tar", *many), members=100)
    assert "more than 100 files and folders" in refused(make_tar(tmp_path / "y.tar", *folders), members=100)
