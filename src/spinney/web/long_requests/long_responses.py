"""Long responses: each piece is sent only while the caller still has the right to it.

The length of a response, or that it has an end, was sent at its beginning. So a response whose rest is no longer
allowed is aborted: the connection is closed without the end, and no client takes the part for the whole.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from spinney.commands.control import Control
from spinney.web.principal_refresh import LOST
from spinney.web.request_context import RequestContext


class ResponseAborted(Exception):
    """The rest of a response is not sent; ``request_guard`` closes the connection."""


def permission(context: RequestContext, job_id: int) -> Callable[[], Awaitable[None]]:
    """Return a check to call before each piece of a response about this job. It raises Unidentified or Forbidden when
    the caller has lost access, and NoSuchJob when the caller's limits no longer include the job."""
    return permission_for(context, lambda control: control.queries.job(job_id))


def permission_for(
    context: RequestContext, look: Callable[[Control], object]
) -> Callable[[], Awaitable[None]]:
    """Return a check to call before each piece of a response. When the caller's rights have changed it calls ``look``
    with the new rights, which raises if the response is no longer allowed."""
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
    """Yield the pieces, each after ``require``. Raises what ``require`` raises."""
    async for piece in pieces:
        await require()
        yield piece


async def or_abort(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces. Raises ResponseAborted when the rest is not allowed."""
    try:
        async for piece in pieces:
            yield piece
    except LOST as error:
        raise ResponseAborted(str(error)) from error


async def or_end_with_reason(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces of a text that people read as it comes. When the rest is not allowed a last line says why, then
    ResponseAborted is raised."""
    try:
        async for piece in pieces:
            yield piece
    except LOST as error:
        yield f"\n[spinney: the output breaks off here: {error}]\n".encode()
        raise ResponseAborted(str(error)) from error
