"""A file that is not whole yet, kept so that what has come need not come again, and is not trusted blindly.

Beside the bytes lies a mark: how far they are on disk, their digests up to there, and what the rest may
be asked for with. The mark is replaced in one rename after the bytes were synced. Whatever stands
behind it is dropped, for after a crash nobody knows what it is; what stands before it is read again and
must have the digests. So a mark that belongs to other bytes, an older part's say, proves itself wrong.
"""

import contextlib
import json
import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest.fetching.errors import Halted
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.digests import Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What was said about the whole file when the part was begun."""

    source: str
    """A hash of the URL."""
    condition: str | None
    """A validator for ``If-Range``; without it the part cannot be resumed."""
    size_bytes: int | None
    """Of the whole file, when told."""
    modified: str | None
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a part and its mark lie, and what goes with every part."""

    path: Path
    algorithms: Collection[str]
    rules: Rules
    given: Surroundings
    halt: threading.Event

    @property
    def mark(self) -> Path:
        return self.path.with_suffix(".json")


class Part:
    """An open part: bytes are added at its end, digests keep step."""

    def __init__(self, place: Place, file: BinaryIO, head: Head, sums: Sums, size_bytes: int) -> None:
        self.head = head
        self.size_bytes = size_bytes
        self._place = place
        self._file = file
        self._sums = sums
        self._marked_bytes = size_bytes
        self._marked_at = place.given.now()

    @property
    def sums(self) -> Mapping[str, str]:
        """Digests of what has come so far."""
        return self._sums.values()

    def write(self, chunk: bytes) -> None:
        """Add bytes; from time to time they are synced and marked. Raises Halted when called off."""
        if self._place.halt.is_set():
            raise Halted
        left = memoryview(chunk)
        while left:
            left = left[self._file.write(left) :]
        self._sums.update(chunk)
        self.size_bytes += len(chunk)
        rules = self._place.rules
        since_bytes = self.size_bytes - self._marked_bytes
        if since_bytes >= rules.mark_bytes or self._place.given.now() - self._marked_at >= rules.mark_s:
            self.mark()

    def mark(self) -> None:
        """Make what has come durable, and say so; nothing when it could not be resumed anyhow."""
        if self.head.condition is None or self.size_bytes == self._marked_bytes:
            return
        os.fdatasync(self._file.fileno())
        mark = {"head": asdict(self.head), "at": self.size_bytes, "sums": self.sums}
        copies.write_durably(self._place.mark, json.dumps(mark))
        self._marked_bytes, self._marked_at = self.size_bytes, self._place.given.now()

    def close(self) -> None:
        self._file.close()


def begun(place: Place, head: Head) -> Part:
    """A new, empty part; an older one of that name is gone."""
    dropped(place)
    return Part(place, place.path.open("xb", buffering=0), head, Sums(place.algorithms), 0)


def kept(place: Place, source: str) -> Part | None:
    """The part that stands, up to its mark, when it comes from that URL and its digests are right.

    Raises Halted when called off while it is read.
    """
    found = _marked(place.mark)
    if found is None:
        return None
    head, at, marked = found
    if head.source != source or head.condition is None or at <= 0 or not set(marked) & set(place.algorithms):
        return None
    try:
        file = os.fdopen(os.open(place.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b", buffering=0)
    except OSError:
        return None
    sums = _read_again(file, at, place)
    if sums is None or any(marked.get(a, v) != v for a, v in sums.values().items()):
        file.close()
        return None
    file.truncate(at)
    file.seek(at)
    return Part(place, file, head, sums, at)


def dropped(place: Place) -> None:
    """Remove a part and its mark, if they are there."""
    for path in (place.mark, place.path):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _read_again(file: BinaryIO, size_bytes: int, place: Place) -> Sums | None:
    sums, left = Sums(place.algorithms), size_bytes
    try:
        while left and (chunk := file.read(min(left, copies.CHUNK_BYTES))):
            if place.halt.is_set():
                raise Halted
            sums.update(chunk)
            left -= len(chunk)
    except BaseException:
        file.close()
        raise
    return None if left else sums


def _marked(path: Path) -> tuple[Head, int, Mapping[str, str]] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        head = Head(**found["head"])
        return head, int(found["at"]), dict(found["sums"])
    except (OSError, ValueError, KeyError, TypeError):
        # Not there, or not of this version: the part is begun anew.
        return None
