"""What a request is aimed at, before anybody interprets it: whatever could mean two things is refused.

A path with ``..`` in it, however it is written, is a trick or a mistake; bytes that are no UTF-8 would silently be
replaced, and a NUL can be stored nowhere.
"""

import re
from urllib.parse import unquote_to_bytes

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
NEXT = "write it percent-encoded, in UTF-8"


def fault(raw_path: bytes, query: bytes) -> str | None:
    """The sentence for what cannot be meant, or None."""
    path = _text(raw_path)
    if path is None:
        return f"the path of this address is no UTF-8; {NEXT}"
    if _CONTROL.search(path):
        return "the path of this address has control characters; leave them out"
    if any(part in (".", "..") for part in path.split("/")):
        return "the path of this address has '.' or '..' as a part; name what is meant by its whole path"
    asked = _text(query)
    if asked is None:
        return f"the query of this address is no UTF-8; {NEXT}"
    return "the query of this address has a NUL in it; leave it out" if "\0" in asked else None


def _text(raw: bytes) -> str | None:
    if not raw.isascii() or _BROKEN.search(raw):
        return None
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
