"""The texts of a settlement, as they are stored: bounded, without secrets and without NUL."""

from dataclasses import replace

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.define.params.values import to_text
from spinney.model.attempts.error_texts import MESSAGE_CHARS, cut_trace
from spinney.model.errors import BadParameters
from spinney.model.external import RESULT_BYTES, Settlement


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
    return text and text[:MESSAGE_CHARS]


def error_text(settlement: Settlement) -> str | None:
    """Return the error as JSON, with its texts cut; None without one."""
    if settlement.error is None:
        return None
    cut = {
        part: cut_trace(text) if part == "traceback" else text[:MESSAGE_CHARS]
        for part, text in settlement.error.items()
    }
    return to_text(cut, "the error")


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
