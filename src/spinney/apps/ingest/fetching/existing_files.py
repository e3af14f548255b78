"""Whether a file that stands under its name is the one wanted. It is read again whole: names prove nothing."""

import os
import stat
import threading
from collections.abc import Collection
from pathlib import Path

from spinney.apps.ingest.fetching.errors import Halted
from spinney.apps.ingest.fetching.journal import Entry
from spinney.apps.ingest.fetching.rules import Fetched, Wanted
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.digests import Sums


def standing(
    target: Path,
    one: Wanted,
    entry: Entry | None,
    algorithms: Collection[str],
    halt: threading.Event,
) -> Fetched | None:
    """The file at ``target`` when it has the size and digest given, else those in the journal; or None.

    ``entry`` is the journal's line for the same name and URL. Raises Halted, OSError.
    """
    if one.digest is None and entry is None:
        return None
    size_bytes = one.size_bytes if one.size_bytes is not None or entry is None else entry.size_bytes
    found = _read(target, size_bytes, algorithms, halt)
    if found is None:
        return None
    size_bytes, sums = found
    if one.digest is not None:
        right = sums[one.digest.algorithm] == one.digest.value
    else:
        right = entry is not None and _borne_out(entry, size_bytes, sums)
    if not right:
        return None
    modified = entry.modified_at if entry is not None and _borne_out(entry, size_bytes, sums) else None
    return Fetched(name=one.name, size_bytes=size_bytes, sums=sums, modified=modified)


def _borne_out(entry: Entry, size_bytes: int, sums: dict[str, str]) -> bool:
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
        is_local = os.fstat(handle)
        if not stat.S_ISREG(is_local.st_mode) or size_bytes not in (None, is_local.st_size):
            return None
        sums, came_bytes = Sums(algorithms), 0
        while chunk := file.read(copies.CHUNK_BYTES):
            if halt.is_set():
                raise Halted
            sums.update(chunk)
            came_bytes += len(chunk)
    return came_bytes, sums.values()
