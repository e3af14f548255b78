"""Checks whether a file that has its final name is the right file, by reading all of it again."""

import os
import stat
import threading
from collections.abc import Collection
from pathlib import Path

from spinney.apps.ingest.fetching.errors import Halted
from spinney.apps.ingest.fetching.journal import Entry
from spinney.apps.ingest.fetching.rules import Fetched, RemoteFile
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.digests import Sums


def existing_file(
    target: Path,
    file: RemoteFile,
    entry: Entry | None,
    algorithms: Collection[str],
    halt: threading.Event,
) -> Fetched | None:
    """Return the file at ``target`` if it has the given size and digest, or else those in the journal; else None.

    ``entry`` is the journal's line for the same name and URL. Raises Halted, OSError.
    """
    if file.digest is None and entry is None:
        return None
    size_bytes = file.size_bytes if file.size_bytes is not None or entry is None else entry.size_bytes
    result = _read(target, size_bytes, algorithms, halt)
    if result is None:
        return None
    size_bytes, sums = result
    if file.digest is not None:
        is_right = sums[file.digest.algorithm] == file.digest.value
    else:
        is_right = entry is not None and _matches(entry, size_bytes, sums)
    if not is_right:
        return None
    modified = entry.modified_at if entry is not None and _matches(entry, size_bytes, sums) else None
    return Fetched(name=file.name, size_bytes=size_bytes, sums=sums, modified=modified)


def _matches(entry: Entry, size_bytes: int, sums: dict[str, str]) -> bool:
    common = sums.keys() & entry.sums.keys()
    return entry.size_bytes == size_bytes and bool(common) and all(sums[a] == entry.sums[a] for a in common)


def _read(
    target: Path, size_bytes: int | None, algorithms: Collection[str], halt: threading.Event
) -> tuple[int, dict[str, str]] | None:
    try:
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or size_bytes not in (None, status.st_size):
            return None
        sums, read_bytes = Sums(algorithms), 0
        while chunk := file.read(copies.CHUNK_BYTES):
            if halt.is_set():
                raise Halted
            sums.update(chunk)
            read_bytes += len(chunk)
    return read_bytes, sums.values()
