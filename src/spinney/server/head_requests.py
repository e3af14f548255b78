"""HEAD answers what GET would, without the body, at every address: who looks whether something is there needs no more.

Nothing of the body is made: an answer without end, as of an event stream, ends with its head.
"""

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FOUND = ("route", "state")
"""What is found out about a request on its way, for those that measure it."""


def add_to(app: FastAPI) -> None:
    """Before all that is in ``app`` already."""
    app.add_middleware(HeadRequests)


class HeadRequests:
    """ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        asked = {**scope, "method": "GET"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
                raise _Told

        try:
            await self._app(asked, receive, head)
        except _Told:
            pass
        finally:
            scope.update({name: asked[name] for name in _FOUND if name in asked})


class _Told(Exception):
    """The head of the answer is on its way, and nothing more is wanted of it."""
