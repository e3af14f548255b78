"""What became of an attempt: ``done`` messages, and the last field of their rows.

A plain success has no such field; it is only made when there is something to say.
"""

import traceback
from collections.abc import Sequence
from typing import Any

import orjson

from spinney.model.errors import SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.signals import Defer, Fail, Finish, Signal, Warn
from spinney.node.executors import proctree
from spinney.params.values import to_text

RESULT_BYTES = 64 * 2**10
"""The longest value of a stage, as JSON text."""

_RSS_EVERY_US = 1_000_000
_MESSAGE_CHARS = 2000
_TRACE_HEAD_CHARS = 16_000
_TRACE_TAIL_CHARS = 48_000
_ENGINE = ("spinney.node.executors.", "spinney.jobtype", "spinney.params", "asyncio.")
"""Frames of these at the beginning of a traceback tell a user nothing."""

Detail = dict[str, Any]


class BadResult(SpinneyError):
    """What a stage returned cannot be kept; return something small that has a JSON form."""


class Report:
    """Makes ``done`` messages; once a second they tell how much memory the worker holds."""

    def __init__(self) -> None:
        self._told_us = 0

    def message(self, sent: Sequence[list[Any]]) -> dict[str, Any]:
        """One message of these rows, of which there is at least one."""
        ended_us = sent[-1][2]
        if ended_us - self._told_us < _RSS_EVERY_US:
            return {"done": sent}
        self._told_us = ended_us
        return {"done": sent, "rss": proctree.rss_bytes()}


def of_value(stage: str, value: Any, outcome: Outcome = Outcome.OK) -> Detail | None:
    """For a stage that returned ``value``; None: a plain success. Raises BadResult."""
    if value is None:
        return None if outcome is Outcome.OK else {"outcome": outcome}
    try:
        text = to_text(value, f"the value that stage {stage!r} returned")
    except (SpinneyError, RecursionError) as error:
        raise BadResult(str(error)) from error
    if len(text) > RESULT_BYTES or len(text.encode()) > RESULT_BYTES:
        raise BadResult(
            f"the value that stage {stage!r} returned is {len(text.encode())} bytes long as JSON, the most is "
            f"{RESULT_BYTES}; write it into a file in job.folder and return the file's name"
        )
    return {"outcome": outcome, "result": text}


def of_exception(stage: str, error: BaseException) -> Detail:
    """For a stage that raised."""
    try:
        return _of_signal(stage, error) if isinstance(error, Signal) else of_error(error)
    except (BadResult, TypeError, ValueError) as wrong:
        return of_error(wrong, retryable=False)


def of_error(error: BaseException, *, retryable: bool = True, message: str | None = None) -> Detail:
    """An error, with everything that is known of it."""
    said = message if message is not None else _message(error)
    name = type(error).__qualname__
    module = type(error).__module__
    described = {
        "type": name if module == "builtins" else f"{module}.{name}",
        "message": said,
        "traceback": _trace(error),
    }
    return {
        "outcome": Outcome.ERROR,
        "message": said,
        "error": orjson.dumps(described).decode(),
        "retryable": retryable and not isinstance(error, BadResult),
    }


def refusal(outcome: Outcome, message: str) -> Detail:
    """An outcome that the engine says in the stage's place, without a traceback."""
    return {"outcome": outcome, "message": _clean(message)}


def _of_signal(stage: str, signal: Signal) -> Detail:
    message = _clean(str(signal.message))[:_MESSAGE_CHARS] or None
    match signal:
        case Fail():
            found = of_error(signal, retryable=signal.retryable, message=message or "failed by its own stage")
            return found | {"code": signal.code}
        case Defer():
            wait = {"delay_s": float(signal.seconds), "lane": bool(signal.lane)}
            return {"outcome": signal.outcome, "message": message} | wait
        case Warn() | Finish():
            return (of_value(stage, signal.value, signal.outcome) or {}) | {"message": message}
    # Those of ``spinney.job`` among them, of which one names a lock.
    return {"outcome": signal.outcome, "message": message, "lock": getattr(signal, "lock", None)}


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the stage called exit ({error.code!r}); return instead, or raise Fail"
    if isinstance(error, KeyboardInterrupt):
        return "the stage was interrupted (SIGINT)"
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise whatever it likes
        said = "its message cannot be shown"
    return _clean(said)[:_MESSAGE_CHARS] or type(error).__name__


def _trace(error: BaseException) -> str:
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_globals.get("__name__", "").startswith(_ENGINE):
        tb = tb.tb_next
    text = _clean("".join(traceback.format_exception(type(error), error, tb or error.__traceback__)))
    if len(text) <= _TRACE_HEAD_CHARS + _TRACE_TAIL_CHARS:
        return text
    cut = len(text) - _TRACE_HEAD_CHARS - _TRACE_TAIL_CHARS
    return f"{text[:_TRACE_HEAD_CHARS]}\n... {cut} characters cut ...\n{text[-_TRACE_TAIL_CHARS:]}"


def _clean(text: str) -> str:
    """Without what has no place in UTF-8 (halves of surrogate pairs) or in a text column (NUL)."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
