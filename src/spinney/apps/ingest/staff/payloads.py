"""A payload that is handed in: opened with care, and copied durably while it is checked."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.digests import Digest, Sums
from spinney.apps.ingest.files.paths import shown
from spinney.errors import Refused, UsageError

SHA256 = "sha256"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, to be read. Raises UsageError for anything else."""
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
    """A file that is written as it comes, and checked against the digest that was given of it."""

    def __init__(self, path: Path, given: Digest | None, *, known_again: bool = False) -> None:
        """``path`` must not be there. ``known_again``: it may come once more, and has to be known by its SHA-256.
        Raises NotAdmitted for an algorithm that is not known."""
        self.path = path
        self.size_bytes = 0
        algorithms = [given.algorithm] if given else []
        self._given, self._sums = given, Sums({*algorithms, SHA256} if known_again else algorithms)
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._file = self.path.open("xb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, piece: bytes) -> None:
        """Append the next bytes."""
        assert self._file is not None, "it is written within its 'with'"
        self._sums.update(piece)
        self.size_bytes += len(piece)
        copies.write_all(self._file, piece)

    @property
    def sha256(self) -> str:
        """Of all that has been written, where it was to be known again."""
        return self._sums.values()[SHA256]

    def copy(self, source: BinaryIO) -> None:
        """Append all that ``source`` has. Raises Refused when it changed while it was read."""
        while piece := source.read(copies.CHUNK_BYTES):
            self.write(piece)
        found = os.fstat(source.fileno())
        if stat.S_ISREG(found.st_mode) and found.st_size != self.size_bytes:
            raise Refused(
                f"'{shown(self.path.name)}' has {found.st_size} bytes, and {self.size_bytes} were read: it changes; "
                f"hand it in when it is whole"
            )

    def finish(self) -> None:
        """Make it durable. Raises Refused when it has not the digest that was given."""
        assert self._file is not None, "it is finished within its 'with'"
        os.fsync(self._file.fileno())
        given, values = self._given, self._sums.values()
        if given is not None and values[given.algorithm] != given.value:
            raise Refused(
                f"'{shown(self.path.name)}' has the {given.algorithm} {values[given.algorithm]}, not {given.value} as "
                f"was given; hand in the file that is meant"
            )
