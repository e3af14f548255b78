"""The contents of raw files, unpacked where they are packed with gzip, and read in pieces of bounded size.

A file is packed when it begins like gzip, whatever its name. What comes before a damage counts."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

CHUNK_BYTES = 1 << 18
"""How much of a file is read at once. With four times as much the arrays of its pulses are so large that the C
library's heap grows between them, by 3 MB for each 100 MB that are read, and nothing is a tenth faster."""
DAMAGES = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading raises where a packed file is damaged."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for its unpacked content, and close it at the end of the block. Raises OSError; reading
    raises one of ``DAMAGES`` where the file is damaged."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw


def length(path: Path) -> int:
    """Return how many bytes the content has, up to where it is damaged. Raises OSError."""
    return sum(map(len, _pieces(path)))


def grown_from(path: Path, before: Path) -> int | None:
    """Return from where on the content of ``path`` is new, given that it begins with that of ``before``:
    behind the last whole line of ``before``, so that a line that was cut off there is read again as a whole.
    None: it does not begin so. Raises OSError."""
    end = size = 0
    pieces = _pieces(path)
    # Pieces of both have one length, so that they can be compared one by one; only the last of ``before`` is shorter.
    for old in _pieces(before):
        if not next(pieces, b"").startswith(old):
            return None
        end = size + old.rfind(b"\n") + 1 if b"\n" in old else end
        size += len(old)
    return end


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the content in pieces of one length, up to its end or a damage; the last piece may be shorter."""
    with opened(path) as file:
        while True:
            try:
                piece = file.read(CHUNK_BYTES)
            except DAMAGES:
                return
            if not piece:
                return
            yield piece
