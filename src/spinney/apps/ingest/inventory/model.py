"""What goes into the inventory, and what comes out of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of an object, as one or more of its versions have it."""

    path: str
    """Within the object."""
    size_bytes: int
    mime_type: str | None = None
    modified: str | None = None
    """When it was last changed, as its manifest or container says; in whatever form."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Algorithm to hexadecimal value; see ``digests``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A version of an object, with what it belongs to: what ``record`` takes."""

    ark: str
    collection: str
    owner: str
    submitter: str
    batch_id: str
    """``bid-…``"""
    job_id: str
    """``jid-…``"""
    version: int
    """From 1."""
    created: datetime
    """When the storage made the version; aware."""
    storage: str
    """Name of the target that keeps it."""
    files: Iterable[File]
    """All of the version, whichever version brought them. Read once."""
    local_ids: Sequence[str] = ()
    who: str | None = None
    what: str | None = None
    when: str | None = None
    """Of the object's description, as its depositor words it."""
    verified: int = 0
    """Digests that its depositor gave and that were found right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version that is recorded."""

    version: int
    batch_id: str
    job_id: str
    submitter: str
    who: str | None
    what: str | None
    when: str | None
    storage: str
    created: datetime
    files: int
    size_bytes: int
    verified: int
    """Digests that its depositor gave and that were found right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object with all its versions, oldest first."""

    ark: str
    collection: str
    owner: str
    local_ids: Sequence[str]
    versions: Sequence[Version]
    audited: datetime | None
    """When its files were last read and compared; None: never."""
    damaged_since: datetime | None
    """The first of the audits in a row that found faults; None: the last found none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file that was looked for: in which versions it is."""

    file: File
    first_version: int
    last_version: int
    """The file is in all recorded versions from the first to this one. It may be in later ones again: then it is found
    once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object, or one file of an object, that fits what was looked for."""

    ark: str
    collection: str
    owner: str
    local_ids: Sequence[str]
    head: Version
    """Its newest version."""
    file: FoundFile | None
    """None unless a file was looked for."""
    place: str
    """Given back as ``after``, it leads to what comes next. Its form is nobody's concern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A version that a batch has brought."""

    ark: str
    collection: str
    owner: str
    local_ids: Sequence[str]
    version: Version
    apart_files: int = 0
    apart_bytes: int = 0
    """Of its files those below the folder that was to be counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An object that an audit should read: its newest version and where that is kept."""

    ark: str
    storage: str
    version: int
    audited: datetime | None
    """None: never yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What reading all files of an object has shown."""

    when: datetime
    files: int
    size_bytes: int
    faults: Sequence[str]
    """A sentence for each; of very many the first ones, and how many more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """An object whose last audit found faults."""

    ark: str
    collection: str
    since: datetime
    """The first of the audits in a row that found any."""
    audit: Audit
    """The last."""
