"""Follows the output of an attempt while it is written, until the attempt has ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from spinney.features.files.content import JobFile
from spinney.model.errors import NoSuch
from spinney.web.files.content import PIECE_BYTES

LOOK_S = 0.25
"""The interval at which the file is read again."""
STORE_LOOKS = 4
"""One in this many reads also asks the store whether the attempt has ended."""


async def follow(
    open_: Callable[[], Awaitable[JobFile]],
    ended: Callable[[], Awaitable[bool]],
    require: Callable[[], Awaitable[None]],
    *,
    start: int,
) -> AsyncIterator[bytes]:
    """Yield the content of the file from the byte ``start`` on, and what is written to it meanwhile, until
    the attempt has ended.

    ``open_`` raises NoSuch while nothing has been written. ``ended`` returns whether the attempt has ended;
    it is asked with every fourth look only, because it is a query. ``require`` is called at each look and
    before each piece; what it raises (the caller has lost the rights) ends the stream. The last bytes of a
    growing file are held back as long as they may be the beginning of a secret.
    """
    content: JobFile | None = None
    at, looks, over = start, 0, await ended()
    while True:
        if content is None:
            content = await _perhaps(open_)
        if content is not None:
            size, _ = await content.size_and_tag()
            while at < size and (
                piece := await content.read(at, min(PIECE_BYTES, size - at), grows=not over)
            ):
                at += len(piece)
                await require()
                yield piece
        if over:
            return
        await asyncio.sleep(LOOK_S)
        await require()
        looks += 1
        # What was written before it ended is read once more after that is known.
        over = looks % STORE_LOOKS == 0 and await ended()


async def _perhaps(open_: Callable[[], Awaitable[JobFile]]) -> JobFile | None:
    """Return the opened file; None while there is none."""
    try:
        return await open_()
    except NoSuch:
        return None
