"""A file as a response, whole or in part, with headers that keep a browser from running it as a page of this server.

Only range requests (RFC 9110, section 14) for a single range of bytes are served. For several at once, another unit or
a malformed header the whole file is sent, as the standard allows.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from email.utils import quote
from urllib.parse import quote as percent

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from spinney.commands.control import Control
from spinney.web.files.content import Content, pieces_of
from spinney.web.long_requests.long_responses import or_abort, permission, permission_for, while_allowed
from spinney.web.long_requests.quotas import acquire_quota
from spinney.web.problems import of_status
from spinney.web.request_context import RequestContext

BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
"""The media type of output that is sent as text."""
LONG_BYTES = 2**20
"""A longer response counts against the quota of downloads."""
_SANDBOX = "default-src 'none'; sandbox"
_ONE = re.compile(r"bytes\s*+=\s*+(?:(\d{1,18})\s*+-\s*+(\d{1,18})?|-\s*+(\d{1,18}))\s*+", re.IGNORECASE)
"""A header with a single range of bytes. It takes a run of blanks as a whole, so that matching is linear."""


async def answer(
    request: Request,
    context: RequestContext,
    job_id: int,
    content: Content,
    *,
    media_type: str,
    name: str | None,
) -> Response:
    """Return the response with the file of a job, or the part that ``Range`` requests: status 200, 206, 304 or 416.
    ``name``: the name under which a browser saves it; None: the browser shows it. Raises TooMany."""
    size, etag = await content.size_and_tag()
    headers = {"Accept-Ranges": "bytes", "Content-Security-Policy": _SANDBOX} | _kept_as(name)
    if etag is not None:
        headers["ETag"] = etag
        if fits(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers=headers)
    try:
        byte_range = requested(_range(request.headers, etag), size)
    except Unsatisfiable:
        return of_status(
            416,
            f"the file has {size:,} bytes; ask for a part of these",
            instance=request.url.path,
            headers={"Content-Range": f"bytes */{size}"},
        )
    part = range(size) if byte_range is None else byte_range
    headers["Content-Length"] = str(len(part))
    if byte_range is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    if len(part) > LONG_BYTES:
        acquire_quota(request, context, request.app.state.quotas.downloads)
    pieces = or_abort(while_allowed(permission(context, job_id), pieces_of(content, part)))
    return StreamingResponse(
        pieces, 200 if byte_range is None else 206, headers=headers, media_type=media_type
    )


def attachment(
    request: Request,
    context: RequestContext,
    pieces: Iterator[bytes],
    *,
    size: int,
    name: str,
    may: Callable[[Control], object],
) -> Response:
    """Return a response with content of an application, piece by piece, as a file that a browser saves under ``name``.
    ``size``: its length in bytes.

    ``may`` is called when the caller's rights have changed while the file is sent; it raises when the caller may have
    no more. When ``may`` or ``pieces`` raises a SpinneyError, the connection is closed without the end, so that nobody
    takes what has come for the whole. Raises TooMany.
    """
    headers = {"Content-Security-Policy": _SANDBOX, "Content-Length": str(size)} | _kept_as(name)
    if size > LONG_BYTES:
        acquire_quota(request, context, request.app.state.quotas.downloads)
    content_sent = or_abort(while_allowed(permission_for(context, may), _in_threads(pieces)))
    return StreamingResponse(content_sent, headers=headers, media_type=BINARY)


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces; each is made in a thread, because an application may read it from a disk."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


def _range(headers: Mapping[str, str], etag: str | None) -> str | None:
    """Return the header Range, unless If-Range says that it is for another version of the file."""
    condition = headers.get("if-range")
    return headers.get("range") if condition is None or (etag is not None and condition == etag) else None


def _kept_as(name: str | None) -> dict[str, str]:
    """Return the header by which a browser saves the file under this name, in two forms: ASCII for old
    clients, and UTF-8 (RFC 6266). None: no header."""
    if name is None:
        return {}
    plain = quote("".join(c if c.isascii() and c.isprintable() else "_" for c in name))
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{percent(name, safe='')}"
    }


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
