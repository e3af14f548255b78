"""Cron expressions: which time comes next, in a time zone. Times are seconds since 1970 UTC.

An expression has five fields as in crontab(5), or is one of its words (``@daily``); it names times by
the clock on the wall. Where daylight saving changes that clock, Debian's cron is followed:

* An expression that names its times (neither minute nor hour begins with ``*``) keeps their number: a
  time that the clock skips comes at once after the change, together with others of the skipped hour as
  one; a time that the clock shows twice comes when it is shown first.
* One that repeats (minute or hour begins with ``*``) goes by the clock alone: nothing comes in the
  skipped hour, and what the clock shows twice comes twice.

Only the reading of an expression is cronsim's: its own treatment of zones goes backwards when it starts from within a
repeated hour, and misses times where the clock is moved by half an hour (Lord Howe). The tests hold both against a
clock that is read minute by minute."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from spinney.model.errors import UsageError
from spinney.model.values.hints import did_you_mean

WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_TEXT_MAX = 200
"""The most characters of an expression, so that a message can quote it."""
_SPAN_OF_ONE = re.compile(r"\b0*(\w+)-0*\1/[1-9]\d*", re.IGNORECASE)
"""``5-5/10`` is 5; cronsim takes it for ``5/10``, which is 5, 15, 25 …"""
_EPOCH = datetime(1970, 1, 1)
"""The zero of a clock on the wall, which has no zone. A time of this clock is counted in seconds from here.
"""
_STEP_S = 86_400
"""No zone changes its clock twice within so many seconds, so a change is found by looking at both ends."""
_OF_THE_HOST = ("localtime", "posixrules", "Factory")
"""Names that mean something else on every host."""


def next_after(cron: str, zone: tzinfo, after_s: int) -> int | None:
    """Return the first time of the expression after ``after_s``; None when there is none within 50 years.

    Raises UsageError when the expression cannot be read.
    """
    fields = _fields(cron)
    try:
        return (_by_the_clock if _repeats(fields) else _as_named)(fields, zone, after_s)
    except (OverflowError, ValueError):
        return None  # behind the end of the calendar


def require(cron: str) -> None:
    """Raise UsageError unless the expression can be read and names at least one time."""
    if next_after(cron, UTC, 0) is None:
        raise UsageError(f"the cron expression {cron!r} names no time at all; correct its day and month")


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Return the time zone of an IANA name. Raises UsageError, which suggests the nearest name."""
    if name == "UTC":
        return UTC  # needs no data of the host
    if name not in _OF_THE_HOST and not name.startswith(("posix/", "right/")):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    zones = available_timezones().difference(_OF_THE_HOST)
    if not zones:
        raise UsageError(
            f"this host has no time zones, so {name!r} is not known; install its package tzdata, or use UTC"
        )
    hint = did_you_mean(name, zones)
    raise UsageError(f"there is no time zone {name!r}{hint}; use a name such as Europe/Berlin, or UTC")


# --- by the clock on the wall ------------------------------------------------------------------


def _fields(cron: str) -> str:
    """Return the five fields of an expression. Raises UsageError when they cannot be read."""
    fields = WORDS.get(cron.strip().lower(), cron)
    if fields.startswith("@"):
        raise UsageError(f"there is no cron word {cron!r}; use five fields, or one of {', '.join(WORDS)}")
    if len(fields) > _TEXT_MAX or len(fields.split()) != 5:
        raise UsageError(
            f"the cron expression {cron[:_TEXT_MAX]!r} does not have five fields; write minute, hour, "
            f"day of the month, month, day of the week, as '0 6 * * mon'"
        )
    fields = _SPAN_OF_ONE.sub(r"\1", fields)
    try:
        CronSim(fields, _EPOCH)
    except CronSimError as error:
        raise UsageError(
            f"the cron expression {cron!r} cannot be read ({error}); write minute, hour, "
            f"day of the month, month, day of the week, as '0 6 * * mon'"
        ) from error
    return fields


def _repeats(fields: str) -> bool:
    """Return whether an expression goes by the clock alone, which is when its minute or hour begins with
    ``*``."""
    minute, hour, *_ = fields.split()
    return minute.startswith("*") or hour.startswith("*")


def _shown(fields: str, after_s: int) -> Iterator[int]:
    """Yield the times of the expression after ``after_s`` on a clock without daylight saving time."""
    for shown in CronSim(fields, _EPOCH + timedelta(seconds=after_s)):
        yield (shown - _EPOCH) // timedelta(seconds=1)


def _as_named(fields: str, zone: tzinfo, after_s: int) -> int | None:
    """Return the next time of an expression that names its times: on a day whose clock is changed each
    comes exactly once."""
    # What the clock shows earlier came earlier, or at the same moment: so the first that fits is the next.
    for shown in _shown(fields, after_s + _offset(zone, after_s)):
        at_s = _when_shown(zone, shown)
        if at_s > after_s:
            return at_s
    return None


def _when_shown(zone: tzinfo, shown: int) -> int:
    """Return when the clock of the zone first shows this time; for a skipped time, the moment of the change."""
    wall = _EPOCH + timedelta(seconds=shown)
    first, second = (_as_seconds(zone.utcoffset(wall.replace(fold=fold))) for fold in (0, 1))
    if first >= second:
        return shown - first
    change = _change(zone, shown - second, shown - first, first)
    return shown - first if change is None else change


def _by_the_clock(fields: str, zone: tzinfo, after_s: int) -> int | None:
    """Return the next time of an expression that repeats: whenever the clock shows it."""
    offset = _offset(zone, after_s)
    while True:
        # As if the clock were not changed any more; when it is, once more from that moment on.
        shown = next(_shown(fields, after_s + offset), None)
        if shown is None:
            return None
        change = _change(zone, after_s, shown - offset, offset)
        if change is None:
            return shown - offset
        after_s, offset = change - 1, _offset(zone, change)


def _change(zone: tzinfo, after_s: int, until_s: int, offset: int) -> int | None:
    """Return the first second in (after, until] at which the clock is not ``offset`` seconds ahead of
    UTC; None: there is none.

    It steps by ``_STEP_S``, then halves the step in which the change lies.
    """
    while after_s < until_s:
        step_s = min(after_s + _STEP_S, until_s)
        if _offset(zone, step_s) != offset:
            while step_s - after_s > 1:
                middle_s = (after_s + step_s) // 2
                if _offset(zone, middle_s) == offset:
                    after_s = middle_s
                else:
                    step_s = middle_s
            return step_s
        after_s = step_s
    return None


def _offset(zone: tzinfo, at_s: int) -> int:
    """Return how many seconds the clock of a zone is ahead of UTC at a moment."""
    return _as_seconds(datetime.fromtimestamp(at_s, zone).utcoffset())


def _as_seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(seconds=1)
