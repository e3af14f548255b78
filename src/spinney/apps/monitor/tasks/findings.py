"""What a task found, and how a program prints it."""

import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson

from spinney.apps.monitor.inventory.model import Status
from spinney.apps.monitor.tasks import tcl_list

FUTURE_S = 86_400
"""A time further in the future than this is taken for a mistake of the program."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a task found for one service.

    ``status``: one of ``Status``, or another word of up to 40 characters, which counts as a warning.
    ``info``: what people read. ``code``: a word for machines, as in ``invalid_uri``. ``at_s``: when, in
    seconds since 1970 UTC; None: when the task ended."""

    status: str = Status.OK
    info: str = ""
    code: str = ""
    at_s: float | None = None


class Unreadable(ValueError):
    """The output of a program is no result; the message says why."""


_UNFIT = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\ud800-\\udfff]")


def clean(text: str) -> str:
    """Return a text with control characters and surrogates replaced by U+FFFD, since databases or terminals
    would not take them as text; tabs and ends of lines stay."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def error(code: str, info: str) -> Finding:
    """Return an error with a code for machines and a text for people."""
    return Finding(Status.ERROR, info, code)


def warning(code: str, info: str) -> Finding:
    """Return a warning with a code for machines and a text for people."""
    return Finding(Status.WARNING, info, code)


NOT_APPLICABLE = Finding(Status.NOT_APPLICABLE)
"""The task has nothing to say of this kind of service."""


def of_module(value: Any) -> Finding:
    """Return what a module's check returned. It is an error, about this service alone, where that is no
    ``Finding``, or one with a field of another type, which could not be recorded."""
    try:
        return _of_module(value)
    except Unreadable as problem:
        return error("unreadable_result", str(problem))


def of_output(text: str) -> Finding:
    """Return what a program printed.

    It is a JSON object with ``status`` and optionally ``code``, ``info`` and ``timestamp``, or a Tcl list
    ``status code info data timestamp``, of whose texts the data (the fourth) is what people read where it is
    not empty, as the SNIG scripts print it. A timestamp is in seconds since 1970; one that is no number, or
    more than a day ahead, is ignored. A text that begins like an object and is no JSON is read as a Tcl list,
    whose first element may be in braces. Raises Unreadable."""
    text = text.strip()
    if not text:
        raise Unreadable("it printed nothing")
    if text.startswith("{"):
        with suppress(orjson.JSONDecodeError):
            return _of_json(orjson.loads(text))
    try:
        elements = tcl_list.parse(text)
    except tcl_list.MalformedList as problem:
        raise Unreadable(f"it printed neither a JSON object nor a Tcl list: {problem}") from None
    if len(elements) != 5:
        raise Unreadable(f"it printed a list of {len(elements)} elements in place of 5")
    status, code, info, data, timestamp = elements
    return Finding(_status(status), data or info, code, _time(timestamp))


def _of_module(value: Any) -> Finding:
    """Return a module's finding with its time checked. Raises Unreadable for anything else."""
    if not isinstance(value, Finding):
        raise Unreadable("the check returned no Finding")
    for name in ("status", "info", "code"):
        if not isinstance(getattr(value, name), str):
            raise Unreadable(f"the {name} of its Finding is {getattr(value, name)!r:.40}; it must be a text")
    at_s = value.at_s
    if at_s is not None and not (isinstance(at_s, int | float) and abs(at_s) < math.inf):
        raise Unreadable(f"the at_s of its Finding is {at_s!r:.40}; it must be None or a number of seconds")
    return replace(value, status=_status(value.status), at_s=None if at_s is None else _time(str(at_s)))


def _of_json(fields: dict[str, Any]) -> Finding:
    if not isinstance(fields.get("status"), str):
        raise Unreadable("its JSON object has no status")
    texts = {name: fields.get(name) or "" for name in ("info", "code")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Unreadable("info and code of its JSON object must be texts")
    timestamp = fields.get("timestamp")
    return Finding(
        _status(fields["status"]), at_s=None if timestamp is None else _time(str(timestamp)), **texts
    )


def _status(word: str) -> str:
    """Return a status. Raises Unreadable for one that is empty, too long or not printable, since it becomes a
    word on pages."""
    if not word or len(word) > 40 or not word.isprintable():
        raise Unreadable(f"its status is {word[:40]!r}; it must be a word such as ok")
    return word


def _time(text: str) -> float | None:
    """Return a time in seconds since 1970; None where a text says none that can be right."""
    try:
        at_s = float(text)
    except ValueError:
        return None
    return at_s if 0 < at_s < time.time() + FUTURE_S else None
