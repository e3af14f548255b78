"""Outcomes of attempts: ``done`` messages, and the last field of their rows (``spinney.node.workers``
describes both).

A plain success has no such field. Everything that a stage returned or raised becomes text here, in the
worker, within bounds and without secrets. Nothing that user code has made may break that: an exception whose
``__str__`` raises, a value without JSON form and half a surrogate pair all become an error of the attempt,
and the worker goes on."""

import math
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import orjson

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.define.params.values import finite_text
from spinney.model.attempts.error_texts import MESSAGE_CHARS, cut_trace
from spinney.model.attempts.signals import Defer, Fail, Finish, Signal, Warn, leaves, unwrapped
from spinney.model.attempts.user_frames import user_frames
from spinney.model.errors import BadParameters, SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.values.unreadable import Unreadable, json_object
from spinney.node.workers import proctree
from spinney.node.workers.termination import Terminated
from spinney.node.workers.wire import pack
from spinney.scheduling.retry_decision import DEFER_MOST_S

RESULT_BYTES = 64 * 2**10
"""The longest value of a stage, as JSON text."""

_RSS_EVERY_US = 1_000_000
"""The least time between two messages with the worker's memory, in microseconds."""
_CODES = range(1, 2**31)
"""The codes with which a stage may fail: positive numbers of 32 bits."""

Detail = dict[str, Any]
Redact = Callable[[str], str]


class BadResult(BadParameters):
    """The returned value cannot be stored; return something small that has a JSON form."""


class ResultSender:
    """Makes ``done`` messages; once a second they include the worker's resident memory."""

    def __init__(self) -> None:
        self._rss_sent_us = 0

    def send(self, send: Callable[[Any], None], sent: Sequence[list[Any]]) -> None:
        """Send one message of these rows, of which there is at least one; a row that cannot be packed becomes
        an error of its attempt. Raises OSError when the other side is gone."""
        message: dict[str, Any] = {"done": sent}
        ended_us = sent[-1][2]
        if ended_us - self._rss_sent_us >= _RSS_EVERY_US:
            self._rss_sent_us = ended_us
            message["rss"] = proctree.rss_bytes()
        try:
            send(message)
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - it was packing that failed, so nothing has been sent
            for row in sent:
                send({"done": [_sendable(row)]})


def value_detail(stage: str, value: Any, outcome: Outcome = Outcome.OK) -> Detail | None:
    """Return the detail of a stage that returned ``value``; None: a plain success. Raises BadResult."""
    if value is None:
        return None if outcome is Outcome.OK else {"outcome": outcome}
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, BaseException):
        name = kind.__name__
        raise BadResult(
            f"stage {stage!r} returned {name}; write 'raise {name}(…)' in place of 'return {name}(…)'"
        )
    if isinstance(value, Coroutine):
        value.close()  # else Python would warn that it was never awaited
        raise BadResult(
            f"stage {stage!r} returned a coroutine; write 'return await …' in a stage with 'async def'"
        )
    try:
        text = finite_text(value, f"the value that stage {stage!r} returned")
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
    """Return the detail of a stage that raised, without what ``redactor`` hides. It raises nothing itself, whatever the
    stage's exception contains. ``params``: the text of the job's parameters; when it is unreadable, the stage has not
    begun."""
    try:
        if isinstance(unreadable := json_object(params, "the parameters of this job"), Unreadable):
            return error_detail(error, retryable=False, message=str(unreadable))
        if isinstance(signal := unwrapped(error), Signal):
            detail = _of_signal(stage, signal, redactor.text)
        else:
            detail = error_detail(error, redact=redactor.text)
        return _packable(detail if redactor is REDACT_NOTHING else _redacted(detail, redactor))
    except (BadResult, TypeError, ValueError) as problem:
        return _of_wrong(stage, problem)
    except Terminated:
        raise
    except BaseException:  # noqa: BLE001 - a user's exception may do anything when it is converted to text
        return _untold(stage)


def _redacted(detail: Detail, redactor: Redactor) -> Detail:
    """Redact a detail already here, because its message becomes a failure's cause, a hold's reason, a line of a
    mail."""
    return detail | {
        key: redactor.text(detail[key]) for key in ("message", "error") if isinstance(detail.get(key), str)
    }


def error_detail(
    error: BaseException, *, retryable: bool = True, message: str | None = None, redact: Redact = str
) -> Detail:
    """Return the detail of an error, with type, message and traceback. ``redact`` hides secrets in texts before they
    are cut, because a part of a secret is not recognized any more. A group of exceptions with a single one has type and
    message of that one, and its own traceback, which shows both."""
    cause = unwrapped(error)
    text = message if message is not None else _message(cause, redact)
    described = {
        "type": _type_name(cause),
        "message": text,
        "traceback": _trace(error, redact),
    }
    return {
        "outcome": Outcome.ERROR,
        "message": text,
        "error": orjson.dumps(described).decode(),
        "retryable": retryable and not isinstance(error, BadResult),
    }


def refusal_detail(outcome: Outcome, message: str) -> Detail:
    """Return the detail of an outcome that the engine sets, without a traceback."""
    return {"outcome": outcome, "message": _clean(message)}


