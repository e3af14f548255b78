"""HEAD answers what GET would, without the body, at every address.

No body is made: an answer without end, such as an event stream, ends with its head. The route is left by an
exception at that moment, which no error handler catches, so that what it holds (a file, a quota) is released
as after any request."""

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ADDED = ("route", "state")
"""What inner layers add to a request's scope, and instrumentation reads."""


def add_to(app: FastAPI) -> None:
    """Add the middleware in front of all that ``app`` already has."""
    app.add_middleware(HeadRequests)


class HeadRequests:
    """ASGI middleware that answers a HEAD request with the head of what GET would answer. What inner layers
    find out about the request (its route, its caller) is copied to the scope of the HEAD request, for the
    log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
                raise _HeadSent

        try:
            await self._app(get_scope, receive, head)
        except _HeadSent:
            pass
        finally:
            scope.update({name: get_scope[name] for name in _ADDED if name in get_scope})


class _HeadSent(Exception):
    """The head of the answer is sent, and the rest of it is not needed."""
