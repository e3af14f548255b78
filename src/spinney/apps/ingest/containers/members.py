"""What the readers of zip and tar tell of a member."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import IO


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A member as its container declares it; nothing of it has been judged but what ``refusal`` says."""

    name: str
    """As it stands in the container."""
    size_bytes: int
    """Declared; it may lie."""
    modified: datetime | None
    """When it was last changed; without a zone where the container knows none. None: it does not say."""
    folder: bool
    refusal: str | None
    """Why this kind of member may not enter, whatever its name: half a sentence."""
    opened: Callable[[], IO[bytes]]
    """Its content; to be read to its end before the next member is asked for."""
