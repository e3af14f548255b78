"""Remarks on an attempt's output, which follow its message.

When some of an attempt's output is not in its files, a remark follows its message: so every place that shows attempts
shows it, and ``logs``, which shows the files only, finds it by its first words."""

_ELSEWHERE = "some of its output is in the worker's log"
_LOST = "some of its output was lost"


def elsewhere(log: str) -> str:
    """Return the remark that output could not be told from that of other attempts; ``log``: the file that has it."""
    return f"{_ELSEWHERE} {log}"


def lost(size_bytes: int, why: str) -> str:
    """Return the remark that so much output could not be written into its files."""
    return f"{_LOST} ({size_bytes} bytes: {why})"


def behind(message: str | None, remark: str | None) -> str | None:
    """Return the message (or an earlier remark), followed by this remark; None when there is neither."""
    return "; ".join(part for part in (message, remark) if part) or None


def of(message: str | None) -> str | None:
    """Return the remarks at the end of a message; None: all output is in its files."""
    if message is None:
        return None
    starts = [at for words in (_ELSEWHERE, _LOST) if (at := message.rfind(words)) >= 0]
    return message[min(starts) :] if starts else None
