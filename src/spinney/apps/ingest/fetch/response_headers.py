"""Parsing of response headers: pure rules of RFC 9110.

Servers are not trusted: a header that is not valid counts as missing, so that the worst it can do is another
download.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of temporary failures."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """``Content-Range``: the first byte, and the size of the whole; None where the server does not give it."""

    first: int | None
    whole_bytes: int | None


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name; the values of a repeated header are joined by commas (RFC 9110
    section 5.2)."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        text = value.replace("\r\n", "").strip()  # a value may go on in a further line (RFC 9112 section 5.2)
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def length_of(headers: Mapping[str, str]) -> int | None:
    """Return ``Content-Length`` if it is a number, which may be repeated (RFC 9110 section 8.6), else None."""
    match = _LENGTH.fullmatch(headers.get("content-length", ""))
    return int(match[1]) if match else None


def encoding_of(headers: Mapping[str, str]) -> str | None:
    """Return the content coding, or None when the content is not encoded."""
    coding = headers.get("content-encoding", "").strip().lower()
    return coding if coding not in ("", "identity") else None


def span_of(headers: Mapping[str, str]) -> Span | None:
    """Return ``Content-Range`` of an answer 206 or 416 (RFC 9110 section 14.4) if it is valid, else None.

    A 416 has the size of the whole alone, so that ``first`` is None.
    """
    match = _SPAN.fullmatch(headers.get("content-range", "").strip().lower())
    if match is None:
        return None
    return Span(first=_number(match["first"] or ""), whole_bytes=_number(match["whole"] or ""))


def condition_of(headers: Mapping[str, str]) -> str | None:
    """Return a strong validator for ``If-Range`` (RFC 9110 sections 8.8 and 13.1.5), or None.

    A weak tag does not say that two files have the same bytes; a date is strong only when the file had been
    unchanged for a second before it was sent.
    """
    tag = headers.get("etag", "")
    if tag:
        return tag if _STRONG_TAG.fullmatch(tag) else None
    modified, sent = date_of(headers, "last-modified"), date_of(headers, "date")
    if modified is None or sent is None or (sent - modified).total_seconds() < 1:
        return None
    return headers["last-modified"]


def date_of(headers: Mapping[str, str], name: str) -> datetime | None:
    """Return a header's date in UTC, or None when it has no valid one."""
    try:
        date = parsedate_to_datetime(headers.get(name, ""))
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_after_s(headers: Mapping[str, str], most_s: float) -> float | None:
    """Return the delay that the server asks for, by seconds or by date, at most ``most_s``. None: it asks for none."""
    seconds = _number(headers.get("retry-after", ""))
    if seconds is not None:
        return min(float(seconds), most_s)
    until = date_of(headers, "retry-after")
    if until is None:
        return None
    delay_s = (until - (date_of(headers, "date") or datetime.now(UTC))).total_seconds()
    return min(max(delay_s, 0.0), most_s)


def _number(text: str) -> int | None:
    # Not int(): that takes signs, blanks, underscores and the digits of all scripts.
    return int(text) if _DIGITS.fullmatch(text) else None


_LENGTH = re.compile(r"([0-9]{1,18})(?:, \1)*")
_DIGITS = re.compile(r"[0-9]{1,18}")
_SPAN = re.compile(r"bytes (?:(?P<first>[0-9]+)-[0-9]+|\*)/(?:(?P<whole>[0-9]+)|\*)")
_STRONG_TAG = re.compile(r'"[\x21\x23-\x7e]*"')
