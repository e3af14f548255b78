"""A file as an answer: whole or in part, never shown by a browser as a page of ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from email.utils import quote
from urllib.parse import quote as percent

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from spinney.control import Control
from spinney.web.files.content import Content, pieces_of
from spinney.web.files.ranges import Unsatisfiable, fits, requested
from spinney.web.long_responses import or_abort, permission, permission_for, while_allowed
from spinney.web.problems import of_status
from spinney.web.quotas import acquire_quota
from spinney.web.request_context import RequestContext

BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
LONG_BYTES = 2**20
"""What is longer may take long, and has a place among all long downloads."""
_SANDBOX = "default-src 'none'; sandbox"


async def answer(
    request: Request,
    context: RequestContext,
    job_id: int,
    content: Content,
    *,
    media_type: str,
    name: str | None,
) -> Response:
    """The file of this job, or the part that the request asks for. ``name``: as what a browser keeps it; None: it shows
    it. Raises TooMany."""
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
    """What an application has, piece by piece, as a file that a browser keeps under this name.

    ``may`` is called while it is sent and the rights of who asks have changed; it raises where that person may have no
    more. Where it, or ``pieces``, raises a SpinneyError, the connection is closed without the end, so that nobody takes
    what has come for the whole. Raises TooMany.
    """
    headers = {"Content-Security-Policy": _SANDBOX, "Content-Length": str(size)} | _kept_as(name)
    if size > LONG_BYTES:
        acquire_quota(request, context, request.app.state.quotas.downloads)
    content_sent = or_abort(while_allowed(permission_for(context, may), _in_threads(pieces)))
    return StreamingResponse(content_sent, headers=headers, media_type=BINARY)


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


def _range(headers: Mapping[str, str], etag: str | None) -> str | None:
    """What Range says, where If-Range lets it count."""
    condition = headers.get("if-range")
    return headers.get("range") if condition is None or (etag is not None and condition == etag) else None


def _kept_as(name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    plain = quote("".join(c if c.isascii() and c.isprintable() else "_" for c in name))
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{percent(name, safe='')}"
    }
