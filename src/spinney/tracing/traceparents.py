"""The header ``traceparent`` of W3C Trace Context (https://www.w3.org/TR/trace-context/), and ids of spans."""

import re
from hashlib import blake2b

HEADER = "traceparent"
VARIABLE = "TRACEPARENT"
"""The environment variable by which programs hand it on, as OpenTelemetry's specification names it."""
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def valid(text: str | None) -> str | None:
    """Return a ``traceparent`` in the form of version 00; None where the text is none, which W3C wants to be ignored.

    A later version may have more fields behind these, which are left out."""
    match = _FORM.fullmatch(text or "")
    if match is None or (match[1] == "00" and match[5] is not None):
        return None
    return f"00-{match[2]}-{match[3]}-{match[4]}"


def of_attempt(parent: str, fence: int) -> str:
    """Return the ``traceparent`` of an attempt's span, below the span ``parent`` of its job's submission."""
    return _below(parent, f"attempt {fence}")


def of_record(parent: str, fence: int) -> str:
    """Return the ``traceparent`` of the span in which an attempt's record was written, below the attempt's own span."""
    return _below(parent, f"record {fence}")


def ids(traceparent: str) -> tuple[int, int, int]:
    """Return trace id, span id and flags as numbers."""
    _, trace_id, span_id, flags = traceparent.split("-")
    return int(trace_id, 16), int(span_id, 16), int(flags, 16)


def is_sampled(traceparent: str | None) -> bool:
    """Return whether the caller records this trace, so that spans below it are wanted."""
    return traceparent is not None and bool(ids(traceparent)[2] & 1)


def _below(parent: str, name: str) -> str:
    version, trace_id, parent_id, flags = parent.split("-")
    span_id = blake2b(f"{trace_id} {parent_id} {name}".encode(), digest_size=8).hexdigest()
    return f"{version}-{trace_id}-{span_id}-{flags}"
