"""One try to fetch a ``file:`` URL: a copy of a file below an admitted root."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from spinney.apps.ingest.fetching.errors import TryFailed
from spinney.apps.ingest.fetching.partial_files import Head, Part, Place, new_part
from spinney.apps.ingest.fetching.size_checks import Measure
from spinney.apps.ingest.files import copies, paths


def size_of(root: Path, path: str) -> int:
    """Return the size of the file. Raises NotAdmitted, OSError."""
    with paths.opened_beneath(root, path) as file:
        return os.fstat(file.fileno()).st_size


def copy_file(
    place: Place, source: str, root: Path, path: str, measure: Measure, count_bytes: Callable[[int], None]
) -> Part:
    """Copy a file, and return a part with all its bytes. Raises TryFailed, NotAdmitted, OSError; Halted when
    aborted."""
    with paths.opened_beneath(root, path) as file:
        before = os.fstat(file.fileno())
        measure.check_announced(before.st_size)
        modified = datetime.fromtimestamp(before.st_mtime, UTC).isoformat()
        # Without a condition: copying again is quicker than checking whether the file is unchanged.
        part = new_part(
            place, Head(source=source, condition=None, size_bytes=before.st_size, modified=modified)
        )
        try:
            while chunk := file.read(copies.CHUNK_BYTES):
                measure.check_received(part.size_bytes + len(chunk))
                part.write(chunk)
                count_bytes(len(chunk))
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise TryFailed("it was changed while it was read; let it rest, then retry", retryable=True)
        except BaseException:
            part.close()
            raise
    return part
