"""The journal of a folder, and the check whether a file that has its final name is the right one.

The journal has the fetched files with their URLs and digests. It is used only where a depositor gave no digest: then it
shows whether an existing file is the one that was fetched. The file is read again to verify its line, so that a wrong
or missing line only causes another download; therefore the journal is never synced.
"""

import os
import threading
from pathlib import Path

import orjson

from spinney.apps.ingest.fetch.partial_files import WantedFile
from spinney.apps.ingest.fetch.rules import Fetched
from spinney.files import copies, paths
from spinney.files.digests import Sums
from spinney.files.paths import NotAdmitted


class Journal:
    """A file of JSON lines that is only appended to. Threads may add at once; processes exclude each other by
    the folder's lock.

    A line that a crash has torn is ended when the journal is opened, so that the next one is read again.
    """

    def __init__(self, path: Path) -> None:
        self.entries: dict[str, Fetched] = {}
        """The latest entry of each name, as of the opening of the journal."""
        self._file = path.open("a+b", buffering=0)
        self._adding = threading.Lock()
        self._read()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def add(self, entry: Fetched) -> None:
        """Append the line of a file that was fetched; several threads may do so at once."""
        with self._adding:
            copies.write_all(self._file, orjson.dumps(entry) + b"\n")

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
            self._file.write(b"\n")


def _entry(line: bytes) -> Fetched | None:
    try:
        entry = Fetched(**orjson.loads(line))
    except (ValueError, TypeError):
        return None
    return entry if isinstance(entry.sums, dict) else None


# --- existing files ---------------------------------------------------------------------------


def existing_file(wanted: WantedFile, journal: Journal) -> Fetched | None:
    """Return the file that has its final name if it has the given size and digest, or else those in the journal; None
    where it has not, or nothing is known to compare it with.

    The journal's line counts if it is of the same URL. The file is read in full. Raises Halted, OSError.
    """
    file = wanted.file
    entry = journal.entries.get(file.name)
    if entry is not None and entry.source != wanted.source:
        entry = None
    if file.digest is None and entry is None:
        return None
    size_bytes = file.size_bytes if file.size_bytes is not None or entry is None else entry.size_bytes
    existing = _read(wanted, size_bytes)
    if existing is None:
        return None
    if file.digest is None:
        is_right = entry is not None and _matches(entry, existing)
    else:
        is_right = existing.sums[file.digest.algorithm] == file.digest.value
    return existing if is_right else None


def _matches(entry: Fetched, existing: Fetched) -> bool:
    """Return whether a file has the size of an entry and all digests that both have, at least one."""
    common = existing.sums.keys() & entry.sums.keys()
    is_same = all(existing.sums[algorithm] == entry.sums[algorithm] for algorithm in common)
    return entry.size_bytes == existing.size_bytes and bool(common) and is_same


def _read(wanted: WantedFile, size_bytes: int | None) -> Fetched | None:
    """Return the regular file that has the final name, with its digests; None for a link or anything else, for one that
    this user may not read, as a node of another user may have left it, and for another size than ``size_bytes``."""
    target = wanted.target
    try:
        with paths.opened_beneath(target.parent, target.name) as file:
            if size_bytes not in (None, os.fstat(file.fileno()).st_size):
                return None
            sums = Sums(wanted.algorithms)
            return wanted.fetched(sums.read(file, wanted.halt.check), sums.values())
    except (NotAdmitted, PermissionError):
        return None
