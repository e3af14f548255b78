"""A submitted payload: opened safely, and copied durably while it is checked.

Digests are computed while the bytes pass, since a payload may be larger than memory and should not be read
twice.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from spinney.apps.ingest.verbs.service import refused
from spinney.errors import Refused, UsageError
from spinney.files import copies
from spinney.files.digests import Digest, Sums
from spinney.files.paths import shown

SHA256 = "sha256"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises UsageError for anything else."""
    try:
        # O_NONBLOCK: a named pipe without a writer must not hold the command up before it is refused.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"cannot read {shown(str(path))}: {error.strerror}; name a file that can be read"
        ) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError(f"{shown(str(path))} is no regular file; name one, or give '-' to read from stdin")
    with os.fdopen(handle, "rb", buffering=0) as file:
        yield file


class Incoming:
    """A file that is written in pieces, and checked against its given digest.

    Within ``with`` it is open; ``finish`` makes it durable. The file of an incomplete payload is left to the
    caller to remove.
    """

    def __init__(self, path: Path, digest: Digest | None, *, recognizable: bool = False) -> None:
        """``path`` must not exist. ``recognizable``: a repetition is recognized by its SHA-256. Raises
        NotAdmitted for an unknown algorithm."""
        self.path = path
        self.size_bytes = 0
        algorithms = [digest.algorithm] if digest else []
        self._digest, self._sums = digest, Sums({*algorithms, SHA256} if recognizable else algorithms)
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._file = self.path.open("xb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, piece: bytes) -> None:
        """Append the next bytes to the file, and to its digests."""
        assert self._file is not None, "it is written within its 'with'"
        self._sums.update(piece)
        self.size_bytes += len(piece)
        copies.write_all(self._file, piece)

    @property
    def sha256(self) -> str:
        """The SHA-256 of all that has been written, in hexadecimal; computed where ``recognizable`` is
        set."""
        return self._sums.values()[SHA256]

    def copy(self, source: BinaryIO) -> None:
        """Append the content of ``source`` from its position on, which for stdin need not be the beginning. Raises
        Refused when it changed while it was read."""
        start = source.tell() if source.seekable() else 0
        while piece := source.read(copies.CHUNK_BYTES):
            self.write(piece)
        status = os.fstat(source.fileno())
        size_bytes = status.st_size - start
        if stat.S_ISREG(status.st_mode) and size_bytes != self.size_bytes:
            raise Refused(
                f"'{shown(self.path.name)}' has {size_bytes} bytes, and {self.size_bytes} were read: it changes; "
                f"submit it when it is complete"
            )

    def finish(self) -> None:
        """Make the file durable, but not its name: the caller syncs the folder. Raises Refused when it does
        not have the given digest."""
        assert self._file is not None, "it is finished within its 'with'"
        os.fsync(self._file.fileno())
        with refused():
            self._sums.require(self._digest, self.path.name)
