"""The contract of a storage, with its data types and errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from spinney.errors import UsageError
from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted


class NoSuchObject(NotAdmitted):
    """There is no such object, version or file in the storage; the message names it."""


class NotThere(UsageError):
    """There is no storage at its place, as when a disk is not mounted; the message names the place."""


class Damaged(NotAdmitted):
    """Stored files contradict each other; the message names them. Restore them from a copy, then try again."""


class Late(NotAdmitted):
    """A newer attempt of the same job is writing this object; let that one finish."""


class Busy(Exception):
    """Another put of the same object is under way or came first; try again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A file to be stored in a version, with the digests that are known of it."""

    path: str
    """The path within the object: relative, '/' between folders."""
    source: Path | bytes
    """A regular file; its folder is trusted, the file itself is not followed when it is a link. Or the content, where
    that is small and not in a file."""
    size_bytes: int
    sums: Mapping[str, str] = field(default_factory=dict)
    """Known digests, algorithm to value; each is compared with the content. With the storage's own algorithm
    among them, content that the object has already is not read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The version that a put has made, or found, and what it added."""

    version: int
    changed: bool
    """False: the newest version had this state already, and none was made. A repeated put of the same key
    returns the same result."""
    files: int
    """The number of files in the version's state."""
    added_files: int
    """The number of contents that the object did not have before."""
    added_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version, as described in its inventory."""

    number: int
    created: datetime
    message: str
    user: str
    key: str | None
    """The key of the put that made it; None when another program wrote it."""
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a version: its path there, and where its content is stored."""

    path: str
    size_bytes: int
    digest: Digest
    """The digest by the algorithm that addresses the object's content."""
    content_path: str
    """The path of the content below the object's root."""
    sums: Mapping[str, str]
    """All recorded digests of the content, ``digest`` among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of verifying an object."""

    files: int
    """The number of contents that were read to their end."""
    bytes: int
    faults: tuple[str, ...]
    """A sentence for each fault; empty when all is well. After a thousand the rest is only counted."""


class Storage(Protocol):
    """Stores objects in versions, which are never changed. Every method can be interrupted and called again.

    All raise NotAdmitted (or one of its subclasses above) for errors that another attempt would repeat, `Busy`
    for those that it may not, and OSError when the system or the service fails.
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
        """Make a new version of these files, or of the newest version with these added to it (``merge``).

        Idempotent by ``key`` (printable, one line): the same key returns the version that it made. A state
        that equals the newest version's makes none. ``fence`` is compared with that of an earlier put of the
        same key; the lower one is refused; None: nothing is compared. ``created`` has a time zone.
        ``message`` is any text; ``user``: a name, a mail address, or ``Name <address>``.

        Content whose digest is given and that the object has already is not read again. The version is
        durable on return. Raises Late, Busy, ValueError for a time without a zone, and NotAdmitted for a file
        that differs from its size or digests; no version was made then. After an OSError one may have been
        made, which a repetition with the same key finds.
        """
        ...

    def exists(self, object_id: str) -> bool:
        """Return whether the object has a version. Its inventory is not validated."""
        ...

    def versions(self, object_id: str) -> list[Version]:
        """Return all versions of an object, oldest first. Raises NoSuchObject."""
        ...

    def version(self, object_id: str, number: int) -> tuple[Version, Iterator[StoredFile]]:
        """Return a version and its files, by path; the inventory is read once for both. Raises NoSuchObject."""
        ...

    def files(self, object_id: str, version: int | None = None) -> Iterator[StoredFile]:
        """Yield the files of a version (None: the newest), by path. Raises NoSuchObject and Damaged, at the
        first step."""
        ...

    def opened(
        self, object_id: str, path: str | StoredFile, version: int | None = None
    ) -> AbstractContextManager[BinaryIO]:
        """Open the content of a file, to be read once from its beginning.

        For a `StoredFile` no inventory is read. ``version``: None is the newest. The content is not compared
        with its digests: that is left to the reader. Raises NoSuchObject, Damaged.
        """
        ...

    def url(self, object_id: str, file: StoredFile) -> str:
        """Return the URL of a file's content (``file:`` or that of S3 by path), for programs with access to the
        storage."""
        ...

    def verify(self, object_id: str, between: Callable[[int], None] = lambda read: None) -> Verified:
        """Read every content of every version again and compare it; also check the inventories and stray
        files.

        ``between`` is called with each number of bytes read, to show progress or to abort by raising. Damage
        is in the result and not raised. Raises NoSuchObject, and OSError when the storage itself does not
        answer.
        """
        ...
