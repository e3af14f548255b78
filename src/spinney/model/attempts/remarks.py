"""What is to be said of an attempt's output, behind its message.

An attempt's message is its own last word. Where some of what it wrote is not in its files, a remark follows: so
every place that shows attempts tells it, and ``logs``, which shows the files alone, finds it by its first words.
"""

_ELSEWHERE = "some of its output is in the worker's log"
_LOST = "some of its output was lost"


def elsewhere(log: str) -> str:
    """It could not be told from what others wrote; ``log`` is the name of the file that took it."""
    return f"{_ELSEWHERE} {log}"


def lost(size_bytes: int, why: str) -> str:
    """So much of it could not be written into its files."""
    return f"{_LOST} ({size_bytes} bytes: {why})"


def behind(message: str | None, remark: str | None) -> str | None:
    """The message, or the remark that stands there already, with this one behind it."""
    return "; ".join(part for part in (message, remark) if part) or None


def of(message: str | None) -> str | None:
    """The remarks at the end of a message; None: all it wrote is in its files."""
    if message is None:
        return None
    found = [at for words in (_ELSEWHERE, _LOST) if (at := message.rfind(words)) >= 0]
    return message[min(found) :] if found else None
