"""Texts as both databases store them, and as people read them."""


def without_nul(text: str | None) -> str | None:
    """Return the text with a replacement character for each NUL, which PostgreSQL does not store in a text."""
    return None if text is None else text.replace("\0", "\ufffd")


def whole_number(text: str, digits: int = 18) -> int | None:
    """Return the number that is written in ASCII digits; None for any other text, and for one with more digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def plain_message(message: str) -> str:
    """Return what pydantic says of a value in the words of a user: "Input should be a whole number" for "Input should
    be a valid integer, unable to parse string as an integer", and a sentence of ours without the words before it."""
    words = message.removeprefix("Value error, ").partition(", unable to parse")[0]
    return words.replace("a valid integer", "a whole number")


def counted(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 job``, ``1,204 jobs``. ``many``: the plural where it is not ``singular`` with
    an s."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def rate(per_second: float) -> str:
    """Return a rate as text: per second, or per minute where it is less than one a second."""
    if per_second == 0:
        return "0/s"
    if per_second < 1:
        return f"{per_second * 60:.2g}/min"
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"
