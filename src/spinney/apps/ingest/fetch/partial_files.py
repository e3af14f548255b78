"""A file to fetch, whose size and digest are compared with the given ones as early as possible; and its part: an
incomplete file, kept so that received bytes need not be fetched again, and verified before it is used.

Beside the bytes is a mark: how many of them are on disk, their digests up to there, and the validator to request
the rest with. The mark is replaced by a rename after the bytes were synced. Bytes after it are dropped, since
they may be anything after a crash; bytes before it are read again and must have the digests. So a mark that
belongs to other bytes, as of an older part, is detected.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest.fetch.errors import Differs, Halt, TryFailed
from spinney.apps.ingest.fetch.rules import Fetched, RemoteFile, Rules
from spinney.files import copies
from spinney.files.digests import Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFile:
    """A file to fetch, with its limits and the place of its bytes until it is complete."""

    file: RemoteFile
    source: str
    """A hash of the URL, which the mark of a part must name so that the part is used."""
    target: Path
    """Its final path, in a folder that exists."""
    path: Path
    """The path of its part."""
    algorithms: Collection[str]
    rules: Rules
    halt: Halt
    is_new: bool
    """Whether there is no part and no mark of an earlier try."""
    count_bytes: Callable[[int], None]
    """Called with the size of each piece that is received, without those of an earlier try."""

    @property
    def mark(self) -> Path:
        """Return the path of the mark, beside the part."""
        return self.path.with_suffix(".json")

    def fetched(self, size_bytes: int, sums: Mapping[str, str]) -> Fetched:
        """Return the result, for a file of this size and these digests."""
        return Fetched(name=self.file.name, source=self.source, size_bytes=size_bytes, sums=dict(sums))

    @property
    def compares(self) -> bool:
        """Return whether a size or a digest was given, by which an incomplete file is noticed."""
        return self.file.size_bytes is not None or self.file.digest is not None

    def check_announced(self, announced_bytes: int | None) -> None:
        """Check the size that a server announces; None: it announces none. Raises Differs, or TryFailed above
        the limit."""
        if announced_bytes is None:
            return
        self._within(announced_bytes)
        if self.file.size_bytes not in (None, announced_bytes):
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"{announced_bytes:,} bytes")

    def check_received(self, received_bytes: int) -> None:
        """Check the number of bytes received so far, so that an endless file ends. Raises Differs, or
        TryFailed above the limit."""
        self._within(received_bytes)
        if self.file.size_bytes is not None and received_bytes > self.file.size_bytes:
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"at least {received_bytes:,} bytes")

    def check_whole(self, received_bytes: int, sums: Mapping[str, str]) -> None:
        """Check the whole file. ``sums`` has the digests by algorithm, that of the given digest among them.
        Raises Differs, which names both values."""
        if self.file.size_bytes not in (None, received_bytes):
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"{received_bytes:,} bytes")
        digest = self.file.digest
        if digest is not None and sums[digest.algorithm] != digest.value:
            raise Differs(f"{digest.algorithm} digest", digest.value, sums[digest.algorithm])

    def _within(self, received_bytes: int) -> None:
        largest_bytes = self.rules.largest_bytes
        if largest_bytes is not None and received_bytes > largest_bytes:
            raise TryFailed(
                f"it is larger than the {largest_bytes:,} bytes that are allowed; {self.rules.too_large_advice}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The data about the whole file from the answer with which the part began."""

    source: str
    """A hash of the URL."""
    condition: str | None
    """A validator for ``If-Range``; without it the part cannot be resumed."""
    size_bytes: int | None
    """The size of the whole file, if the server gave it."""


