"""The delay before a message is tried again. No I/O.

``draw``, a number from 0 to 1 (by default at random), spreads messages that failed at the same time by shortening the
delay by up to a quarter: a server that comes back would otherwise get all of them at once.
"""

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SPREAD = 0.25
"""The part of a delay that is drawn at random."""


def by_age_s(age_s: float, *, least_s: float, most_s: float, draw: float | None = None) -> float:
    """Return the delay in seconds of a message that has been tried for ``age_s``: a quarter of that, within bounds.

    It needs no count of tries, and an outage of a day costs some dozens of them.
    """
    return _spread(min(max(least_s, age_s / 4), most_s), draw)


def by_tries_s(tries: int, *, least_s: float, most_s: float, draw: float | None = None) -> float:
    """Return the delay in seconds after the ``tries``-th try (from 1): three times as long each time, within bounds."""
    return _spread(min(least_s * 3.0 ** min(tries - 1, 30), most_s), draw)


def retry_after_s(header: str, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110, section 10.2.3: seconds, or a date); None when
    it has no valid value. ``now``: seconds since 1970."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.fromtimestamp(now, UTC)).total_seconds())


def _spread(delay_s: float, draw: float | None) -> float:
    share = random.random() if draw is None else draw  # noqa: S311 - it only spreads what failed together
    return delay_s * (1 - _SPREAD * share)
