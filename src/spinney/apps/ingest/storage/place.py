"""What a file system and S3 each have to be able to do, so that putting, reading and verifying are written once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from spinney.apps.ingest.storage.contract import Incoming
from spinney.apps.ingest.storage.object_inventory import Inventory

Step = Callable[[str], None]
"""Told each step of a put when it is done (the names stand in the package's docstring); tests kill there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A small file, and what stands for its state where writes are conditional (an ETag)."""

    raw: bytes
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An object's newest inventory, its digest found right."""

    inventory: Inventory
    document: Document
    settled: bool
    """False: the root's sidecar is missing or an older version's; a put was cut off before its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whose put it is."""

    object_id: str
    root: str
    """The object's, relative to the storage root."""
    key: str
    fence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A content that stands where the version will find it, or that the object had already."""

    digest: str
    size_bytes: int
    sums: Mapping[str, str]
    added: bool
    """False when the object had it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A version that is ready to be written."""

    inventory: bytes
    algorithm: str
    contents: Collection[str]
    """The digests whose contents are new in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the next version's folders are named, and what it is addressed by."""

    version: str
    content: str
    algorithm: str


class Writing(Protocol):
    """A put under way, for one object, by one writer."""

    def newest(self) -> Loaded | None:
        """The root inventory, after what a dead put left unfinished was finished."""
        ...

    def begin(self, shape: Shape) -> None:
        """Say which version is built now; what a dead put left of another is removed."""
        ...

    def keep(self, files: Iterable[Incoming], have: Collection[str]) -> Iterator[Kept]:
        """Store the contents, in any number at once, but answered in order; what is in ``have`` is only read."""
        ...

    def commit(self, draft: Draft) -> None:
        """Make the version count. Raises Busy when another writer was first."""
        ...

    def forget(self) -> None:
        """Remove what was kept: no version is going to be made of it."""
        ...


class Place(Protocol):
    """A storage root, wherever it is. Paths are relative to it, '/' between folders."""

    def read(self, path: str) -> Document | None:
        """A small file whole; None when it is not there."""
        ...

    def opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A file to be read once. Raises NoSuchObject when it is not there."""
        ...

    def url(self, path: str) -> str:
        """Where that is, for other programs."""
        ...

    def sizes(self, root: str) -> Callable[[str], int | None]:
        """Tells the size of a file by its path below ``root``; None when it is not there."""
        ...

    def walk(self, root: str) -> Iterator[str]:
        """Every file below ``root``, by its path below it; also empty folders, with a '/' at the end."""
        ...

    def writing(self, claim: Claim) -> AbstractContextManager[Writing]:
        """Begin a put. Raises Late or Busy when it is not this writer's turn."""
        ...
