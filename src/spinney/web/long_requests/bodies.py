"""Request bodies as they come: counted and timed, so that nobody can fill memory, disk or connections with them.

A route whose body goes to disk as it comes may take more than others: it says so by ``dependencies=[LargeBody]`` and
reads ``request.stream()`` (FastAPI reads JSON and forms that it declares before it looks at what a route depends on).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import Depends, Request
from starlette.responses import Response
from starlette.types import Message, Receive

from spinney.model.errors import StoreUnavailable
from spinney.web.principal_refresh import LOST
from spinney.web.problems import of_error, of_status

KEY = "spinney.body"
"""Where the scope of a request has its Body."""
PACE_BYTES_S = 1_000
"""What comes more slowly than this on the average, beyond the first patience, is cut off: else one byte now and then
would keep a connection for ever."""

LONG_S = 1.0
"""A body that has been coming for so long is a long one."""
SMALL_BYTES = 65_536
"""How long the body of a form may be that anybody may send."""
PLAIN = "identity"
"""The only coding of bodies: what is unpacked here might be a thousand times as long."""


class BodyRefused(Exception):
    """The rest of a body is not read. ``answer`` is the response that says why."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


class Body:
    """The body of one request while it comes. ``receive`` stands in for that of ASGI. It counts and times
    what comes, refuses what the headers announce before it is read, and remembers that it did (``failed``),
    since a route may catch the error and answer as if the body had been whole."""

    def __init__(
        self,
        receive: Receive,
        *,
        announced: int | None,
        most: int,
        patience_s: float,
        coding: str = PLAIN,
        instance: str | None = None,
        long: Callable[[], Awaitable[None]] | None = None,
        long_s: float = LONG_S,
    ) -> None:
        """``coding``: what Content-Encoding says. ``instance``: the address that refusals name. ``long``: called when
        the body has been coming for ``long_s``, and every ``long_s`` from then on; what it raises ends the body."""
        self.most = most
        """The most bytes of the body. The bound may be raised until the first byte is read."""
        self.failed: BodyRefused | None = None
        self._receive, self._announced, self._patience_s = receive, announced, patience_s
        self._coding, self._instance = coding, instance
        self._long, self._long_s = long, long_s
        self._called_s: float | None = None
        """When ``long`` was called last, or the body began to come."""
        self._taken, self._waited_s = 0, 0.0
        self._whole = False

    async def receive(self) -> Message:
        """Return the next message of ASGI. Raises BodyRefused when the body is compressed (415), too long (413) or too
        slow (408), and when the caller has lost access meanwhile."""
        if self._whole:
            return await self._receive()  # the only message that can still come says that the caller has gone
        if self._coding.lower() != PLAIN:
            raise self._unfit(415, f"the body is coded as {self._coding!r:.100}; send it as it is")
        if self._announced is not None and self._announced > self.most:
            raise self._unfit(413, self._too_large())  # before "100 Continue" is sent
        message = await self._next()
        self._taken += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._taken > self.most:
            raise self._unfit(413, self._too_large())
        return message

    async def _next(self) -> Message:
        """Return the next message, and call ``long`` whenever the body has been coming for so long. Raises BodyRefused
        when the client is too slow."""
        begun = time.monotonic()
        ends = begun + self._left_s()
        if self._called_s is None:
            self._called_s = begun
        while True:
            calls = self._called_s + self._long_s
            try:
                async with asyncio.timeout(min(ends, calls) - time.monotonic()):
                    message = await self._receive()
                break
            except TimeoutError:
                if time.monotonic() >= ends:
                    raise self._unfit(
                        408, "the body comes too slowly; send it faster, or in smaller parts"
                    ) from None
                await self._call()
        self._waited_s += time.monotonic() - begun
        if time.monotonic() >= calls:
            await self._call()
        return message

    async def _call(self) -> None:
        """Call ``long``. While the store does not answer, the body goes on. Raises BodyRefused with what
        ``long`` raises."""
        try:
            if self._long is not None:
                await self._long()
        except StoreUnavailable:
            pass  # whatever is done with the body asks the store again
        except LOST as error:
            self.failed = BodyRefused(of_error(error, instance=self._instance))
            raise self.failed from error
        self._called_s = time.monotonic()

    def _left_s(self) -> float:
        """Return how many seconds the next message may take: the patience, or less for a client that has
        already taken longer than ``PACE_BYTES_S`` allows for what it has sent."""
        return min(self._patience_s, self._patience_s + self._taken / PACE_BYTES_S - self._waited_s)

    def _too_large(self) -> str:
        return (
            f"the body is longer than {self.most:,} bytes; send less at a time, or have [server] allow more"
        )

    def _unfit(self, status: int, sentence: str) -> BodyRefused:
        """Return the error that refuses the body with this status and sentence, and remember it."""
        self.failed = BodyRefused(of_status(status, sentence, instance=self._instance))
        return self.failed


def raise_bound(request: Request) -> None:
    """Let the body of this request be as long as an upload may be (``upload_max_bytes``), for a route that
    reads only some of its bodies to disk. Call it before the body is read; it has no effect on what was
    refused before."""
    body: Body = request.scope[KEY]
    body.most = max(body.most, request.app.state.settings.upload_max_bytes)


async def _large(request: Request) -> None:
    raise_bound(request)


LargeBody = Depends(_large)
"""The bound for a route that writes its body to disk as it comes: ``upload_max_bytes``."""


async def _small(request: Request) -> None:
    body: Body = request.scope[KEY]
    body.most = SMALL_BYTES


SmallBody = Depends(_small)
"""The bound for a form that anybody may send."""
