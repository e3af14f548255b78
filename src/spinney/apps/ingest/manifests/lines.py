"""Lines of a foreign text file: bounded in length, numbered, and UTF-8 or refused."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from spinney.apps.ingest.files import paths
from spinney.apps.ingest.files.paths import NotAdmitted

BOM = b"\xef\xbb\xbf"
BUFFER_BYTES = 1 << 18


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """A regular file, open for reading behind its byte order mark.

    The file may be reached through links: its path is the caller's. Raises NotAdmitted when it is
    not there or is no regular file.
    """
    real = path.resolve()
    with paths.opened_beneath(real.parent, real.name) as raw:
        # A raw file by what it is, though not by the type of the port that it comes through.
        file: io.BufferedReader = io.BufferedReader(cast(Any, raw), BUFFER_BYTES)
        if file.peek(len(BOM)).startswith(BOM):
            file.read(len(BOM))
        yield file


def numbered(file: BinaryIO, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The lines as they stand, from 1. Of one that is longer than ``most_bytes``, a part that is too
    long as well: `text` refuses it, and memory stays bounded."""
    number = 0
    while raw := file.readline(most_bytes + 1):
        number += 1
        if len(raw) > most_bytes and not raw.endswith(b"\n"):
            while (rest := file.readline(most_bytes)) and not rest.endswith(b"\n"):
                pass
        yield number, raw


def text(raw: bytes, most_bytes: int) -> str:
    """A line without its end and the blanks before it. Raises NotAdmitted."""
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
