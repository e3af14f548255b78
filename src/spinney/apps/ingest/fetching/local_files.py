"""One try of one ``file:`` URL: a copy of what lies below an admitted root."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from spinney.apps.ingest.fetching.errors import Trouble
from spinney.apps.ingest.fetching.partial_files import Head, Part, Place, begun
from spinney.apps.ingest.fetching.size_checks import Measure
from spinney.apps.ingest.files import copies, paths


def size_of(root: Path, path: str) -> int:
    """How large the file is. Raises NotAdmitted, OSError."""
    with paths.opened_beneath(root, path) as file:
        return os.fstat(file.fileno()).st_size


def copied(
    place: Place, source: str, root: Path, path: str, measure: Measure, heard: Callable[[int], None]
) -> Part:
    """A part with all the bytes of the file. Raises Trouble, NotAdmitted, OSError; Halted when called off."""
    with paths.opened_beneath(root, path) as file:
        before = os.fstat(file.fileno())
        measure.total(before.st_size)
        modified = datetime.fromtimestamp(before.st_mtime, UTC).isoformat()
        # Without a condition: copying anew is quicker than finding out whether the file is still the same.
        part = begun(place, Head(source=source, condition=None, size_bytes=before.st_size, modified=modified))
        try:
            while chunk := file.read(copies.CHUNK_BYTES):
                measure.so_far(part.size_bytes + len(chunk))
                part.write(chunk)
                heard(len(chunk))
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise Trouble("it was changed while it was read; let it rest, then retry", retryable=True)
        except BaseException:
            part.close()
            raise
    return part
