"""Reading the heads of answers: pure rules of RFC 9110."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may be others later."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """``Content-Range``: which bytes of how many; what the server does not say is None."""

    first: int | None
    last: int | None
    whole_bytes: int | None


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Names in lower case; the values of a repeated header joined (RFC 9110 section 5.2)."""
    found: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip()
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def length_of(headers: Mapping[str, str]) -> int | None:
    """``Content-Length``, when it is a number."""
    return _number(headers.get("content-length", ""))


def encoding_of(headers: Mapping[str, str]) -> str | None:
    """A content coding that the bytes have been put through, if any."""
    coding = headers.get("content-encoding", "").strip().lower()
    return coding if coding not in ("", "identity") else None


def span_of(headers: Mapping[str, str]) -> Span | None:
    """``Content-Range`` of an answer 206 or 416 (RFC 9110 section 14.4), when it has the form."""
    found = _SPAN.fullmatch(headers.get("content-range", "").strip().lower())
    if found is None:
        return None
    first, last, whole = (_number(part or "") for part in found.group("first", "last", "whole"))
    return Span(first=first, last=last, whole_bytes=whole)


def condition_of(headers: Mapping[str, str]) -> str | None:
    """A strong validator for ``If-Range`` (RFC 9110 sections 8.8 and 13.1.5), or None.

    A weak tag says that two files mean the same, not that their bytes are; a date is strong only when
    the file had been left alone for a second before it was sent.
    """
    tag = headers.get("etag", "")
    if tag:
        return tag if _STRONG_TAG.fullmatch(tag) else None
    modified, sent = date_of(headers, "last-modified"), date_of(headers, "date")
    if modified is None or sent is None or (sent - modified).total_seconds() < 1:
        return None
    return headers["last-modified"]


def date_of(headers: Mapping[str, str], name: str) -> datetime | None:
    """A header's date in UTC, when it has one."""
    try:
        found = parsedate_to_datetime(headers.get(name, ""))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_after_s(headers: Mapping[str, str], most_s: float) -> float | None:
    """How long the server asks to be left alone, by seconds or by date, at most ``most_s``."""
    seconds = _number(headers.get("retry-after", ""))
    if seconds is not None:
        return min(float(seconds), most_s)
    until = date_of(headers, "retry-after")
    if until is None:
        return None
    asked = (until - (date_of(headers, "date") or datetime.now(UTC))).total_seconds()
    return min(max(asked, 0.0), most_s)


def _number(text: str) -> int | None:
    # Not int(): that takes signs, blanks, underscores and the digits of all scripts.
    return int(text) if _DIGITS.fullmatch(text) else None


_DIGITS = re.compile(r"[0-9]{1,18}")
_SPAN = re.compile(r"bytes (?:(?P<first>[0-9]+)-(?P<last>[0-9]+)|\*)/(?:(?P<whole>[0-9]+)|\*)")
_STRONG_TAG = re.compile(r'"[\x21\x23-\x7e]*"')
