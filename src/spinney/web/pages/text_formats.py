"""Numbers, times and sizes as text for people; templates add the exact value, which is shown on hover."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson

from spinney.model.values.plain_json import plain
from spinney.model.values.times import utc_text

_UNITS = ((31_536_000, "year"), (86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))
_BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB")
_SHORT = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k"))


def number(n: float | None) -> str:
    """Return a number with separators, ``1,204``, a float with one decimal; empty for None."""
    if n is None:
        return ""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.1f}"


def short(n: float) -> str:
    """Return a number in at most about four characters, for small spaces: ``1.2M``. Below ten thousand it is as it
    is."""
    for size, unit in _SHORT:
        if abs(n) >= size:
            scaled = n / (1e3 if unit == "k" else size)
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:,.0f}{unit}"
    return f"{n:,.0f}"


def lasting(seconds: float | None) -> str:
    """Return a length of time as text, in its two largest units: ``340 ms``, ``12 s``, ``3 min 20 s``, ``2 days 3 h``;
    empty for None."""
    if seconds is None:
        return ""
    if seconds < 0:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return _parts(seconds)


def interval(seconds: float) -> str:
    """Return a length of time that somebody has set, and nobody measured: ``5 s`` and not ``5.0 s``."""
    return _parts(seconds) if seconds >= 1 and seconds == int(seconds) else lasting(seconds)


def _parts(seconds: float) -> str:
    """Return a length of time in its two largest units that follow each other: ``2 days 3 h``, and not ``2
    days 5 s``."""
    rest_s = round(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest_s, size)
        if count and len(parts) < 2:
            parts.append(_counted(count, unit))
            rest_s = rest
        elif parts:
            break
    return " ".join(parts) or "0 s"


def ago(at_us: int, now_us: int) -> str:
    """Return a time relative to now: ``3 min ago``, ``just now``; ``in 1 h 59 min`` for one to come, in its two largest
    units, since people plan by it. Both times are in microseconds since 1970; the page's script counts on in the same
    words."""
    seconds = (now_us - at_us) / 1e6
    if abs(seconds) < 5:
        return "just now" if seconds >= 0 else "in a moment"
    if seconds < 0:
        return f"in {_parts(_rounded(-seconds))}"
    whole = int(seconds)
    for size, unit in _UNITS:
        if whole >= size:
            return f"{_counted(whole // size, unit)} ago"
    return "just now"


def _counted(count: int, unit: str) -> str:
    """Return a number of units; only days and years have a plural."""
    return f"{count} {unit}{'s' if unit in ('day', 'year') and count != 1 else ''}"


def _rounded(seconds: float) -> int:
    """Return a length of time rounded to the second of the units in which it is shown, so that a token made for 90 days
    does not read ``89 days 23 h`` at once."""
    size = next((smaller for (unit, _), (smaller, _) in pairwise(_UNITS) if round(seconds) >= unit), 1)
    return round(seconds / size) * size


def moment(at_us: int | None) -> str:
    """Return a time as ``2026-11-21 20:14:03 UTC``; as the stored number where no calendar has it; empty for None."""
    if at_us is None:
        return ""
    try:
        return utc_text(at_us)
    except (ValueError, OverflowError, OSError):
        return f"{at_us} µs from 1970"


def iso(at_us: int) -> str:
    """Return a time in ISO 8601 with milliseconds, for ``datetime=`` of a ``<time>``; empty for one that no calendar
    has."""
    try:
        return (
            datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return ""


def size(count: int) -> str:
    """Return a number of bytes with a decimal unit: ``340 bytes``, ``12.4 MB``."""
    if count < 1000:
        return f"{count} {'byte' if count == 1 else 'bytes'}"
    scaled, unit = float(count), 0
    while scaled >= 999.95 and unit < len(_BYTES) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return f"{scaled:.1f} {_BYTES[unit]}"


def percent(part: float | None) -> str:
    """Return a fraction from 0 to 1 as a percentage, rounded down so that only the whole is ``100 %``; empty for
    None."""
    if part is None:
        return ""
    return f"{min(99, int(part * 100)) if part < 1 else 100} %"


def exception(name: str) -> str:
    """Return the name of an exception, without the module of the exceptions that stages raise to fail."""
    return name.removeprefix("spinney.model.attempts.signals.")


_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
"""Browsers by their words in a User-Agent. The first one counts: later ones are named by others, too."""
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}
"""Systems by their words in a User-Agent, in the same way."""


def browser(agent: str | None) -> str:
    """Return the browser of a User-Agent as people name it, such as ``Firefox on Windows``; of any other program the
    text itself, and ``unknown browser`` without one."""
    if not agent:
        return "unknown browser"
    name = next((name for word, name in _BROWSERS.items() if f"{word}/" in agent), None)
    system = next((name for word, name in _SYSTEMS.items() if word in agent), None)
    return agent if name is None else f"{name} on {system}" if system else name


def verb_name(verb: str) -> str:
    """Return a verb as buttons and headings show it: ``Run now`` for ``run-now``."""
    return verb.replace("-", " ").capitalize()


def capital(text: str) -> str:
    """Return a text with a capital letter at its beginning, if that is a word and not a URL or the name of a file or
    stage; the rest is left as it is."""
    first = text.partition(" ")[0].rstrip(",;:.")
    return text[:1].upper() + text[1:] if re.fullmatch(r"[^\W\d_]+(['’-][^\W\d_]+)*", first) else text


def json_text(value: Any, *, indent: bool = True) -> str:
    """Return a value as JSON text, indented by two blanks or on one line."""
    option = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    return orjson.dumps(value, default=plain, option=option).decode()


_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\^-~]")


def terminal_text(text: str) -> str:
    """Return output without what a terminal would not show: colours and other controls (ECMA-48), and what a
    carriage return let a progress bar overwrite. Only the last state of each line is left."""
    lines = _CONTROL.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def cut(text: str | None, most: int = 160) -> str:
    """Return the beginning of a text on one line, at most ``most`` characters long."""
    line = " ".join((text or "").split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
