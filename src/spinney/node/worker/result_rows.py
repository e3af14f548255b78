"""What became of an attempt: ``done`` messages, and the last field of their rows.

A plain success has no such field; it is only made when there is something to say.
"""

import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from spinney.define.params.masking import REDACT_NOTHING, Redactor
from spinney.define.params.values import to_text
from spinney.model.attempts.signals import Defer, Fail, Finish, Signal, Warn
from spinney.model.errors import SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.values.unreadable import Unreadable, json_object
from spinney.node.workers import proctree
from spinney.node.workers.termination import Terminated
from spinney.node.workers.wire import pack
from spinney.scheduling.retry_decision import DEFER_MOST_S

RESULT_BYTES = 64 * 2**10
"""The longest value of a stage, as JSON text."""

_RSS_EVERY_US = 1_000_000
_MESSAGE_CHARS = 2000
_TRACE_HEAD_CHARS = 16_000
_TRACE_TAIL_CHARS = 48_000
_CODES = range(1, 2**31)
_ENGINE = ("spinney.node.workers.", "spinney.define.jobtype", "spinney.define.params", "asyncio.")
"""Frames of these at the beginning of a traceback tell a user nothing."""

Detail = dict[str, Any]


class BadResult(SpinneyError):
    """What a stage returned cannot be kept; return something small that has a JSON form."""


class ResultSender:
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

    def send(self, send: Callable[[Any], None], sent: Sequence[list[Any]]) -> None:
        """Send one message of these rows; a row that cannot be packed becomes an error of its attempt.
        Raises OSError when the other side is gone."""
        try:
            send(self.message(sent))
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - it was packing that failed, so nothing has been sent
            for row in sent:
                send({"done": [_sendable(row)]})


def value_detail(stage: str, value: Any, outcome: Outcome = Outcome.OK) -> Detail | None:
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


def exception_detail(
    stage: str, error: BaseException, redactor: Redactor = REDACT_NOTHING, params: str = "{}"
) -> Detail:
    """For a stage that raised, without what ``redactor`` hides. Raises nothing itself, whatever the stage's exception
    is made of. ``params``: the text of the job's parameters; where that is none, the stage has not begun."""
    try:
        if isinstance(unreadable := json_object(params, "the parameters of this job"), Unreadable):
            return error_detail(error, retryable=False, message=str(unreadable))
        found = _of_signal(stage, error) if isinstance(error, Signal) else error_detail(error)
        return _packable(found if redactor is REDACT_NOTHING else _redacted(found, redactor))
    except (BadResult, TypeError, ValueError) as wrong:
        return _of_wrong(stage, wrong)
    except Terminated:
        raise
    except BaseException:  # noqa: BLE001 - a user's exception may do anything when it is asked what it says
        return _untold(stage)


def _redacted(found: Detail, redactor: Redactor) -> Detail:
    """Here and not only where it is shown: a message becomes a failure's cause, a hold's reason, a line of a mail."""
    return found | {
        key: redactor.text(found[key]) for key in ("message", "error") if isinstance(found.get(key), str)
    }


def error_detail(error: BaseException, *, retryable: bool = True, message: str | None = None) -> Detail:
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


def refusal_detail(outcome: Outcome, message: str) -> Detail:
    """An outcome that the engine says in the stage's place, without a traceback."""
    return {"outcome": outcome, "message": _clean(message)}


def _of_wrong(stage: str, wrong: Exception) -> Detail:
    try:
        return _packable(error_detail(wrong, retryable=False))
    except Exception:  # noqa: BLE001 - as above
        return _untold(stage)


def _untold(stage: str | None) -> Detail:
    which = "the stage" if stage is None else f"stage {stage!r}"
    return {
        "outcome": Outcome.ERROR,
        "message": f"what {which} ended with cannot be told, because it is not made of plain text and "
        f"numbers; raise Fail with a short message, or return something small that has a JSON form",
        "retryable": False,
    }


def _packable(detail: Detail) -> Detail:
    orjson.dumps(detail)
    return detail


def _sendable(row: list[Any]) -> list[Any]:
    """The row, or one that says that it could not be sent."""
    try:
        pack({"done": [row]})
    except Exception:  # noqa: BLE001 - whatever it holds, its attempt has ended and is told of
        return [*row[:3], _untold(None)]
    return row


def _of_signal(stage: str, signal: Signal) -> Detail:
    message = _clean(str(signal.message))[:_MESSAGE_CHARS] or None
    match signal:
        case Fail():
            found = error_detail(
                signal, retryable=signal.retryable, message=message or "failed by its own stage"
            )
            return found | {"code": _code(signal.code)}
        case Defer():
            wait = {"delay_s": _delay_s(signal.seconds), "lane": bool(signal.lane)}
            return {"outcome": signal.outcome, "message": message} | wait
        case Warn() | Finish():
            return (value_detail(stage, signal.value, signal.outcome) or {}) | {"message": message}
    # Those of ``spinney.define.job`` among them, of which one names a lock.
    found = {"outcome": signal.outcome, "message": message, "lock": getattr(signal, "lock", None)}
    wanted = getattr(signal, "wanted", None)
    return found if wanted is None else found | {"wanted": wanted}


def _code(code: Any) -> int | None:
    if code is None or (type(code) is int and code in _CODES):
        return code
    raise BadResult(
        f"Fail bears a code that is no integer from 1 to {_CODES[-1]}; raise it with such a code or none"
    )


def _delay_s(seconds: Any) -> float:
    found = float(seconds)
    if math.isfinite(found) and found <= DEFER_MOST_S:
        return found
    raise BadResult(f"Defer says to wait {found} s; raise it with at most {DEFER_MOST_S:.0f} s")


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