def _of_wrong(stage: str, wrong: Exception) -> Detail:
    """Return the detail for an outcome that cannot be sent: an error whose message is that of ``wrong``."""
    try:
        return _packable(error_detail(wrong, retryable=False))
    except Exception:  # noqa: BLE001 - as above
        return _untold(stage)


def _untold(stage: str | None) -> Detail:
    """Return the detail for an outcome that can neither be sent nor described: its own text or type raises errors."""
    subject = "the stage" if stage is None else f"stage {stage!r}"
    return {
        "outcome": Outcome.ERROR,
        "message": f"what {subject} ended with cannot be recorded, because it is not made of plain text and "
        f"numbers; raise Fail with a short message, or return something small that has a JSON form",
        "retryable": False,
    }


def _packable(detail: Detail) -> Detail:
    """Return the detail if it can be sent. Raises TypeError, as for text that is no UTF-8."""
    orjson.dumps(detail)
    return detail


def _sendable(row: list[Any]) -> list[Any]:
    """Return the row, or one that says that it could not be sent."""
    try:
        pack({"done": [row]})
    except Exception:  # noqa: BLE001 - its attempt has ended and must be reported
        return [*row[:3], _untold(None)]
    return row


def _of_signal(stage: str, signal: Signal, redact: Redact) -> Detail:
    """Return the detail of a stage that ended by a signal. Raises BadResult for a signal with a value, code
    or delay that cannot be recorded."""
    message = redact(_clean(str(signal.message)))[:MESSAGE_CHARS] or None
    match signal:
        case Fail():
            text = message or "failed by its own stage"
            detail = error_detail(signal, retryable=signal.retryable, message=text, redact=redact)
            return detail | {"code": _code(signal.code)}
        case Defer():
            wait = {"delay_s": _delay_s(signal.seconds), "lane": bool(signal.lane)}
            return {"outcome": signal.outcome, "message": message} | wait
        case Warn() | Finish():
            return (value_detail(stage, signal.value, signal.outcome) or {}) | {"message": message}
    # Including those of ``spinney.define.job``, of which one names a lock.
    detail = {"outcome": signal.outcome, "message": message, "lock": getattr(signal, "lock", None)}
    lock_request = getattr(signal, "lock_request", None)
    return detail if lock_request is None else detail | {"wanted": lock_request}


def _code(code: Any) -> int | None:
    """Return the code of a failure. Raises BadResult for anything but a positive integer of 32 bits, or
    None."""
    if code is None or (type(code) is int and code in _CODES):
        return code
    raise BadResult(
        f"Fail has a code that is no integer from 1 to {_CODES[-1]}; raise it with such a code or none"
    )


def _delay_s(seconds: Any) -> float:
    """Return the seconds of a deferral. Raises BadResult for more than ``DEFER_MOST_S``, and TypeError or ValueError
    for a value that is no number."""
    delay_s = float(seconds)
    if math.isfinite(delay_s) and delay_s <= DEFER_MOST_S:
        return delay_s
    raise BadResult(f"Defer says to wait {delay_s} s; raise it with at most {DEFER_MOST_S:.0f} s")


def _type_name(error: BaseException) -> str:
    """Return the qualified name of an exception's type; that of one of Spinney's own without its module, which is none
    that an application knows."""
    name, module = type(error).__qualname__, type(error).__module__
    return name if module == "builtins" or module.startswith("spinney.") else f"{module}.{name}"


def _message(error: BaseException, redact: Redact) -> str:
    """Return the message of an exception, redacted and cut; its type where it has none."""
    if isinstance(error, SystemExit):
        return f"the stage called exit ({error.code!r}); return instead, or raise Fail"
    if isinstance(error, KeyboardInterrupt):
        return "the stage was interrupted (SIGINT)"
    if _type_name(error) == "bdb.BdbQuit":  # what ``breakpoint()`` raises where nobody answers
        return "the stage called breakpoint(), and a worker has no terminal; run it with 'spinney debug'"
    try:
        # The text of a KeyError is the bare key, which says nothing by itself.
        text = f"KeyError: {error}" if type(error) is KeyError else str(error)
        if isinstance(error, BaseExceptionGroup):
            first = next(leaves(error))
            text += f"; the first is {_type_name(first)}: {first}"
    except Exception:  # noqa: BLE001 - a user's __str__ may raise whatever it likes
        text = "its message cannot be shown"
    return redact(_clean(text))[:MESSAGE_CHARS] or type(error).__name__


def _trace(error: BaseException, redact: Redact) -> str:
    """Return the traceback of an exception from the stage's own frames on, redacted and cut in the middle;
    empty where there would be only frames of Spinney."""
    frames = user_frames(error)
    if frames is None and isinstance(error, SpinneyError | Signal):
        return ""  # of a program, say: it would show only how Spinney called it
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    return cut_trace(redact(_clean(text)))


def _clean(text: str) -> str:
    """Return the text without characters that UTF-8 (halves of surrogate pairs) or a text column (NUL) cannot have."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
