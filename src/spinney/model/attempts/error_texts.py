"""How long the texts of an error may be that are kept of an attempt, on a node or of an external worker."""

MESSAGE_CHARS = 2000
"""A longer message is cut: it is shown in lists and mails."""
_TRACE_HEAD_CHARS, _TRACE_TAIL_CHARS = 16_000, 48_000
"""A longer traceback keeps its beginning and its end, where the entry of the stage and the cause are."""


def cut_trace(text: str) -> str:
    """Return a traceback without its middle, if it is too long."""
    cut = len(text) - _TRACE_HEAD_CHARS - _TRACE_TAIL_CHARS
    if cut <= 0:
        return text
    return f"{text[:_TRACE_HEAD_CHARS]}\n... {cut} characters cut ...\n{text[-_TRACE_TAIL_CHARS:]}"
