"""Answers that take long: each piece is told only while whoever asked may have it.

The length of an answer, or that it has an end, was told at its beginning. So an answer whose rest may not be told is
broken off: the connection is closed without the end, and no program takes what has come for the whole.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from spinney.control import Control
from spinney.web.principal_refresh import LOST
from spinney.web.request_context import RequestContext


class ResponseAborted(Exception):
    """The rest of an answer is not told; ``request_guard`` closes the connection."""


def permission(context: RequestContext, job_id: int) -> Callable[[], Awaitable[None]]:
    """What is to be called before each piece of something of this job. It raises Unidentified or Forbidden where
    whoever asked may ask no more, and NoSuchJob where limits were narrowed so that the job is out of sight."""
    return permission_for(context, lambda control: control.queries.job(job_id))


def permission_for(
    context: RequestContext, look: Callable[[Control], object]
) -> Callable[[], Awaitable[None]]:
    """The same of what is in sight as long as ``look``, called with the rights that have changed, does not raise."""
    principal_refresh, rights = context.lasting, context.principal.rights

    async def require() -> None:
        nonlocal rights
        principal = await principal_refresh.steady_principal()
        if principal.rights != rights:
            await context.run(look)
            rights = principal.rights

    return require


async def while_allowed(
    require: Callable[[], Awaitable[None]], pieces: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """The pieces, while they may be told. Raises what ``require`` raises."""
    async for piece in pieces:
        await require()
        yield piece


async def or_abort(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces; where the rest may not be told, the answer breaks off."""
    try:
        async for piece in pieces:
            yield piece
    except LOST as error:
        raise ResponseAborted(str(error)) from error


async def or_end_with_reason(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same for a text that people read as it comes: a last line says why it breaks off."""
    try:
        async for piece in pieces:
            yield piece
    except LOST as error:
        yield f"\n[spinney: the output breaks off here: {error}]\n".encode()
        raise ResponseAborted(str(error)) from error
