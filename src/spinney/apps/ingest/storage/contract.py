"""What a storage promises, and the nouns it speaks in."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.errors import UsageError


class NoSuchObject(NotAdmitted):
    """There is no such object, version or file in the storage; the message names it."""


class NotThere(UsageError):
    """Where the storage should be there is none, as when a disk is not mounted; the message names the place."""


class Damaged(NotAdmitted):
    """What is stored contradicts itself; the message names it. Mend it from a copy, then try again."""


class Late(NotAdmitted):
    """A newer attempt of the same job is writing this object; let that one finish."""


class Busy(Exception):
    """Another put of the same object is under way or came first; try again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A file to be stored."""

    path: str
    """Where it lies within the object: relative, '/' between folders."""
    source: Path | bytes
    """A regular file; its folder is trusted, the file itself is not followed when it is a link. Or its content, where
    that is small and no file yet."""
    size_bytes: int
    sums: Mapping[str, str] = field(default_factory=dict)
    """Algorithm to value, as far as known; each is compared with what is read. With the storage's own
    algorithm among them, content that the object has already is not read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a put came to."""

    version: int
    changed: bool
    """False: the newest version had this state already, and none was made. A put that finds the version its
    key made before answers as it did then."""
    files: int
    """In the version's state."""
    added_files: int
    """Contents that the object did not have before."""
    added_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version as its inventory tells it."""

    number: int
    created: datetime
    message: str
    user: str
    key: str | None
    """Whose put made it; None when another program wrote it."""
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a version."""

    path: str
    size_bytes: int
    digest: Digest
    """By the algorithm that the object is addressed with."""
    content_path: str
    """Below the object's root."""
    sums: Mapping[str, str]
    """All digests on record for the content, that one among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What reading an object again came to."""

    files: int
    """Contents that were read to their end."""
    bytes: int
    faults: tuple[str, ...]
    """One sentence each; empty when all is well. After a thousand the rest is only counted."""


class Storage(Protocol):
    """Objects in versions; a version is never changed. Any of it may be cut off and called again.

    All raise NotAdmitted (or one of its kinds above) for what another attempt would meet again, `Busy`
    for what it need not, and OSError when the system or the service fails.
    """

    def put(
        self,
        object_id: str,
        files: Iterable[Incoming],
        *,
        key: str,
        message: str,
        user: str,
        created: datetime,
        merge: bool,
        fence: int | None,
    ) -> Stored:
        """Make a new version of these files, or of the newest version with these laid over it (``merge``).

        Idempotent by ``key`` (printable, one line): the same key answers the version that it made. A
        state that equals the newest version's makes none. ``fence`` is compared with that of an earlier
        put of the same key; the lower one is refused. ``created`` has a time zone. ``user``: a name, a
        mail address, or ``Name <address>``.
        """
        ...

    def exists(self, object_id: str) -> bool:
        """Whether the object has a version."""
        ...

    def versions(self, object_id: str) -> list[Version]:
        """All of them, oldest first."""
        ...

    def files(self, object_id: str, version: int | None = None) -> Iterator[StoredFile]:
        """The files of a version (None: the newest), by path."""
        ...

    def opened(
        self, object_id: str, path: str | StoredFile, version: int | None = None
    ) -> AbstractContextManager[BinaryIO]:
        """The content of a file, to be read once from its beginning. A `StoredFile` spares the inventory."""
        ...

    def url(self, object_id: str, file: StoredFile) -> str:
        """Where the content of a file is, for programs that may read the storage itself: of ``file``, or of S3 by
        path."""
        ...

    def verify(self, object_id: str, between: Callable[[int], None] = lambda read: None) -> Verified:
        """Read every content of every version again and compare; also the inventories, and what is astray.

        ``between`` is called with each number of bytes read, to show progress or to call it off by raising.
        """
        ...
