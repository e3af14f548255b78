"""The options of a job (queue, priority, time, …) as fields of a form.

Each field is checked by itself with ``Options``, so that each wrong one is reported at its place and in the
words of the API; a field that is left empty is an option that is left out."""

from collections.abc import Mapping
from typing import Any

from spinney.define.job.options import Options
from spinney.model.errors import UsageError
from spinney.model.values.texts import whole_number
from spinney.model.values.times import from_us, parse_time

LABELS = {
    "queue": "Queue",
    "priority": "Priority",
    "share": "Share",
    "collection": "Collection",
    "key": "Key",
    "at": "Not before",
}
"""The labels of the fields, by the names of the options."""
OPTIONS = tuple(LABELS)
"""The names of the fields, in their order."""


def read(values: Mapping[str, str], now_us: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options that a form names, as ``Options`` takes them, and by field what is wrong with the others.
    ``now_us``: microseconds since 1970, from which relative times count."""
    options: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name in OPTIONS:
        text = values.get(name, "").strip()
        if not text:
            continue
        try:
            value = _value(name, text, now_us)
            Options(**{name: value})
            options[name] = value
        except UsageError as error:
            wrong[name] = str(error)
    return options, wrong


def _value(name: str, text: str, now_us: int) -> Any:
    """Return the value of an option as ``Options`` takes it. Raises UsageError."""
    if name == "at":
        try:
            return from_us(parse_time(text, now_us, ahead=True))
        except OverflowError:
            raise UsageError(f"{text[:40]!r} is after the year 9999; enter an earlier time") from None
    if name != "priority":
        return text
    priority = whole_number(text, digits=2)
    if priority is None:
        raise UsageError(f"{text[:40]!r} is not a priority; enter 0 (first) to 99 (last)")
    return priority
