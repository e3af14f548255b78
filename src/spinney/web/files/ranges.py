"""Range requests (RFC 9110, section 14).

Only single ranges of bytes are served. For several at once, another unit or a malformed header the whole file
is sent, as the standard allows."""

import re

_ONE = re.compile(r"bytes\s*=\s*(?:(\d{1,18})\s*-\s*(\d{1,18})?|-\s*(\d{1,18}))\s*", re.IGNORECASE)


class Unsatisfiable(Exception):
    """The file has no bytes in the requested range; the answer is 416."""


def requested(header: str | None, size: int) -> range | None:
    """Return the byte range that a Range header requests of a file of ``size`` bytes, cut to the file. None:
    the whole file, also for a header that is no single range of bytes. Raises Unsatisfiable."""
    match = _ONE.fullmatch(header or "")
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        byte_range = range(max(0, size - int(suffix)), size)
    elif last is not None and int(last) < int(first):
        return None
    else:
        byte_range = range(int(first), size if last is None else min(size, int(last) + 1))
    if not byte_range:
        raise Unsatisfiable
    return byte_range


def fits(header: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header has this ETag, by the weak comparison."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags
