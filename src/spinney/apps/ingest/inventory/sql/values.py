"""Nouns as values that a database keeps, known without one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from spinney.apps.ingest.files.digests import ALGORITHMS
from spinney.apps.ingest.inventory.file_spans import Content
from spinney.apps.ingest.inventory.model import File

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def content(file: File, digests: Mapping[str, str]) -> Content:
    """What makes this file the same as another; ``digests`` are checked ones."""
    values = (bytes.fromhex(digests[a]) if a in digests else None for a in ALGORITHMS)
    return (file.path, file.size_bytes, file.mime_type, file.modified, *values)


def micros(when: datetime) -> int:
    """Raises ValueError for a time that does not say its zone."""
    if when.tzinfo is None:
        raise ValueError(f"{when!r} does not say its time zone; give an aware time")
    return (when - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
