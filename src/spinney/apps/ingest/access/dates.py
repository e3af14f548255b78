"""Parsing of the dates of files that depositors write."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def moment(text: str | None) -> datetime | None:
    """Parse a date in the format of ISO 8601 or of mail (RFC 5322), by default in UTC. Return None for other formats,
    also for ambiguous ones such as 05/04/2026."""
    if not text:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            date = date.replace(tzinfo=date.tzinfo or UTC)
            date.timestamp()
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        return date
    return None
