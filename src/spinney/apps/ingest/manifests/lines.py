"""The lines of an untrusted text file: of limited length, numbered, and refused unless they are UTF-8."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from spinney.files import paths
from spinney.files.paths import NotAdmitted

BOM = b"\xef\xbb\xbf"
BUFFER_BYTES = 1 << 18


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file for reading after its byte order mark.

    The path may contain links, since it is the caller's. Raises NotAdmitted when the file does not exist or is
    no regular file.
    """
    real = path.resolve()
    with paths.opened_beneath(real.parent, real.name) as raw:
        # It is a raw file, though its declared type does not say so.
        file: io.BufferedReader = io.BufferedReader(cast(Any, raw), BUFFER_BYTES)
        if file.peek(len(BOM)).startswith(BOM):
            file.read(len(BOM))
        yield file


def numbered(file: BinaryIO, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the raw lines, numbered from 1. A line that is longer than ``most_bytes`` is cut to a part that is too
    long as well, so that `text` refuses it and memory stays bounded."""
    number = 0
    while raw := file.readline(most_bytes + 1):
        number += 1
        if len(raw) > most_bytes and not raw.endswith(b"\n"):
            while (rest := file.readline(most_bytes)) and not rest.endswith(b"\n"):
                pass
        yield number, raw


def text(raw: bytes, most_bytes: int) -> str:
    """Return the text of a line without its end and the blanks before that. Raises NotAdmitted."""
    if len(raw) > most_bytes:
        raise NotAdmitted(f"this line is longer than {most_bytes} bytes; divide or shorten it")
    if b"\0" in raw:
        raise NotAdmitted("there is a NUL in this line; write a text file in UTF-8")
    try:
        return raw.decode().rstrip(" \t\r\n")
    except UnicodeDecodeError as error:
        raise NotAdmitted(
            f"this line is not UTF-8 (byte {error.start + 1}, 0x{raw[error.start]:02x}); "
            f"save the manifest as UTF-8"
        ) from None
