"""The content of a file that is sent, whether the file is on this host or on that of a node."""

from collections.abc import AsyncIterator
from typing import Protocol

PIECE_BYTES = 2**18
"""How much is read and sent at a time."""


class Content(Protocol):
    """A file that is being served, and that may grow meanwhile; reads are asynchronous."""

    async def size_and_tag(self) -> tuple[int, str | None]:
        """Return the current size in bytes, and an ETag that changes with the content (None: unknown)."""

    async def read(self, start: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``start`` on; fewer at the end of the file."""


async def pieces_of(content: Content, byte_range: range) -> AsyncIterator[bytes]:
    """Yield the bytes of a range, piece by piece. It ends early when the file has become shorter meanwhile;
    then fewer bytes are sent than announced, and the client sees that."""
    at = byte_range.start
    while at < byte_range.stop:
        piece = await content.read(at, min(PIECE_BYTES, byte_range.stop - at))
        if not piece:
            return  # it became shorter meanwhile
        at += len(piece)
        yield piece
