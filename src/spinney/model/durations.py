"""Lengths of time as people write them: ``30d``, ``1d12h``, ``90s``."""

import re

from spinney.model.errors import UsageError

_UNITS = {"w": 7 * 86_400, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_PART = r"(\d{1,12}(?:\.\d{1,6})?)([wdhms])"
_WHOLE = re.compile(rf"(?:{_PART})+")
_EACH = re.compile(_PART)


def seconds(text: str) -> float:
    """How many seconds ``text`` means. Raises UsageError for what is no length of time."""
    plain = text.strip().lower()
    if not _WHOLE.fullmatch(plain):
        raise UsageError(
            f"{text!r} is no length of time; write numbers with w, d, h, m or s, as in 30d, 12h or 1h30m"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _EACH.findall(plain))


def shown(seconds: float) -> str:
    """In the largest unit of which it is a whole number: ``30 days``, ``36 hours``, ``1.5 seconds``."""
    for unit, name in _NAMES.items():
        number = seconds / _UNITS[unit]
        if (number >= 1 and number == int(number)) or unit == "s":
            return f"{number:,.6g} {name}{'' if number == 1 else 's'}"
    raise AssertionError(seconds)
