"""Counts with their nouns, for messages."""


def counted(number: int, noun: str, sign: str = "") -> str:
    """Return a count with its noun: ``1 hit``, ``1,204 hits``. ``sign``: ``+`` where it is a change."""
    return f"{number:{sign},} {noun}{'' if abs(number) == 1 else 's'}"
