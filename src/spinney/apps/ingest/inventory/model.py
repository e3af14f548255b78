"""The data types of the inventory: entries, the results of its queries, and the error for a local id."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from spinney.files.paths import NotAdmitted, shown


class LocalIdTaken(NotAdmitted):
    """A local id belongs to another object of its collection; deposit to that one, or choose another local id."""

    def __init__(self, collection: str, local_id: str, ark: str) -> None:
        self.collection, self.local_id, self.ark = collection, local_id, ark
        super().__init__(
            f"the local id '{shown(local_id)}' of collection '{shown(collection)}' belongs to {shown(ark)}; "
            f"deposit to that object, or choose another local id"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of an object, in one or more of its versions."""

    path: str
    """The path within the object."""
    size_bytes: int
    mime_type: str | None = None
    modified: str | None = None
    """When it was last changed, from its manifest or container, in any format."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Algorithm to hexadecimal value; see ``digests``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOrigin:
    """Where a version of an object comes from, and what its depositor says of it."""

    version: int
    """The number of the version, from 1."""
    batch_id: str
    """The name of the batch: ``bid-…``."""
    job_id: str
    """The name of the object's job: ``jid-…``."""
    submitter: str
    who: str | None = None
    what: str | None = None
    when: str | None = None
    """``who``, ``what`` and ``when`` are the depositor's description of the object."""
    storage: str
    """The name of the storage target that keeps it."""
    created: datetime
    """When the storage made the version, with a time zone."""
    verified: int = 0
    """How many digests its depositor gave that were verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(VersionOrigin):
    """A version of an object: the parameter of ``record``."""

    ark: str
    collection: str
    owner: str
    files: Iterable[File]
    """All files of the version, also unchanged ones. Read once."""
    local_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(VersionOrigin):
    """A version of an object as the inventory records it."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectIdentity:
    """The names of a recorded object, and to whom it belongs."""

    ark: str
    collection: str
    owner: str
    local_ids: Sequence[str]
    """Those bound to its ark, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Object(ObjectIdentity):
    """An object with all its versions, oldest first."""

    versions: Sequence[Version]

    @property
    def head(self) -> Version:
        """The newest version."""
        return self.versions[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch:
    """A file that was found, and the versions that have it."""

    file: File
    first_version: int
    last_version: int
    """The file is in all recorded versions from the first to this one. If later ones have it again, it has another
    entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(ObjectIdentity):
    """An object, or one file of an object, that matches a search."""

    head: Version
    """The newest version."""
    file: FileMatch | None
    """The file that matches; None unless files were searched."""
    place: str
    """The value for ``after`` to get the next page. Its format is internal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(ObjectIdentity):
    """A version that a batch has made."""

    version: Version
    apart_files: int = 0
    apart_bytes: int = 0
    """Number and size of the files below the folder that is counted separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """An object whose last audit found faults."""

    ark: str
    collection: str
    since: datetime
    """The first of the consecutive audits that found faults."""
    audited: datetime
    """The time of the last audit."""
    faults: Sequence[str]
    """A sentence for each fault that it found. If there are very many, the first ones and the number of the others."""
