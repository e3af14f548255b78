"""The journal of a folder: the fetched files, their URLs and digests.

It is used only where a depositor gave no digest: then it shows whether an existing file is the one
that was fetched. The file is read again to verify its line, so that a wrong or missing line only causes
another download; therefore the journal is never synced.
"""

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file, as it was when it got its name."""

    name: str
    source: str
    """A hash of the URL, which may itself be a secret."""
    size_bytes: int
    sums: Mapping[str, str]
    modified: str | None
    """ISO 8601, UTC."""

    @property
    def modified_at(self) -> datetime | None:
        return datetime.fromisoformat(self.modified) if self.modified else None


class Journal:
    """A file of JSON lines that is only appended to. Threads may add at once."""

    def __init__(self, path: Path) -> None:
        self.entries: dict[str, Entry] = {}
        """The latest entry of each name, as of the opening of the journal."""
        self._file = path.open("a+b", buffering=0)
        self._adding = threading.Lock()
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, entry: Entry) -> None:
        """Append a line."""
        with self._adding:
            self._write(json.dumps(asdict(entry)).encode() + b"\n")

    def _read(self) -> None:
        self._file.seek(0)
        torn = False
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            for line in lines:
                torn = not line.endswith(b"\n")
                entry = _entry(line)
                if entry is not None:
                    self.entries[entry.name] = entry
        if torn:
            self._write(b"\n")

    def _write(self, line: bytes) -> None:
        remaining = memoryview(line)
        while remaining:
            remaining = remaining[self._file.write(remaining) :]


def _entry(line: bytes) -> Entry | None:
    try:
        entry = Entry(**json.loads(line))
        entry.modified_at  # noqa: B018 - a date that is none makes the line none
    except (ValueError, TypeError):
        return None
    return entry if isinstance(entry.sums, dict) else None
