"""Suggestions for messages about unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'width'?)"``, or an empty text when no known word is similar."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def listed(words: Iterable[str]) -> str:
    """Return the words in order, for the end of a message; ``(none yet)`` when there are none."""
    return ", ".join(sorted(words)) or "(none yet)"
