"""A loop that runs beside the requests, for as long as the server runs.

All that a server does beside requests has this skeleton: the event feed, the history for charts, maintenance,
counted refusals. ``application`` starts each as part of its lifespan, and leaving stops it."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self


class BackgroundLoop(ABC):
    """Runs ``_run`` in the background within ``async with``, and cancels it at the end."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    @abstractmethod
    async def _run(self) -> None:
        """Work until cancelled. Errors that can pass must not leave it: nobody would start it again."""
