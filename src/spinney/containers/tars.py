"""The members of a tar, compressed or not, read once as a stream.

``tarfile`` reads the headers through our own file object, which moves forward only and limits the size of
headers: a pax or GNU header may declare any size, and ``tarfile`` would read it into memory. Errors that
``tarfile`` ignores are refused, since members would be lost silently: a damaged header in the middle, a
missing end mark, data after the mark.
"""

import bz2
import gzip
import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, BinaryIO, Self, cast

from spinney.containers.formats import Kind
from spinney.containers.limits import Meter
from spinney.containers.members import Entry
from spinney.files.paths import NotAdmitted

HEADERS_MAX_BYTES = 64 << 10
"""The maximum size of all headers of one member (its own, pax, GNU long names)."""

DIGITS_MAX = 1000
"""The maximum number of consecutive digits in a header. Python before 3.11.10 searches pax headers in quadratic time
(CVE-2024-6232): 60,000 digits took four seconds, in each of any number of members."""

_PIECE_BYTES = 1 << 20
_ONLY_DIGITS = bytes(ord("0") if chr(b).isdecimal() else ord(" ") for b in range(128)) + b" " * 128


def entries(source: BinaryIO, kind: Kind, *, meter: Meter) -> Iterator[Entry]:
    """Yield the members in their order. The content of each must have been read before the next is requested:
    a stream does not go back. Raises NotAdmitted when the tar is damaged, ends without its mark, or has
    something behind it."""
    reader = Forward(_inflated(source, kind), meter)
    reader.expect_headers()
    with tarfile.open(
        fileobj=cast(BinaryIO, reader), mode="r:", tarinfo=_Header, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # else it keeps a kilobyte a member
            if info.isreg():
                reader.expect_content(info.size)
            yield Entry(
                name=info.name,
                size_bytes=info.size,
                modified=_modified(info),
                folder=info.isdir(),
                refusal=_refusal(info),
                opened=lambda info=info: cast(IO[bytes], archive.extractfile(info)),  # type: ignore[misc]
            )
            reader.expect_headers()
    reader.refuse_what_follows()


def _inflated(source: BinaryIO, kind: Kind) -> IO[bytes]:
    """Return a file of the tar itself, unpacked as it is read."""
    if kind is Kind.TAR_GZ:
        return cast(IO[bytes], gzip.GzipFile(fileobj=source, mode="rb"))
    if kind is Kind.TAR_BZ2:
        return cast(IO[bytes], bz2.BZ2File(source, "rb"))
    return source


def _modified(info: tarfile.TarInfo) -> datetime | None:
    """Return the time of a member; zero means that it has none."""
    try:
        return datetime.fromtimestamp(int(info.mtime), UTC) if info.mtime else None
    except (OverflowError, ValueError, OSError):
        return None


def _refusal(info: tarfile.TarInfo) -> str | None:
    """Return why a member is refused; None: it is not."""
    if info.isdir():
        return None
    if info.issparse() or any(name.startswith("GNU.sparse") for name in info.pax_headers):
        return "it is a sparse file; pack it without --sparse"
    if not info.isreg():
        return "it is no regular file or folder (a link, a device?); leave it out, or pack the file itself"
    return None


class _Header(tarfile.TarInfo):
    """A header that raises NotAdmitted where ``tarfile`` would take a damaged one for the end."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except (_EOF, _SUBSEQUENT):
            raise
        except _DAMAGED as error:
            raise NotAdmitted(f"it is damaged or cut off ({error}); send it again") from None


# The parameter of fromtarfile must be called tarfile, and hides the module there.
_EOF = tarfile.EOFHeaderError  # type: ignore[attr-defined]
_SUBSEQUENT = tarfile.SubsequentHeaderError  # type: ignore[attr-defined]
_DAMAGED = tarfile.HeaderError


class Forward(io.RawIOBase):
    """A file that is read forward only, up to an allowed position, with every byte metered. The position is
    allowed in turn for headers, whose size is limited, and for the content of a regular file, whose size the
    header declares."""

    def __init__(self, source: IO[bytes], meter: Meter) -> None:
        self._source = source
        self._meter = meter
        self._position = 0
        self._allowed = 0
        self._in_headers = True

    def expect_headers(self) -> None:
        """Allow the rest of a block and the headers of one member to be read."""
        self._in_headers = True
        self._allowed = self._position + tarfile.BLOCKSIZE + HEADERS_MAX_BYTES

    def expect_content(self, size_bytes: int) -> None:
        """Allow so many bytes of content to be read."""
        self._in_headers = False
        self._allowed = self._position + size_bytes

    def tell(self) -> int:
        """Return the position in the tar, as ``tarfile`` asks for it."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move forward by reading. Raises NotAdmitted for a position before the current one."""
        if whence != io.SEEK_SET or offset < self._position:
            raise NotAdmitted("its headers lead backward; pack it again")
        while self._position < offset:
            if not self.read(min(_PIECE_BYTES, offset - self._position)):
                break
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises NotAdmitted beyond the allowed position, and for endless digits in headers."""
        if size < 0 or self._position + size > self._allowed:
            raise NotAdmitted(
                f"a member's headers take more than {HEADERS_MAX_BYTES} bytes; pack it without extended "
                f"attributes"
            )
        piece = self._read(size)
        if self._in_headers and b"0" * DIGITS_MAX in piece.translate(_ONLY_DIGITS):
            raise NotAdmitted("a member's headers hold endless digits; pack it without extended attributes")
        return piece

    def refuse_what_follows(self) -> None:
        """Read to the end of the file. Raises NotAdmitted when there is more than zeros."""
        while piece := self._read(_PIECE_BYTES):
            if piece.strip(b"\0"):
                raise NotAdmitted("there is something behind its end mark; pack it as one archive")

    def _read(self, size: int) -> bytes:
        """Read so many bytes, fewer only at the end, in pieces that are metered as they come."""
        pieces: list[bytes] = []
        remaining = size
        while remaining > 0 and (piece := self._source.read(min(remaining, _PIECE_BYTES))):
            self._meter.inflated(len(piece))
            self._position += len(piece)
            remaining -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
