"""The media type of a request's body, which form of an answer its client prefers, by ``Accept`` and ``Accept-Encoding``
(RFC 9110, section 12.5), and whether a person reads it."""

from collections.abc import Sequence

from fastapi import Request
from starlette.exceptions import HTTPException

EVENT_STREAM = "text/event-stream"
HTML = "text/html"
JSON = "application/json"
NDJSON = "application/x-ndjson"
PROBLEM = "application/problem+json"
_NO_PAGES = ("/api/", "/static/", "/events", "/health", "/ready", "/metrics")
"""The beginnings of the addresses that only programs use."""


def body_type(request: Request) -> str:
    """Return the media type of the request's body, without its parameters; empty when the request names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wrong_body_type(request: Request, accepted: str) -> HTTPException:
    """Return the refusal (415) of a body of this media type, which says what to send in its place."""
    named = request.headers.get("content-type", "")
    return HTTPException(415, f"the content type is {named!r:.100}; send {accepted}")


def preferred(request: Request, offered: Sequence[str]) -> str:
    """Return which of the offered media types the client of the request prefers.

    The most specific range that matches a type gives its quality. If several are equal, the type counts that is named
    more specifically, then the one named first, then the one offered first; so ``text/csv, */*`` prefers CSV. Where the
    client accepts none, this is the first: an answer that it did not want tells it more than a refusal. A range with
    parameters counts without them, and one whose quality is no number does not count.
    """
    ranges = _ranges(request, "accept")
    return max(offered, key=lambda media_type: _rank(media_type, ranges))


def prefers_page(request: Request) -> bool:
    """Return whether the client of the request would rather have a page than JSON, as browsers do."""
    return preferred(request, (JSON, PROBLEM, HTML)) == HTML


def wants_part(request: Request) -> bool:
    """Return whether the page's script made the request, which wants only the live part."""
    return request.headers.get("hx-request") == "true"


def is_of_page(request: Request) -> bool:
    """Return whether the request is that of a page: from a browser or the page's script, and for none of the addresses
    that only programs use."""
    return not request.url.path.startswith(_NO_PAGES) and (prefers_page(request) or wants_part(request))


def takes_gzip(request: Request) -> bool:
    """Return whether the client of the request can unpack gzip."""
    ranges = _ranges(request, "accept-encoding")
    quality, _ = ranges.get("gzip") or ranges.get("*", (0.0, 0))
    return quality > 0


def _ranges(request: Request, header: str) -> dict[str, tuple[float, int]]:
    """Return the quality and the position of each range of a header; the first of equal ones counts."""
    ranges: dict[str, tuple[float, int]] = {}
    for position, element in enumerate(",".join(request.headers.getlist(header)).split(",")):
        name, *parameters = (part.strip().lower() for part in element.split(";"))
        values = [value for key, _, value in (p.partition("=") for p in parameters) if key.strip() == "q"]
        try:
            quality = float(values[0]) if values else 1.0
        except ValueError:
            continue
        if 0 <= quality <= 1:
            ranges.setdefault(name, (quality, position))
    return ranges


def _rank(media_type: str, ranges: dict[str, tuple[float, int]]) -> tuple[float, int, int]:
    """Return by what types are compared: quality, how specifically the type is named, and how early."""
    for specificity, name in ((2, media_type), (1, f"{media_type.partition('/')[0]}/*"), (0, "*/*")):
        if name in ranges:
            quality, position = ranges[name]
            return (quality, specificity, -position) if quality else (0.0, 0, 0)
    return 0.0, 0, 0
