"""A file that is sent, wherever it lies."""

from collections.abc import AsyncIterator
from typing import Protocol

PIECE_BYTES = 2**18


class Content(Protocol):
    """A file, open."""

    async def size_and_tag(self) -> tuple[int, str | None]:
        """How long it is now, and a tag that changes with it (None: nobody can tell)."""

    async def read(self, start: int, length: int) -> bytes:
        """A piece; shorter than asked for where the file ends."""


async def pieces_of(content: Content, byte_range: range) -> AsyncIterator[bytes]:
    """The bytes of a part, a piece at a time."""
    at = byte_range.start
    while at < byte_range.stop:
        piece = await content.read(at, min(PIECE_BYTES, byte_range.stop - at))
        if not piece:
            return  # it became shorter meanwhile
        at += len(piece)
        yield piece
