"""Dates of files as their depositors write them, as far as they can be read."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def moment(text: str | None) -> datetime | None:
    """What a date in the form of ISO 8601 or of mail (RFC 5322) means; without a zone it is taken as UTC. None for any
    other, for ambiguous ones such as 05/04/2026 among them."""
    if not text:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
            found = found.replace(tzinfo=found.tzinfo or UTC)
            found.timestamp()
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        return found
    return None
