"""Who makes a request, looked up anew while the request lasts.

An answer may stream for hours and a body may come for hours. Meanwhile a token is revoked, a user is disabled, a
session ends or limits are narrowed. So whatever acts for a request that lasts asks ``PrincipalRefresh.asker`` before
each step:
before an event, a piece of a file, a call of ``control``. It costs one comparison unless the last look is old.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from spinney.model.errors import Forbidden, SpinneyError, StoreUnavailable
from spinney.web.problems import Unidentified

LOST = (Unidentified, SpinneyError)
"""What ends a request that lasts: each says why in a sentence, and ``problems.of_error`` makes an answer of it."""


class Named(Protocol):
    """Whoever has a name."""

    @property
    def name(self) -> str: ...


PrincipalT = TypeVar("PrincipalT", bound=Named)


class PrincipalRefresh(Generic[PrincipalT]):
    """Of one request."""

    def __init__(
        self,
        first: PrincipalT,
        look: Callable[[], Awaitable[PrincipalT | None]],
        *,
        every_s: float,
        looked_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``first``: who made the request, as of ``looked_s`` by the clock ``monotonic``; ``look`` asks anew."""
        self._latest, self._look, self._monotonic = first, look, monotonic
        self.every_s, self._looked_s = every_s, looked_s

    async def principal(self) -> PrincipalT:
        """Who asks, with the rights in force. Raises Unidentified or Forbidden for a principal who may no more, and
        StoreUnavailable."""
        if self._monotonic() - self._looked_s >= self.every_s:
            # The time before the look counts: what changes while the store answers is obeyed as soon.
            looked_s = self._monotonic()
            latest = await self._look()
            if latest is None or latest.name != self._latest.name:
                raise Unidentified(f"{self._latest.name} is no longer signed in here; sign in again")
            self._latest, self._looked_s = latest, looked_s
        return self._latest

    async def steady_principal(self) -> PrincipalT:
        """The same for an answer that is under way: while the store does not answer, nothing more is told, and this
        waits."""
        while True:
            try:
                return await self.principal()
            except StoreUnavailable:
                await asyncio.sleep(self.every_s)

    async def watch(self, stop: Callable[[Forbidden], None]) -> None:
        """Look again and again, until the rights are others than they were, or gone; then call ``stop`` with what to
        say, and return. For a call that runs in another thread with the rights that it began with."""
        began = self._latest
        while True:
            await asyncio.sleep(self.every_s)
            try:
                if await self.steady_principal() == began:
                    continue
                why = f"the rights of {began.name} have changed; ask again, and the rest is done with those in force"
            except LOST as error:
                why = str(error)
            stop(Forbidden(f"it was stopped between two steps: {why}"))
            return
