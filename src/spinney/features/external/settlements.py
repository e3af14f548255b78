"""The texts of a settlement, as they are stored: bounded, without secrets and without NUL."""

from dataclasses import replace

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.define.params.values import to_text
from spinney.model.errors import BadParameters
from spinney.model.external import RESULT_BYTES, Settlement

_MESSAGE_CHARS = 2000
"""How many characters of the type and the message of an error are kept, as of one on a node."""
_TRACE_HEAD_CHARS, _TRACE_TAIL_CHARS = 16_000, 48_000
"""How many characters of a traceback are kept, from its beginning and its end, as of one on a node: pages and commands
show all of it."""


def result_text(settlement: Settlement) -> str | None:
    """Return the result as JSON, or None without one. Raises BadParameters when it is too large."""
    if settlement.result is None:
        return None
    text = to_text(settlement.result, "the result")
    if len(text.encode()) > RESULT_BYTES:
        raise BadParameters(
            f"the result is {len(text.encode())} bytes long as JSON, the most is {RESULT_BYTES}; put it into a file in "
            f"the job's folder and say the file's name"
        )
    return text


def message_text(settlement: Settlement) -> str | None:
    """Return the line for people. An error without one has the message of the error itself, or its type, as the error
    of a stage on a node has: lists, filters and the causes of failures show this line."""
    if settlement.message is not None or settlement.error is None:
        return settlement.message
    text = settlement.error.get("message") or settlement.error.get("type") or None
    return text and text[:_MESSAGE_CHARS]


def error_text(settlement: Settlement) -> str | None:
    """Return the error as JSON, with its texts cut; None without one."""
    if settlement.error is None:
        return None
    cut = {
        part: _cut_trace(text) if part == "traceback" else text[:_MESSAGE_CHARS]
        for part, text in settlement.error.items()
    }
    return to_text(cut, "the error")


def _cut_trace(text: str) -> str:
    """Return a traceback without its middle, if it is too long."""
    cut = len(text) - _TRACE_HEAD_CHARS - _TRACE_TAIL_CHARS
    if cut <= 0:
        return text
    return f"{text[:_TRACE_HEAD_CHARS]}\n... {cut} characters cut ...\n{text[-_TRACE_TAIL_CHARS:]}"


def without_secrets(settlement: Settlement, redactor: Redactor) -> Settlement:
    """Return the settlement with secret parameters redacted in its message and its error, as a node's worker
    does: both become a failure's cause, and a filter by message finds them."""
    if redactor is REDACT_NOTHING:
        return settlement
    return replace(
        settlement,
        message=None if settlement.message is None else redactor.text(settlement.message),
        error=None
        if settlement.error is None
        else {part: redactor.text(text) for part, text in settlement.error.items()},
    )
