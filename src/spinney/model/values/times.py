"""Times as people write them: ``2h`` ago or from now, or ``2030-01-31T08:00``."""

import time
from datetime import UTC, datetime, timedelta

from spinney.model.errors import UsageError
from spinney.model.values import durations

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_us(at_us: int) -> datetime:
    """Return a time in UTC, exact to the microsecond. Raises OverflowError behind the end of the calendar."""
    return EPOCH + timedelta(microseconds=at_us)


def to_us(moment: datetime) -> int:
    """Return a time with a zone in microseconds since 1970 UTC."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def utc_text(at_us: int) -> str:
    """Return a time as ``2026-11-21 20:14:03 UTC``. Raises OverflowError behind the end of the calendar."""
    return f"{from_us(at_us):%Y-%m-%d %H:%M:%S} UTC"


def now_us() -> int:
    """Return this host's time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def parse_time(text: str, now_us: int, *, ahead: bool = False, where: str = "") -> int:
    """Return the time that a text names, in microseconds since 1970 UTC: so long ago (``ahead``: from now), or of the
    calendar, in this host's zone unless it has one. A time that the clock of the zone shows twice is the first of the
    two, and one that the clock skips is read as if it had not been put forward. ``where`` names the option of a command
    in the message of the UsageError for another text. Where it is empty, the text comes from a page of the server,
    whose zone may not be the reader's, and so the message shows a time with a zone.
    """
    try:
        away_us = round(durations.seconds(text) * 1e6)
        return now_us + away_us if ahead else max(0, now_us - away_us)
    except UsageError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        at_us = to_us(moment) if moment.tzinfo else _local_us(moment)
        return at_us if ahead else max(0, at_us)
    except (ValueError, OverflowError, OSError):
        how = "how long from now" if ahead else "how long ago"
        raise UsageError(
            f"{where}{where and ' '}{text[:60]!r} is no time; write {how}, as in 90m, 2h or 3d, or when, as in "
            f"2030-01-31T08:00{'' if where else 'Z'}"
        ) from None


def _local_us(moment: datetime) -> int:
    """Return a time without a zone, which is of this host's zone, in microseconds since 1970 UTC.

    ``astimezone`` would do for all but the times that the clock skips: of these it returns one before the change."""
    return round(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond
