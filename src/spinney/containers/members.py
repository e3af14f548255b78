"""The data of a member from the readers of zip and tar."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import IO


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A member as its container declares it; only its kind has been checked (``refusal``)."""

    name: str
    """The name in the container."""
    size_bytes: int
    """The declared size, which may be wrong."""
    modified: datetime | None
    """When it was last changed; without a zone where the container has none. None: unknown."""
    folder: bool
    refusal: str | None
    """Why this kind of member is refused, whatever its name: half a sentence."""
    opened: Callable[[], IO[bytes]]
    """Opens its content, which has to be read to its end before the next member is read."""
