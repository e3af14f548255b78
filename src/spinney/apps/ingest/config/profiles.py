"""Profiles: the rules for one kind of deposits. Each is a TOML file, named after the profile.

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

A profile is read when it is used and kept until its file or the settings change, so that a correction is in
force at once and jobs that wait for it continue.
"""

import re
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from spinney import settings_files
from spinney.apps.ingest.config.settings import Mailboxes, Name, Settings
from spinney.apps.ingest.inventory import entry_rules
from spinney.apps.ingest.report import Kind
from spinney.apps.settings_tables import Table, validator, value_errors
from spinney.errors import UsageError, did_you_mean, listed
from spinney.files.digests import canonical
from spinney.jobs import PRIORITIES, names
from spinney.safe_http import require_url


def _require_text(text: str) -> None:
    if text:
        entry_rules.name("text", text)
        names.label("text", text)


Collection = Annotated[str, AfterValidator(validator(partial(names.name, "collection")))]
Text = Annotated[str, AfterValidator(validator(_require_text))]
Host = Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$")]
_CACHE = settings_files.FileCache["Profile"]()
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}\.toml")
"""The names of profiles' files; others, such as backups of editors, are ignored."""


class Reporting(Table):
    """The recipients of a batch's reports."""

    batch: Mailboxes = ()
    """The mail addresses of depositors."""
    admins: Mailboxes | None = None
    """The addresses that get a copy; None: the admins of the service."""
    kind: Kind = Kind.BRIEF


class Callback(Table):
    """A webhook that is called for each object."""

    url: Annotated[str, AfterValidator(validator(require_url))]
    secret: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,60}$")
    """The name of the secret (``reports.WebhookSettings``)."""


class Profile(Table):
    """A profile, with all its values."""

    name: Name
    collections: tuple[Collection, ...] = Field(min_length=1)
    """The first is used for holds and local ids."""
    owner: Text = ""
    """The owner of the objects; by default the collection."""
    context: Text = ""
    """The context of its deposits, which is passed to callbacks and otherwise not used."""
    report: Reporting = Reporting()
    callback: Callback | None = None
    priority: int | None = Field(default=None, ge=PRIORITIES[0], le=PRIORITIES[-1])
    """The priority of its objects; by default by their number and size (``priorities``)."""
    digest: Annotated[str, AfterValidator(value_errors()(canonical))] = "sha256"
    """The digest that is computed for every file in addition to the given ones."""
    minter: Name
    storage: Name
    area: Name | None = None
    """A working area of its own."""
    hosts: frozenset[Host] = frozenset()
    """``host`` or ``host:port`` of payloads that may be fetched although their addresses are private."""
    hold: Annotated[str, AfterValidator(validator(partial(names.label, "reason")))] | None = None
    """The reason for which its batches are held on submission, until staff release them."""

    @property
    def collection(self) -> str:
        """The collection that its batches and objects belong to."""
        return self.collections[0]

    @property
    def owned_by(self) -> str:
        """Return the owner of the profile's objects: the one that it names, else its collection."""
        return self.owner or self.collection


def load(settings: Settings, name: str) -> Profile:
    """Return a profile by its name, read again when its file or the settings have changed. Raises UsageError for a
    profile that does not exist or is invalid."""
    path = settings.profiles / f"{name}.toml"
    if not _FILE.fullmatch(path.name):
        return _read(settings, name)  # which refuses it
    return _CACHE.get(path, lambda: _read(settings, name), settings)


def _read(settings: Settings, name: str) -> Profile:
    """Read a profile's file, with defaults from the settings. Raises UsageError."""
    existing = names_of(settings)
    if name not in existing:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, existing)}; there are: {listed(existing) or '(none)'}. "
            f"Write {settings.profiles / 'NAME.toml'}"
        )
    path = settings.profiles / f"{name}.toml"
    document = settings_files.document(path)
    if "name" in document:
        raise UsageError(f"{path}: name: a profile has the name of its file; remove this key")
    others = document.get("collections", [])
    if "collection" in document and isinstance(others, list):
        document["collections"] = [document.pop("collection"), *others]
    document.setdefault("minter", next(iter(settings.minters)))
    document.setdefault("storage", next(iter(settings.storage)))
    profile = settings_files.checked(Profile, {**document, "name": name}, path)
    for kind, chosen, targets in (
        ("minter", profile.minter, settings.minters),
        ("storage", profile.storage, settings.storage),
        ("area", profile.area, settings.areas),
    ):
        if chosen is not None and chosen not in targets:
            raise UsageError(
                f"{path}: there is no {kind} {chosen!r} in the settings; name one of: {listed(targets)}"
            )
    return profile


def names_of(settings: Settings) -> list[str]:
    """Return the names of the profiles. Raises UsageError when their folder cannot be read."""
    try:
        if not settings.profiles.is_dir():
            return []
        return sorted(path.stem for path in settings.profiles.iterdir() if _FILE.fullmatch(path.name))
    except OSError as error:
        raise UsageError(
            f"{settings.profiles} cannot be read ({error.strerror}); correct its permissions, or repair its disk"
        ) from None
