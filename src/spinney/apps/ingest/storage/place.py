"""The operations of a file system and of S3, on which putting, reading and verifying are built."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import orjson

from spinney.apps.ingest.storage.model import Incoming, Late
from spinney.apps.ingest.storage.object_inventory import Inventory, Shape
from spinney.files.paths import shown

Step = Callable[[str], None]
"""Called after each step of a put (the names are in the package's docstring), where tests kill the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A small file, with its ETag where writes are conditional."""

    raw: bytes
    tag: str = ""
    """Its ETag; empty where writes are not conditional."""


Read = Callable[[str], Document | None]
"""Reads a small file of a storage root by its path; None: it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An object's newest inventory, whose digest has been checked."""

    inventory: Inventory
    document: Document
    has_sidecar: bool
    """False: the root's sidecar is missing or that of an older version, since a put was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The identity of a put: object, key and fence. A document of it in the staging folder refuses late attempts."""

    object_id: str
    root: str
    """The path of the object, relative to the storage root."""
    key: str
    fence: int

    def document(self) -> bytes:
        """Return the document to be written."""
        return orjson.dumps({"id": self.object_id, "key": self.key, "fence": self.fence})

    def refuse_late(self, document: bytes | None) -> None:
        """Raise Late when, by the existing document, a newer attempt of the same key has claimed the object.

        A document that is no valid claim (half-written, or of another program) refuses nobody: claims protect from
        late writers, and do not decide whether a version counts.
        """
        try:
            other = orjson.loads(document or b"")
        except orjson.JSONDecodeError:
            return
        if not isinstance(other, dict) or other.get("key") != self.key or type(other.get("fence")) is not int:
            return
        if other["fence"] > self.fence:
            raise Late(
                f"attempt {self.fence} of '{shown(self.key)}' may not write {shown(self.object_id)} any more: attempt "
                f"{other['fence']} has begun; let that one finish"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A content that is stored for the version, or that the object had already."""

    digest: str
    size_bytes: int
    sums: Mapping[str, str]
    """Digests of the content by algorithm, as far as they were computed."""
    added: bool
    """False when the object had it."""


class Put(Protocol):
    """A put in progress, for one object, by one writer."""

    def newest(self) -> Loaded | None:
        """Return the root inventory, after finishing a put that was killed. None: there is no such object yet."""

    def begin(self, shape: Shape) -> None:
        """Begin to build this version; files of another that a killed put left are removed."""

    def keep(self, files: Sequence[Incoming], have: Collection[str]) -> Iterator[Kept]:
        """Store the contents, several at once, and yield the results in order; those in ``have`` are only read."""

    def commit(self, inventory: bytes, contents: Collection[str]) -> None:
        """Make the version count, with this inventory; ``contents``: the digests of its new contents. Raises Busy when
        another writer was first."""

    def forget(self) -> None:
        """Remove the contents that were kept, since no version will be made of them."""


class Place(Protocol):
    """A storage root on some medium. Paths are relative to it, '/' between folders."""

    @property
    def where(self) -> str:
        """Return the folder or the URL of the root, for messages."""

    def establish(self, documents: Mapping[str, bytes]) -> None:
        """Make an empty place a storage root: write these documents, by their paths and in their order, durably.
        Raises NotAdmitted where it has other content."""

    def read(self, path: str) -> Document | None:
        """Read a small file; None when it does not exist."""

    def opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a file, to be read once. Raises NoSuchObject when it does not exist."""

    def url(self, path: str) -> str:
        """Return the URL of a file, for other programs."""

    def sizes(self, root: str) -> Callable[[str], int | None]:
        """Return a function that gives the size of a file by its path below ``root``; None when it does not exist."""

    def walk(self, root: str) -> Iterator[str]:
        """Yield every file below ``root``, by its path below it; also empty folders, with a '/' at the end."""

    def begin_put(self, claim: Claim) -> AbstractContextManager[Put]:
        """Begin a put. Raises Late or Busy when this writer may not write (now)."""
