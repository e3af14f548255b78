"""Texts as both databases store them."""


def without_nul(text: str | None) -> str | None:
    """Return the text with a replacement character for each NUL, which PostgreSQL does not store in a text."""
    return None if text is None else text.replace("\0", "\ufffd")
