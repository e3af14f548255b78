"""The data types and errors of a storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

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
    added_bytes: int
    """The size of the contents that the object did not have before."""


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
