"""Refusals in the audit log: the first of a kind at once, further ones once a minute with their number.

So a client that guesses tokens or asks for what it may not see is recorded, and cannot fill the audit."""

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, Request

from spinney.model.errors import SpinneyError
from spinney.service.refusal_log import NOBODY, RefusalLog
from spinney.web.background import BackgroundLoop
from spinney.web.request_context import now_us
from spinney.web.store_pool import StorePool

EVERY_S = 30.0
"""How many seconds pass between two looks at the counts."""
SHUT_OUT = "access refused"
"""The verb of an entry about a failed authentication."""


def add_to(app: FastAPI) -> None:
    """Add ``app.state.refusals`` and the loop that writes the counts."""
    app.state.refusals = RefusalLog()
    app.state.beside.append(RefusalWriter(app.state.stores, app.state.refusals))


async def audit_denied_access(request: Request, why: str, *, by: str = NOBODY, **details: Any) -> None:
    """Record a failed authentication. ``details`` must contain no secret."""
    refusals: RefusalLog = request.app.state.refusals
    entry = {"why": why, **details}
    await request.app.state.stores.run(
        lambda store: refusals.enter(store.audit, by, SHUT_OUT, entry, now_us=now_us())
    )


class RefusalWriter(BackgroundLoop):
    """Writes the counted refusals every half minute, and at the end."""

    def __init__(self, stores: StorePool, refusals: RefusalLog) -> None:
        self._stores, self._refusals = stores, refusals

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        with suppress(SpinneyError):  # the store is away: the first of each kind has been entered
            await self._enter(all_=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            with suppress(SpinneyError):
                await self._enter(all_=False)

    async def _enter(self, *, all_: bool) -> None:
        await self._stores.run(lambda store: self._refusals.flush(store.audit, now_us=now_us(), all_=all_))
