"""The texts of a settlement, as they are stored: bounded, without secrets and without NUL."""

from dataclasses import replace

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.define.params.values import to_text
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
