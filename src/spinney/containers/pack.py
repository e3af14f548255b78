"""Writing a zip, a tar or a tar.gz as a stream: the same bytes for the same members, on any host.

Times are those of the files, where they are known, else that of the version; members have no owner, and no data of this
host. Members of a zip are not compressed, since compressed bytes would depend on the version of zlib; most deposited
files are compressed anyway, and tar.gz is there for small packages, with the same bytes for the same zlib.
"""

import gzip
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, BinaryIO, Protocol, cast

CHUNK_BYTES = 1 << 20
_MODE = 0o644
_ZIP_YEARS = range(1980, 2108)
"""The years that a zip can represent (APPNOTE.TXT 4.4.6)."""


class Format(StrEnum):
    """The format of a package, by the ending of its file's name."""

    ZIP = "zip"
    TAR = "tar"
    TAR_GZ = "tar.gz"


class Readable(Protocol):
    """A source of a member's content. ``read`` returns at most ``size`` bytes, and raises OSError, or any
    error that stops the archive, rather than return too few in all."""

    def read(self, size: int = -1, /) -> bytes: ...


class Archive(Protocol):
    """An archive that is being written."""

    def add(self, name: str, size_bytes: int, content: Readable, when: datetime | None = None) -> None:
        """Add the next member, a regular file of exactly ``size_bytes``, with the time ``when``; None: the
        default time of the archive.

        ``name`` is the path within the archive, with '/' between folders. ``content`` is read to that size
        and no further; it must raise where it is shorter. Raises OSError.
        """
        ...


@contextmanager
def writing(format_: Format, out: BinaryIO, when: datetime) -> Iterator[Archive]:
    """Yield an archive that is written into ``out`` as members are added; complete when the block is left
    without an exception.

    ``when``: the default time of members, and of the gzip header. ``out`` is not closed.
    """
    if format_ is Format.ZIP:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            yield _Zip(archive, when)
    elif format_ is Format.TAR:
        with _tar(out) as archive_:
            yield _Tar(archive_, when)
    else:
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=int(when.timestamp()))
        with packed, _tar(packed) as archive_:
            yield _Tar(archive_, when)


class _Zip:
    """A zip whose members are stored, not compressed."""

    def __init__(self, archive: zipfile.ZipFile, when: datetime) -> None:
        self._archive, self._when = archive, when

    def add(self, name: str, size_bytes: int, content: Readable, when: datetime | None = None) -> None:
        utc = (when or self._when).astimezone(UTC)
        year = min(max(utc.year, _ZIP_YEARS.start), _ZIP_YEARS.stop - 1)
        info = zipfile.ZipInfo(name, (year, utc.month, utc.day, utc.hour, utc.minute, utc.second))
        info.create_system = 3  # Unix, wherever it is packed: only so is the mode read
        info.external_attr = (0o100000 | _MODE) << 16
        info.file_size = size_bytes  # by it zipfile decides whether the header is a ZIP64 one
        with self._archive.open(info, "w") as member:
            remaining_bytes = size_bytes
            while remaining_bytes:
                chunk = content.read(min(CHUNK_BYTES, remaining_bytes))
                member.write(chunk)
                remaining_bytes -= len(chunk)


class _Tar:
    """A tar in the pax format, which has no limits for names and sizes."""

    def __init__(self, archive: tarfile.TarFile, when: datetime) -> None:
        self._archive, self._when = archive, when

    def add(self, name: str, size_bytes: int, content: Readable, when: datetime | None = None) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size_bytes, int((when or self._when).timestamp()), _MODE
        self._archive.addfile(info, cast(IO[bytes], content))  # tarfile only reads
        self._archive.members.clear()  # type: ignore[attr-defined]  # else it keeps a kilobyte a member


def _tar(out: IO[bytes] | gzip.GzipFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8")
