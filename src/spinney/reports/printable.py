"""What others answered, as people may see it."""


def printable(text: str, most: int) -> str:
    """``text`` on one line of at most ``most`` characters; what is not printable is escaped."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
