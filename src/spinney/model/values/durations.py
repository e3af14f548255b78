"""Durations as people write them: ``30d``, ``1d12h``, ``90s``; a number of seconds; a ``timedelta``."""

import math
import re
from datetime import timedelta

from spinney.model.errors import UsageError

Duration = float | str | timedelta
"""The form of every duration in the API. Text needs units: a bare 30 may be meant as days."""

_UNITS = {"w": 7 * 86_400, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_SYMBOLS = {"d": "d", "h": "h", "m": "min", "s": "s"}
"""The names of units where several stand together."""
_PART = r"(\d{1,12}(?:\.\d{1,6})?)([wdhms])"
_WHOLE = re.compile(rf"(?:{_PART})+")
_EACH = re.compile(_PART)
PATTERN = r"^([0-9]{1,12}(\.[0-9]{1,6})?[wdhms])+$"
"""The pattern of valid texts, for a JSON schema."""


def seconds(length: Duration, where: str = "") -> float:
    """Return how many seconds ``length`` means; ``where`` names the option in the message. A number is returned as it
    is: kept as JSON an int is no float, and what is in a store must not look changed.

    Raises UsageError for an invalid duration. The caller checks the bounds, and whether it may be negative.
    """
    number = _seconds(length)
    if number is None or not math.isfinite(number):
        # A caller that gave the text "30" is not told to give a number: they would give the same text again, and a
        # command line takes nothing but text.
        or_number = "" if isinstance(length, str) else ", or give a number of seconds"
        raise UsageError(
            f"{where}{where and ': '}{length!r:.80} is no length of time; write numbers with w, d, h, m or s, as in "
            f"30d, 12h or 1h30m{or_number}"
        )
    return number


def of_word(word: str | float, where: str = "") -> float:
    """Return the seconds of a word of a command line or a query, where "90" is valid, too.

    It is not for words that select jobs by their age or set how long they are kept: those need a unit.
    """
    try:
        return seconds(float(word), where)
    except (TypeError, ValueError):
        return seconds(word, where)


def optional(length: Duration | None, where: str = "") -> float | None:
    """Return the seconds of a duration that may be None."""
    return None if length is None else seconds(length, where)


def in_seconds(instance: object, *fields: str, where: str = "") -> list[float]:
    """Convert these fields of a (frozen) dataclass to seconds, in its ``__post_init__``, and return them; None stays
    None. Raises UsageError that names the field, preceded by ``where``."""
    times = []
    for field in fields:
        length = getattr(instance, field)
        if length is None:
            continue
        time_s = seconds(length, f"{where}{field}")
        times.append(time_s)
        object.__setattr__(instance, field, time_s)
    return times


def _seconds(length: object) -> float | None:
    """Return the seconds; None: it is no duration."""
    if isinstance(length, str):
        plain = length.strip().lower()
        if not _WHOLE.fullmatch(plain):
            return None
        return sum(float(number) * _UNITS[unit] for number, unit in _EACH.findall(plain))
    if isinstance(length, timedelta):
        return length.total_seconds()
    if isinstance(length, bool) or not isinstance(length, int | float):
        return None
    try:
        float(length)
    except OverflowError:
        return None
    return length


def shown(seconds: float) -> str:
    """Return an exact text: in the largest unit of which it is a whole number, as ``30 days``, ``36 hours`` or ``1.5
    seconds``; where that is a hundred or more, in several units: ``56 min 33 s``."""
    for unit, name in _NAMES.items():
        number = seconds / _UNITS[unit]
        whole = number >= 1 and number == int(number)
        if (whole and (number < 100 or unit == "d")) or (unit == "s" and number < 100):
            return f"{number:,.6g} {name}{'' if number == 1 else 's'}"
    parts, rest = [], seconds
    for unit, symbol in _SYMBOLS.items():
        number, rest = divmod(rest, _UNITS[unit]) if unit != "s" else (round(rest, 6), 0)
        if number:
            parts.append(f"{number:,.9g} {symbol}")
    return " ".join(parts)


def rounded(seconds: float) -> str:
    """Return a measured length of time for people: in whole seconds from a minute on, in minutes from an hour on, in
    hours from a day on."""
    unit = next((unit for least, unit in ((86_400, 3_600), (3_600, 60), (60, 1)) if seconds >= least), None)
    return shown(seconds if unit is None else seconds // unit * unit)
