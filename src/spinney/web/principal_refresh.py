"""The caller of a long request, authenticated again while it lasts.

An answer may stream for hours and a body may come for hours. Meanwhile a token is revoked, a user is disabled, a
session ends or limits are narrowed. So a long request calls ``PrincipalRefresh.principal`` before each
step: an event, a piece of a file, a call of ``control``. That costs one comparison unless the last check is old.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from spinney.model.errors import Forbidden, SpinneyError, StoreUnavailable
from spinney.web.problems import Unidentified

LOST = (Unidentified, SpinneyError)
"""The errors that end a long request; ``problems.of_error`` makes a response of each."""


class Named(Protocol):
    """What authentication returns, as far as this module needs it."""

    @property
    def name(self) -> str:
        """The name of the caller. When it changes, the request has lost its caller."""


PrincipalT = TypeVar("PrincipalT", bound=Named)


class PrincipalRefresh(Generic[PrincipalT]):
    """The caller of one request, who is authenticated again when the last check is older than ``every_s``. It
    belongs to the event loop; a call in another thread is stopped by ``watch``."""

    def __init__(
        self,
        first: PrincipalT,
        look: Callable[[], Awaitable[PrincipalT | None]],
        *,
        every_s: float,
        looked_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``first``: the caller as authenticated at ``looked_s`` of the clock ``monotonic``. ``look`` authenticates
        again, at most every ``every_s`` seconds."""
        self._latest, self._look, self._monotonic = first, look, monotonic
        self.every_s, self._looked_s = every_s, looked_s

    async def principal(self) -> PrincipalT:
        """Return the caller with the rights in force. Raises Unidentified or Forbidden for a caller who has lost
        access or has another name now, and StoreUnavailable."""
        if self._monotonic() - self._looked_s >= self.every_s:
            # The time before the look counts: what changes while the store answers is obeyed as soon.
            looked_s = self._monotonic()
            latest = await self._look()
            if latest is None or latest.name != self._latest.name:
                raise Unidentified(f"{self._latest.name} is no longer signed in here; sign in again")
            self._latest, self._looked_s = latest, looked_s
        return self._latest

    async def steady_principal(self) -> PrincipalT:
        """Return the caller with the rights in force, for a response that has begun: while the store does not answer,
        this waits instead of raising."""
        while True:
            try:
                return await self.principal()
            except StoreUnavailable:
                await asyncio.sleep(self.every_s)

    async def watch(self, stop: Callable[[Forbidden], None]) -> None:
        """Wait until the rights have changed or are lost; then call ``stop`` with the error to raise, and
        return. This is for a call in another thread, which has the rights that it began with: ``stop`` has to
        make the error reach that thread. Narrower rights stop it as well as none."""
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
