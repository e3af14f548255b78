"""A file that a command or a client uploads to an inbox: what it says of the file, and the file's pieces."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from spinney.model.errors import UsageError
from spinney.model.settings.inboxes import Upload

PIECE_BYTES = 8 << 20
"""How much of a file is sent at a time."""


def described(inbox: str, file: Path, name: str | None = None) -> Upload:
    """Return the upload of a file, under this name or its own, with its size and its SHA-256, by which an
    interrupted upload is found again. It reads the whole file. Raises UsageError for what cannot be read."""
    try:
        with file.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            size = os.fstat(source.fileno()).st_size
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; name a file that can") from error
    return Upload(id="", inbox=inbox, name=name or file.name, size=size, by="", announced=digest)


def piece_of(source: BinaryIO, upload: Upload) -> bytes:
    """Return the next bytes of an upload, at most ``PIECE_BYTES`` from ``received`` on; empty when all have
    been sent. Raises UsageError when the file has become shorter meanwhile."""
    source.seek(upload.received)
    piece = source.read(min(PIECE_BYTES, upload.size - upload.received))
    if not piece and upload.received < upload.size:
        raise UsageError(f"{upload.name!r} has become shorter while it was sent; upload it again")
    return piece
