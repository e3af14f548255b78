"""Conversion of data to the values that a database stores, without any database."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from spinney.apps.ingest.files.digests import ALGORITHMS
from spinney.apps.ingest.inventory.file_spans import Content
from spinney.apps.ingest.inventory.model import File

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def content(file: File, digests: Mapping[str, str]) -> Content:
    """Return the values by which files are compared; ``digests`` are checked ones."""
    values = (bytes.fromhex(digests[a]) if a in digests else None for a in ALGORITHMS)
    return (file.path, file.size_bytes, file.mime_type, file.modified, *values)


def micros(when: datetime) -> int:
    """Return microseconds since 1970 UTC. Raises ValueError for a time without a zone."""
    if when.tzinfo is None:
        raise ValueError(f"{when!r} does not say its time zone; give an aware time")
    return (when - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
