"""Inboxes: folders where people and programs drop files, each of which becomes a job. Pure data and checks.

One node at a time looks into the folder. A drop that has rested goes through these steps, of which each may
be repeated after a crash: an ``Arrival`` is stored together with its job, which is held (TAKING); the file is
moved into the job's folder; then the arrival is TAKEN and the job released. A drop that is refused is moved
into the folder ``rejected`` instead (REJECTING, REJECTED). An upload over the API takes the same way, without
the folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.settings.schedules import check_options, one_of
from spinney.model.values import durations, names

# How long a file must not have changed before it is taken, in seconds, and the longest time that may be set.
REST_S = 10.0
REST_MOST_S = 86_400.0
FILE_PARAM = "file"
"""The parameter that gets the name of what was dropped, where the job type declares it."""
DATA_NAME = "inbox"
"""The entry of ``job.data`` that says what was dropped."""
HELD_REASON = "what was dropped is not in its folder yet; a node that sees the inbox goes on with it"
"""Why a new job is held until its file is in its folder."""
UPLOAD_HELD_REASON = (
    "what was uploaded is not in its folder yet; a node, a server or its uploader goes on with it"
)
"""The same, where the file was uploaded."""


class Duplicates(StrEnum):
    """What happens to a drop that has the bytes of an earlier one."""

    REFUSE = "refuse"
    """The file goes into the folder ``rejected``."""
    ACCEPT = "accept"
    """It becomes a job as any other."""


class ArrivalOutcome(StrEnum):
    """How far the engine is with a file or folder that was dropped into an inbox."""

    TAKING = "taking"
    """Its job exists, and is held until the file is in its folder."""
    TAKEN = "taken"
    """The file is in its job's folder."""
    REJECTING = "rejecting"
    """It is about to be moved into ``rejected``."""
    REJECTED = "rejected"
    """It is in ``rejected``, or was removed before it was taken."""


class Kind(StrEnum):
    """What was dropped into an inbox, as the file system says."""

    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"
    """A link, a socket, a device: always rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """A folder, and which jobs are made of what is dropped there. Raises UsageError, BadName for invalid fields."""

    name: str
    folder: str
    """The absolute path on the hosts that see it."""
    type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of each submission: queue, priority, share, collection, submitter."""
    host: str | None = None
    """Only nodes of this host look there; None: any node that sees the folder."""
    rest_s: float = REST_S
    """A file is taken when it has not changed for so many seconds. It may be given as any duration."""
    duplicates: Duplicates = Duplicates.REFUSE
    paused: bool = False
    scan_us: int | None = None
    """When somebody asked to have everything taken that is there; None: that was done."""
    by: str = ""
    node_id: int | None = None
    node: str | None = None
    """The node that looks there; None: no node that works now does."""
    problem: str | None = None
    """What keeps files from being taken."""

    def __post_init__(self) -> None:
        names.name("inbox", self.name)
        names.name("job type", self.type)
        where = f"inbox {self.name!r}"
        path = PurePosixPath(self.folder)
        if not path.is_absolute() or str(path) != self.folder or ".." in path.parts or path == path.parent:
            raise UsageError(
                f"{where}: {self.folder!r} is no whole path of a folder; write it from the root on, without '..' and "
                f"without a '/' at its end, as '/srv/incoming'"
            )
        if not self.folder.isprintable():
            raise UsageError(
                f"{where}: {self.folder!r} has characters that cannot be printed; rename the folder"
            )
        if self.host is not None:
            names.label("host", self.host)
        durations.in_seconds(self, "rest_s", where=f"{where}: ")
        if not 0 <= self.rest_s <= REST_MOST_S:
            raise UsageError(
                f"{where}: a file rests for 0 to {REST_MOST_S:,.0f} seconds, not {self.rest_s!r}"
            )
        object.__setattr__(self, "duplicates", one_of(where, "duplicates", Duplicates, self.duplicates))
        check_options(where, self.options)

    def to_json(self) -> dict[str, Any]:
        """Return its definition: a value for ``from_json``."""
        return {
            "folder": self.folder,
            "type": self.type,
            "params": dict(self.params),
            "options": dict(self.options),
            "host": self.host,
            "rest_s": self.rest_s,
            "duplicates": str(self.duplicates),
        }

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any], **state: Any) -> "Inbox":
        """Return the inbox of a value made by ``to_json``; ``state``: the other fields. Fields of newer versions are
        ignored."""
        definition = {k: v for k, v in value.items() if k in cls.__dataclass_fields__ and k != "name"}
        return cls(name=name, **definition | state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """What lies in an inbox, as a node sees it."""

    name: str
    """Its name. Characters that cannot be printed are written as escapes; such a drop has a ``fault``."""
    kind: Kind
    size: int
    """The size in bytes; for a folder, that of all files in it."""
    identity: str
    """Changes when it is written to: size and time of the last change, of a folder a digest of those of all files."""
    owner: str
    """The user to whom it belongs on that host."""
    dropped_us: int
    """When it came there, or was last written to."""
    sha256: str | None = None
    """The digest of its bytes; for a folder, the digest of a list as ``sha256sum`` prints it, a line for each file,
    ordered by path. None: not known yet, or not to be known."""
    fault: str | None = None
    """Why it is rejected, whatever is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A drop that a node has dealt with, and what became of it."""

    id: int
    inbox: str
    name: str
    kind: Kind
    size: int
    """The size in bytes; for a folder, that of all files in it."""
    sha256: str | None
    """The digest, as in ``Drop.sha256``; None: it was not computed."""
    identity: str
    """The identity, as in ``Drop.identity``, when the drop was taken: a drop that has another one was changed since."""
    owner: str
    """The user of the host to whom the drop belonged, or who uploaded it."""
    dropped_us: int
    """When it came there, or was last written to."""
    at_us: int
    """When its job was made, or it was rejected."""
    outcome: ArrivalOutcome
    job_id: int | None
    """The job that was made of it; for a rejected upload, the job that has its bytes; None: it was rejected before it
    had a job."""
    reason: str | None
    """Why it was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that somebody uploads to an inbox, and how far it is."""

    id: str
    inbox: str
    name: str
    size: int
    """The size in bytes."""
    by: str
    """Who uploads it, and submits its job."""
    received: int = 0
    """How many bytes have come; an upload that was interrupted goes on behind them."""
    announced: str | None = None
    """The SHA-256 that the uploader says it has."""
    modified: str | None = None
    """Any text that the uploader gives a version of the file."""
    sha256: str | None = None
    """The SHA-256 of its bytes; None: they are not all here yet."""
    job_id: int | None = None
    """Its job; of bytes that came before the job that has them; None: it is not done yet."""
    reason: str | None = None
    """Why it was rejected."""

    @property
    def is_done(self) -> bool:
        """Return whether the upload has its job, or was rejected."""
        return self.job_id is not None or self.reason is not None

    @property
    def identity(self) -> str:
        """The identity of its arrival, which no drop has."""
        return f"upload:{self.id}"

    def is_of_same_file(self, other: "Upload") -> bool:
        """Return whether this upload continues the other one: the same user uploads the same file to the same inbox.
        The file is the same by name, size and what its uploader says of it, since not all its bytes are here yet."""
        return all(
            getattr(self, field) == getattr(other, field)
            for field in ("inbox", "name", "size", "by", "announced", "modified")
        )
