"""Where jobs have their folders, in a store whose folders are local."""

from dataclasses import dataclass
from typing import NamedTuple


class FolderRoot(NamedTuple):
    """A folder root, as a node that joins finds it."""

    mark: str
    """What is written in it, so that it is known wherever it is mounted."""
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A folder root that a node has joined with."""

    id: int
    mark: str
    host: str
    """Of the node that joined with it last."""
    path: str
    """Where it was there."""
    gone: bool = False
    """An operator has let go of it: jobs that have their folders there go on anywhere, with empty ones."""

    def __str__(self) -> str:
        return f"host {self.host} ({self.path})"


class Fetch(NamedTuple):
    """A question to the nodes of a home: for a piece of a file, or for the names in a directory."""

    id: int
    job_id: int
    path: str
    """Within the job's folder; empty: the folder itself."""
    start: int
    """The first byte, or the first name."""
    length: int
    """Bytes; 0: the names in a directory."""


class DirectoryEntry(NamedTuple):
    """A name in a directory."""

    name: str
    kind: str
    """``file``, ``folder`` or ``other`` (a link, a pipe)."""
    size: int


class FetchResult(NamedTuple):
    """The answer: one of the three."""

    data: bytes | None = None
    """The piece; fewer bytes than asked for when the file ends there."""
    names: tuple[DirectoryEntry, ...] | None = None
    """In their order; fewer than ``NAMES_MOST`` when there are no more."""
    error: str | None = None
    """Why there is no such thing to be had; ``MISSING`` when nothing is there."""


MISSING = "is not there"
PIECE_BYTES = 2**16
"""The longest piece."""
NAMES_MOST = 500
"""The most names of one answer."""
