"""Valid names.

Names of queues, types, stages, collections and the like become parts of file names, lock names,
pages and shell words, so they must not have path separators, white space or control characters.
"""

import re

from spinney.model.errors import BadName

NAME_MAX, LABEL_MAX = 100, 500
QUOTED_BEGINNING = 60
"""How much a message quotes of a text that is longer than any label may be."""
EXTERNAL_PREFIX = "external:"
"""The prefix of the names of external workers among the nodes; no node may have such a name."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,99}")
_LOCK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@ +=,-]{0,199}")


def name(kind: str, text: str) -> str:
    """Return ``text`` when it is a valid name of a ``kind`` (queue, type, stage, …); else raise BadName."""
    if not isinstance(text, str) or not _NAME.fullmatch(text) or ".." in text:
        raise BadName(
            f"{_quoted(text)} cannot name a {kind}: use 1 to {NAME_MAX} letters, digits or _ . : @ - "
            f"(first a letter, digit or _, no '..')"
        )
    return text


def lock_name(text: str) -> str:
    """Return ``text`` when it is a valid name of a lock; else raise BadName."""
    if not isinstance(text, str) or not _LOCK.fullmatch(text) or ".." in text:
        raise BadName(
            f"{_quoted(text)} cannot name a lock: use up to 200 letters, digits or _ . : @ + = , - and "
            f"blanks (first a letter, digit or _, no '..', no '/')"
        )
    return text


def lock_or_family(text: str) -> str:
    """Return ``text`` when it names a lock, or a family of locks by their prefix (``download:*``); else raise
    BadName."""
    beginning = text.removesuffix("*") if isinstance(text, str) else text
    try:
        lock_name(beginning)
    except BadName:
        raise BadName(
            f"{_quoted(text)} names no lock and no family of locks: write a lock's name, or how some begin and a '*', "
            f"as in 'download:*'"
        ) from None
    return text


def label(kind: str, text: str) -> str:
    """Return ``text`` (a share, submitter, key: shown, never part of a path) or raise BadName."""
    if not isinstance(text, str) or not 0 < len(text) <= LABEL_MAX or not text.isprintable():
        raise BadName(f"{_quoted(text)} cannot be a {kind}: use 1 to {LABEL_MAX} printable characters")
    return text


def _quoted(text: object) -> str:
    """Return a refused text for a message; one that is much too long is replaced by its beginning and its length, so
    that the rest of the message is seen."""
    if not isinstance(text, str) or len(text) <= LABEL_MAX:
        return repr(text)
    return f"{text[:QUOTED_BEGINNING] + '…'!r} ({len(text):,} characters)"
