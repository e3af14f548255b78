"""The skeleton of the background services: a step that is run again and again, for as long as the node lives.

While the store is unavailable a step is retried, with pauses that grow and differ from node to node. The cause is
logged once, by ``NodeHealth``; here it only appears at the level of debugging.

Any other error of a step ends the service, and with it the node. A service that only makes figures for people declares
that the node can do without it: its error is logged with the traceback, and the step is run again later."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from spinney.model.errors import StoreUnusable
from spinney.node.retry_delays import RetryDelays

log = logging.getLogger(__name__)

_RETRY_S, _RETRY_MOST_S = 0.5, 2.0
"""The first and the longest pause of ``on_wake`` while the store is unavailable, in seconds."""

Step = Callable[[], Awaitable[None]]


async def every(
    seconds: float, step: Step, name: str, *, wake: asyncio.Event | None = None, dispensable: bool = False
) -> None:
    """Run ``step`` for ever: again ``seconds`` after it has ended, or as soon as ``wake`` is set. A wake-up
    during the step is not lost: the step runs again at once.

    ``name`` is for the log. ``dispensable``: the node can do without this service, so an unexpected error is
    logged, and does not end it. Raises what the step raises otherwise, except StoreUnusable, after which it
    is tried again."""
    wake, delays = wake or asyncio.Event(), RetryDelays(seconds, 4 * seconds)
    while True:
        wake.clear()
        try:
            await step()
        except Exception as error:
            if isinstance(error, StoreUnusable):
                log.debug("%s waits: %s", name, error)
            elif dispensable:
                log.exception("%s has failed; the node works on, and tries it again later", name)
            else:
                raise
            await asyncio.sleep(delays.next_s())
            continue
        delays.reset()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await wake.wait()


async def on_wake(wake: asyncio.Event, step: Step, name: str, *, pause_s: float = 0.0) -> None:
    """Run ``step`` for ever, once whenever ``wake`` has been set, with a pause of ``pause_s`` seconds after it.
    ``name`` is for the log."""
    delays = RetryDelays(_RETRY_S, _RETRY_MOST_S)
    while True:
        await wake.wait()
        wake.clear()
        try:
            await step()
        except StoreUnusable as error:
            log.debug("%s waits: %s", name, error)
            wake.set()
            await asyncio.sleep(delays.next_s())
        else:
            delays.reset()
            await asyncio.sleep(pause_s)
