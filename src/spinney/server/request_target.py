"""Check the target of a request before anything interprets it: an ambiguous one is refused.

A path with ``..`` in it, however it is encoded, is an attack or a mistake; bytes that are no UTF-8 would silently be
replaced, and a NUL cannot be stored anywhere."""

import re
from urllib.parse import unquote_to_bytes

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
NEXT = "write it percent-encoded, in UTF-8"


def fault(raw_path: bytes, query: bytes) -> str | None:
    """Return the sentence that refuses the target, or None."""
    path = _text(raw_path)
    if path is None:
        return f"the path of this address is no UTF-8; {NEXT}"
    if _CONTROL.search(path):
        return "the path of this address has control characters; leave them out"
    if any(part in (".", "..") for part in path.split("/")):
        return "the path of this address has '.' or '..' as a part; name what is meant by its whole path"
    query_text = _text(query)
    if query_text is None:
        return f"the query of this address is no UTF-8; {NEXT}"
    return "the query of this address has a NUL in it; leave it out" if "\0" in query_text else None


def _text(raw: bytes) -> str | None:
    if not raw.isascii() or _BROKEN.search(raw):
        return None
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
