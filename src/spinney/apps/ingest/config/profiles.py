"""Profiles: how deposits of one kind are treated. A TOML file each, named after the profile.

collection = "maps"
owner = "ark:/99999/fk4owner"
storage = "main"
minter = "main"

[report]
batch = ["depositor@example.org"]
kind = "attached"

[callback]
url = "https://example.org/deposited"
secret = "depositor"
"""

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from spinney.apps.ingest.config.settings import Mailboxes, Name, Settings, Table, checked, explained, read
from spinney.apps.ingest.files.digests import canonical
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.apps.ingest.inventory import entry_rules
from spinney.apps.ingest.report import Kind
from spinney.errors import UsageError, did_you_mean, listed
from spinney.jobs import PRIORITIES, names
from spinney.safe_http import require_url


def _text(text: str) -> str:
    if text:
        entry_rules.name("text", text)
        names.label("text", text)
    return text


def _algorithm(text: str) -> str:
    try:
        return canonical(text)
    except NotAdmitted as error:
        raise ValueError(str(error)) from None


Collection = Annotated[str, AfterValidator(checked(partial(names.name, "collection")))]
Text = Annotated[str, AfterValidator(checked(_text))]
Host = Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$")]
_KNOWN: dict[Path, "_Known"] = {}
_FRESH_NS = 1_000_000_000
"""A file that was changed so little before it was read is read again: it may have been changed once more within one
tick of the file system's clock."""
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}\.toml")
"""What is named otherwise, such as what editors leave, is no profile."""


class Reporting(Table):
    """Who is told what became of a batch."""

    batch: Mailboxes = ()
    """Mail addresses of depositors."""
    admins: Mailboxes | None = None
    """Who gets a copy; None: the admins of the service."""
    kind: Kind = Kind.BRIEF


class Callback(Table):
    """A service that is told of each object."""

    url: Annotated[str, AfterValidator(checked(require_url))]
    secret: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,60}$")
    """The name of the secret (``reports.WebhookSettings``)."""


class Profile(Table):
    """All of it."""

    name: Name
    collections: tuple[Collection, ...] = Field(min_length=1)
    """The first is the one that holds and local ids go by."""
    owner: Text = ""
    """Whose the objects are; the collection's unless given."""
    context: Text = ""
    """What its deposits are made for; told to callbacks, and nothing here goes by it."""
    report: Reporting = Reporting()
    callback: Callback | None = None
    priority: int | None = Field(default=None, ge=PRIORITIES[0], le=PRIORITIES[-1])
    """Of its objects; unless given, by their number and size (``priorities``)."""
    digest: Annotated[str, AfterValidator(_algorithm)] = "sha256"
    """Computed of every file beside what is given."""
    minter: Name
    storage: Name
    area: Name | None = None
    """A working area of its own."""
    hosts: frozenset[Host] = frozenset()
    """``host`` or ``host:port`` of payloads that may be fetched although their addresses are private."""
    hold: Annotated[str, AfterValidator(checked(partial(names.label, "reason")))] | None = None
    """A reason for which its batches are held as they come, until staff release them."""

    @property
    def collection(self) -> str:
        return self.collections[0]

    @property
    def owned_by(self) -> str:
        return self.owner or self.collection


def load(settings: Settings, name: str) -> Profile:
    """A profile by its name, read again when its file or the settings have changed. Raises UsageError for one that is
    not there, or says what cannot be meant."""
    path = settings.profiles / f"{name}.toml"
    stamp = _stamp(path) if _FILE.fullmatch(f"{name}.toml") else None
    found = _KNOWN.get(path)
    if found is not None and found.stamp == stamp and found.settings is settings:
        return found.profile
    profile = _read(settings, name)
    if stamp is not None and time.time_ns() - stamp.changed_ns > _FRESH_NS:
        _KNOWN[path] = _Known(stamp, settings, profile)
    return profile


class _Stamp(NamedTuple):
    """By which a file is told from the one that was read."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int
    """Of the inode, which nobody can set back."""


class _Known(NamedTuple):
    """A profile that was read, and by what."""

    stamp: _Stamp
    settings: Settings
    profile: Profile


def _stamp(path: Path) -> _Stamp | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return _Stamp(told.st_dev, told.st_ino, told.st_size, told.st_ctime_ns)


def _read(settings: Settings, name: str) -> Profile:
    known = names_of(settings)
    if name not in known:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, known)}; there are: {listed(known) or '(none)'}. Write "
            f"{settings.profiles / 'NAME.toml'}"
        )
    path = settings.profiles / f"{name}.toml"
    with explained(path):
        document = read(path)
        if "name" in document:
            raise UsageError(f"{path}: name: a profile is called as its file is; take it out")
        others = document.get("collections", [])
        if "collection" in document and isinstance(others, list):
            document["collections"] = [document.pop("collection"), *others]
        document.setdefault("minter", next(iter(settings.minters)))
        document.setdefault("storage", next(iter(settings.storage)))
        profile = Profile.model_validate({**document, "name": name})
    for kind, chosen, there in (
        ("minter", profile.minter, settings.minters),
        ("storage", profile.storage, settings.storage),
        ("area", profile.area, settings.areas),
    ):
        if chosen is not None and chosen not in there:
            raise UsageError(
                f"{path}: there is no {kind} {chosen!r} in the settings; name one of: {listed(there)}"
            )
    return profile


def names_of(settings: Settings) -> list[str]:
    """The profiles that there are. Raises UsageError when their folder cannot be read."""
    try:
        return sorted(_names(settings.profiles))
    except OSError as error:
        raise UsageError(
            f"{settings.profiles} cannot be read ({error.strerror}); mend its rights, or the disk it is on"
        ) from None


def _names(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        for path in folder.iterdir():
            if _FILE.fullmatch(path.name):
                yield path.stem
