"""7z and rar come out like a tar: the same files, the same refusals."""

import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from containers.conftest import Refused, Unpack
from servers import DEBIAN
from spinney.containers import Member

FILES = {"a.txt": b"one", "deep/er/b": b"two" * 400_000, "deep/n\u00e4me 100%": b"three", "empty": b""}


@pytest.fixture(autouse=True)
def bsdtar(monkeypatch: pytest.MonkeyPatch) -> str:
    """The program; where make has unpacked it, on the PATH, with its library."""
    if shutil.which("bsdtar") is None:
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{DEBIAN}/usr/bin")
        libraries = ":".join(str(folder) for folder in DEBIAN.glob("usr/lib/*-linux-gnu"))
        monkeypatch.setenv("LD_LIBRARY_PATH", libraries)
    program = shutil.which("bsdtar")
    if program is None:
        pytest.skip("there is no bsdtar here, and make could not get it; install libarchive-tools")
    return program


def seven_zip(path: Path, files: dict[str, bytes], bsdtar: str) -> Path:
    source = path.with_suffix(".source")
    for name, content in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    subprocess.run([bsdtar, "--format", "7zip", "-cf", path, "-C", source, *files], check=True)
    shutil.rmtree(source)
    return path


def rar(path: Path, files: dict[str, bytes], mode: int = 0o100644) -> Path:
    """A RAR 4 whose members are stored, by the format's description: each block has a CRC, type, flags and size."""

    def block(kind: int, flags: int, fields: bytes) -> bytes:
        head = struct.pack("<BHH", kind, flags, 7 + len(fields)) + fields
        return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head

    out = b"Rar!\x1a\x07\x00" + block(0x73, 0, bytes(6))
    for name, content in files.items():
        size, crc, date = len(content), zlib.crc32(content), (46 << 25) | (11 << 21) | (23 << 16)
        fields = struct.pack(
            "<IIBIIBBHI", size, size, 3, crc, date, 20, 0x30, len(name.encode()), mode
        ) + name.encode("ascii")
        out += block(0x74, 0x8000, fields) + content
    path.write_bytes(out + block(0x7B, 0x4000, b""))
    return path


def below(into: Path) -> dict[str, bytes]:
    return {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}


def test_a_7z_comes_out_whole(tmp_path: Path, into: Path, unpacked: Unpack, bsdtar: str) -> None:
    members = unpacked(seven_zip(tmp_path / "x.7z", FILES, bsdtar))

    assert {(each.path, each.size_bytes) for each in members} == {(p, len(c)) for p, c in FILES.items()}
    assert below(into) == FILES


def test_a_rar_comes_out_whole(tmp_path: Path, into: Path, unpacked: Unpack) -> None:
    files = {"a.txt": b"one", "deep/b": b"two" * 100_000}

    members = unpacked(rar(tmp_path / "x.rar", files))

    assert below(into) == files
    assert [each.path for each in members] == list(files)
    assert all(isinstance(each, Member) and each.modified for each in members)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "a\tb/" + "c/" * 25 + "d"])
def test_hostile_names_in_a_rar_are_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    refused(rar(tmp_path / "x.rar", {"good": b"1", name: b"2"}))


def test_a_link_in_a_rar_is_refused(tmp_path: Path, refused: Refused) -> None:
    assert "no regular file" in refused(rar(tmp_path / "x.rar", {"link": b"/etc/passwd"}, mode=0o120777))


def test_limits_hold_for_a_7z(tmp_path: Path, refused: Refused, bsdtar: str) -> None:
    container = seven_zip(tmp_path / "x.7z", {"zeros": bytes(40_000_000)}, bsdtar)

    assert "like a bomb" in refused(container)
    assert "more than 1000 bytes" in refused(container, total_bytes=1000)


@pytest.mark.parametrize("kept", [5, 40, 1000, -10])
def test_a_7z_that_is_cut_off_is_refused(kept: int, tmp_path: Path, refused: Refused, bsdtar: str) -> None:
    container = seven_zip(tmp_path / "x.7z", {"noise": os.urandom(5000)}, bsdtar)
    container.write_bytes(container.read_bytes()[:kept])

    assert "send it again" in refused(container)


def test_a_7z_with_a_broken_byte_is_refused(tmp_path: Path, refused: Refused, bsdtar: str) -> None:
    container = seven_zip(tmp_path / "x.7z", {"noise": os.urandom(5000)}, bsdtar)
    content = bytearray(container.read_bytes())
    content[2000] ^= 1
    container.write_bytes(content)

    assert "bsdtar cannot read it" in refused(container)


def test_another_file_named_7z_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "x.7z").write_bytes(b"no archive at all")

    assert "is no such file" in refused(tmp_path / "x.7z")


def test_without_the_program_the_user_learns_what_to_install(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = rar(tmp_path / "x.rar", {"a": b"1"})
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "install bsdtar (Debian: libarchive-tools)" in refused(container)
