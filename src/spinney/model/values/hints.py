"""The names in messages: suggestions for unknown ones, and the first of many."""

from collections.abc import Collection, Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return ``" (did you mean 'width'?)"``, or an empty text when no known word is similar."""
    from difflib import get_close_matches  # which is slow to import, and rarely needed

    near = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f" (did you mean {str(near[0])!r}?)" if near else ""


LISTED = 20
"""How many names of a store's own a message lists: there may be thousands of queues."""


def listed(words: Iterable[str]) -> str:
    """Return the words in order, for the end of a message; ``(none yet)`` when there are none."""
    return ", ".join(sorted(words)) or "(none yet)"


def some_of(names: Collection[str]) -> str:
    """Return the first of these names, of which there may be very many, and how many more there are."""
    if len(names) <= LISTED:
        return listed(names)
    return f"{', '.join(sorted(names)[:LISTED])}, and {len(names) - LISTED:,} more"


def first_of(names: Iterable[str], most: int = 4) -> str:
    """Return the first ``most`` names in their order, and how many more there are: ``a, b and 3 more``."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def no_such(noun: str, name: str, existing: Iterable[str], command: str) -> str:
    """Return the message of a NoSuch: the nearest existing name, and the command that lists them all."""
    return f"there is no {noun} {name!r:.80}{did_you_mean(name, existing)}; '{command}' lists them all"


def unknown(noun: str, name: str, existing: Iterable[str], or_else: str = "") -> str:
    """Return the message about a queue or job type that the store does not know, with the nearest name and some of
    those that exist. ``or_else``: what else the caller can do, ahead of the list."""
    names = list(existing)
    advice = [or_else, f"use one of: {some_of(names)}" if names or not or_else else ""]
    return (
        f"no {noun} {name!r:.80} is known to this store{did_you_mean(name, names)}; "
        f"{', or '.join(filter(None, advice))}"
    )
