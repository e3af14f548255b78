"""Where jobs have their folders, in a store whose folders are local.

Such a folder can be read only on its host. So pages and commands ask for a piece of a file through the store:
a ``Fetch`` is a row that any node of that home answers with a ``FetchResult``
(``spinney.features.homes``)."""

from dataclasses import dataclass
from typing import NamedTuple


class FolderRoot(NamedTuple):
    """A folder root, as a joining node reports it."""

    mark: str
    """The mark in its file, by which it is recognized wherever it is mounted."""
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A folder root that a node has joined with."""

    id: int
    mark: str
    host: str
    """The host of the node that joined with it last."""
    path: str
    """The path of the folder root on that host."""
    given_up: bool = False
    """An operator has given it up: jobs whose folders are there continue anywhere, with empty folders."""

    def __str__(self) -> str:
        return f"host {self.host} ({self.path})"


class Fetch(NamedTuple):
    """A request to the nodes of a home: for a piece of a file, or for the names in a directory."""

    id: int
    job_id: int
    path: str
    """The path within the job's folder; empty: the folder itself."""
    start: int
    """The first byte, or the first name."""
    length: int
    """The number of bytes; 0: the names in a directory."""


class DirectoryEntry(NamedTuple):
    """A name in a directory of a job's folder, with its kind and its size in bytes."""

    name: str
    kind: str
    """``file``, ``folder`` or ``other`` (a link, a pipe)."""
    size: int


class FetchResult(NamedTuple):
    """The answer to a request; exactly one of the fields is set."""

    data: bytes | None = None
    """The piece; it has fewer bytes than requested when the file ends there."""
    names: tuple[DirectoryEntry, ...] | None = None
    """The names, in their order; fewer than ``NAMES_MOST`` when there are no more."""
    error: str | None = None
    """Why it cannot be read; ``MISSING`` when it does not exist."""


# The error of a FetchResult for a path that does not exist, by which it is told from one that cannot be read.
MISSING = "is not there"
PIECE_BYTES = 2**16
"""The longest piece."""
NAMES_MOST = 500
"""The most names of one answer."""