class Part:
    """An open part: bytes are added at its end, and its digests are updated. It belongs to one thread."""

    def __init__(self, wanted: WantedFile, file: BinaryIO, head: Head, sums: Sums, size_bytes: int) -> None:
        self.head = head
        self.size_bytes = size_bytes
        self._wanted = wanted
        self._file = file
        self._sums = sums
        self._marked_bytes = size_bytes
        self._marked_at = time.monotonic()

    @property
    def path(self) -> Path:
        """Return the path of the file that the bytes are written to until the part is complete."""
        return self._wanted.path

    @property
    def sums(self) -> Mapping[str, str]:
        """The digests of the bytes received so far."""
        return self._sums.values()

    def write(self, chunk: bytes) -> None:
        """Add bytes that were received; from time to time they are synced and marked. Raises Halted when aborted,
        Differs or TryFailed where they are too many."""
        self._wanted.halt.check()
        self._wanted.check_received(self.size_bytes + len(chunk))
        copies.write_all(self._file, chunk)
        self._sums.update(chunk)
        self.size_bytes += len(chunk)
        rules = self._wanted.rules
        since_bytes = self.size_bytes - self._marked_bytes
        if since_bytes >= rules.mark_bytes or time.monotonic() - self._marked_at >= rules.mark_s:
            self.mark()
        self._wanted.count_bytes(len(chunk))

    def mark(self) -> None:
        """Make the bytes durable, and write the mark; nothing for a part that cannot be resumed."""
        if self.head.condition is None or self.size_bytes == self._marked_bytes:
            return
        os.fdatasync(self._file.fileno())
        mark = {"head": asdict(self.head), "at": self.size_bytes, "sums": self.sums}
        copies.write_durably(self._wanted.mark, json.dumps(mark))
        self._marked_bytes, self._marked_at = self.size_bytes, time.monotonic()

    def close(self) -> None:
        """Close the file; what was written since the last mark is lost to the next try."""
        self._file.close()


def new_part(wanted: WantedFile, head: Head) -> Part:
    """Make a new, empty part, and remove an older one of that name."""
    if not wanted.is_new:
        remove_part(wanted)
    return Part(wanted, wanted.path.open("xb", buffering=0), head, Sums(wanted.algorithms), 0)


def load_part(wanted: WantedFile) -> Part | None:
    """Return the existing part, up to its mark, if it is from the same URL and its digests are right, else None.

    Its bytes are read again, which is quicker than to fetch them. Bytes after the mark are cut off. Raises
    Halted when aborted while it is read.
    """
    if wanted.is_new:
        return None
    mark = _read_mark(wanted.mark)
    if mark is None:
        return None
    head, marked_bytes, sums_ = mark
    if (
        head.source != wanted.source
        or head.condition is None
        or marked_bytes <= 0
        or not set(sums_) & set(wanted.algorithms)
    ):
        return None
    try:
        file = os.fdopen(os.open(wanted.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b", buffering=0)
    except OSError:
        return None
    sums, remaining_bytes = Sums(wanted.algorithms), marked_bytes
    with ExitStack() as unless_right:
        unless_right.enter_context(file)
        while remaining_bytes and (chunk := file.read(min(remaining_bytes, copies.CHUNK_BYTES))):
            wanted.halt.check()
            sums.update(chunk)
            remaining_bytes -= len(chunk)
        if remaining_bytes or any(sums_.get(a, v) != v for a, v in sums.values().items()):
            return None
        unless_right.pop_all()
    file.truncate(marked_bytes)
    file.seek(marked_bytes)
    return Part(wanted, file, head, sums, marked_bytes)


def remove_part(wanted: WantedFile) -> None:
    """Remove a part and its mark, if they exist."""
    wanted.mark.unlink(missing_ok=True)
    wanted.path.unlink(missing_ok=True)


def _read_mark(path: Path) -> tuple[Head, int, Mapping[str, str]] | None:
    try:
        mark = json.loads(path.read_text(encoding="utf-8"))
        head = Head(**mark["head"])
        return head, int(mark["at"]), dict(mark["sums"])
    except (OSError, ValueError, KeyError, TypeError):
        # Missing, or of another version: the part is fetched from the beginning.
        return None
