"""The journal of a folder, and the check whether a file that has its final name is the right one.

The journal has the fetched files with their URLs and digests. It is used only where a depositor gave no digest: then it
shows whether an existing file is the one that was fetched. The file is read again to verify its line, so that a wrong
or missing line only causes another download; therefore the journal is never synced.
"""

import os
import stat
import threading
from collections.abc import Collection
from pathlib import Path

import orjson

from spinney.apps.ingest.fetching.errors import Halt
from spinney.apps.ingest.fetching.rules import Fetched, RemoteFile
from spinney.files import copies
from spinney.files.digests import Sums


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


def existing_file(
    target: Path,
    file: RemoteFile,
    source: str,
    journal: Journal,
    algorithms: Collection[str],
    halt: Halt,
) -> Fetched | None:
    """Return the file at ``target`` if it has the given size and digest, or else those in the journal; None
    where it has not, or nothing is known to compare it with.

    The journal's line counts if it is of the same URL, of which ``source`` is the hash. The file is read in full.
    Raises Halted, OSError.
    """
    entry = journal.entries.get(file.name)
    if entry is not None and entry.source != source:
        entry = None
    if file.digest is None and entry is None:
        return None
    size_bytes = file.size_bytes if file.size_bytes is not None or entry is None else entry.size_bytes
    result = _read(target, size_bytes, algorithms, halt)
    if result is None:
        return None
    size_bytes, sums = result
    if file.digest is None:
        is_right = entry is not None and _matches(entry, size_bytes, sums)
    else:
        is_right = sums[file.digest.algorithm] == file.digest.value
    return Fetched(name=file.name, source=source, size_bytes=size_bytes, sums=sums) if is_right else None


def _matches(entry: Fetched, size_bytes: int, sums: dict[str, str]) -> bool:
    """Return whether a file has the size of an entry and all digests that both have, at least one."""
    common = sums.keys() & entry.sums.keys()
    return entry.size_bytes == size_bytes and bool(common) and all(sums[a] == entry.sums[a] for a in common)


def _read(
    target: Path, size_bytes: int | None, algorithms: Collection[str], halt: Halt
) -> tuple[int, dict[str, str]] | None:
    """Return size and digests of a regular file; None for a link or anything else, and for another size than
    ``size_bytes``."""
    try:
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or size_bytes not in (None, status.st_size):
            return None
        sums = Sums(algorithms)
        return sums.read(file, halt.check), sums.values()
