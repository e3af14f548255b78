"""Archives made for tests: honest ones with the library, dishonest ones byte by byte."""

import bz2
import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path


def make_zip(path: Path, files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return path


def tar_bytes(*members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar of regular files given by name and content, and of whatever else as a header."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                archive.addfile(header(member[0], size=len(member[1])), io.BytesIO(member[1]))
    return out.getvalue()


def header(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def make_tar(
    path: Path, *members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.PAX_FORMAT
) -> Path:
    """The same as a file, compressed as its name says."""
    data = tar_bytes(*members, form=form)
    if path.name.endswith((".gz", ".tgz")):
        data = gzip.compress(data)
    if path.name.endswith(".bz2"):
        data = bz2.compress(data)
    path.write_bytes(data)
    return path


def raw_header(name: bytes, size: int, kind: bytes = b"0") -> bytes:
    """A ustar header that tarfile would not write; its sum is right."""
    octal = b"%011o\0" % size if 0 <= size < 8**11 else b"\x80" + size.to_bytes(11, "big", signed=True)
    if size < 0:
        octal = size.to_bytes(12, "big", signed=True)
    block = bytearray(
        name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + octal + b"00000000000\0" + b" " * 8 + kind
    )
    block = bytearray(bytes(block).ljust(257, b"\0") + b"ustar\x0000").ljust(512, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


class RawZip:
    """A zip whose every field may lie."""

    def __init__(self) -> None:
        self.body = b""
        self.table = b""
        self.count = 0

    def add(
        self,
        name: bytes,
        content: bytes,
        *,
        stored: bool = False,
        size: int | None = None,
        crc: int | None = None,
        flags: int = 0x800,
        method: int | None = None,
        mode: int = 0o100644,
    ) -> "RawZip":
        packed = content if stored else _deflated(content)
        at = len(self.body)
        self.body += self.local(
            name, len(packed), len(content), zlib.crc32(content), flags=flags, stored=stored
        )
        self.body += packed
        return self.list(
            name,
            at,
            packed=len(packed),
            size=len(content) if size is None else size,
            crc=zlib.crc32(content) if crc is None else crc,
            flags=flags,
            method=(0 if stored else 8) if method is None else method,
            mode=mode,
        )

    @staticmethod
    def local(
        name: bytes, packed: int, size: int, crc: int, *, flags: int = 0x800, stored: bool = False
    ) -> bytes:
        method = 0 if stored else 8
        return (
            struct.pack("<4s5H3L2H", b"PK\3\4", 20, flags, method, 0, 33, crc, packed, size, len(name), 0)
            + name
        )

    def list(  # one line of the table of contents
        self, name: bytes, at: int, *, packed: int, size: int, crc: int, flags: int, method: int, mode: int
    ) -> "RawZip":
        sizes = (crc, packed, size, len(name), 0, 0, 0, 0, mode << 16, at)
        self.table += (
            struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, flags, method, 0, 33, *sizes) + name
        )
        self.count += 1
        return self

    def write(self, path: Path, *, count: int | None = None) -> Path:
        announced = self.count if count is None else count
        end = struct.pack(
            "<4s4H2LH", b"PK\5\6", 0, 0, announced, announced, len(self.table), len(self.body), 0
        )
        path.write_bytes(self.body + self.table + end)
        return path


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()
