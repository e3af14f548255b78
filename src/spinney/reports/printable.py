"""Text from other systems, made safe to show to people."""


def printable(text: str, most: int) -> str:
    """Return ``text`` on one line of at most ``most`` characters; characters that are not printable are escaped."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
