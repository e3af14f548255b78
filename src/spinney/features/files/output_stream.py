"""Output of an attempt as it is written, until the attempt has ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from spinney.define.params.masking import Redactor
from spinney.model.errors import NoSuch
from spinney.web.files.content import PIECE_BYTES, Content

LOOK_S = 0.25
STORE_LOOKS = 4
"""Of so many looks at the file one is at the store, too: whether the attempt has ended."""


async def follow(
    open_: Callable[[], Awaitable[Content]],
    ended: Callable[[], Awaitable[bool]],
    require: Callable[[], Awaitable[None]],
    *,
    start: int,
    redactor: Redactor,
    look_s: float = LOOK_S,
) -> AsyncIterator[bytes]:
    """What is in the file from ``start`` on, and what is written to it meanwhile.

    ``open_`` raises NoSuch while nothing has been written; ``require``, called at each look and before each piece,
    raises what ends the following where whoever follows may no more. The last bytes of a file that still grows are held
    back where they may be the beginning of a secret.
    """
    content: Content | None = None
    back = max((len(text.encode()) for text in redactor.texts), default=1) - 1
    at, looks, over = start, 0, await ended()
    while True:
        if content is None:
            content = await _perhaps(open_)
        if content is not None:
            size, _ = await content.size_and_tag()
            until = size if over else size - back
            while at < until and (piece := await content.read(at, min(PIECE_BYTES, until - at))):
                at += len(piece)
                await require()
                yield piece
        if over:
            return
        await asyncio.sleep(look_s)
        await require()
        looks += 1
        # What was written before it ended is read once more after that is known.
        over = looks % STORE_LOOKS == 0 and await ended()


async def _perhaps(open_: Callable[[], Awaitable[Content]]) -> Content | None:
    try:
        return await open_()
    except NoSuch:
        return None
