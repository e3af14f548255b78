"""The settings of an ingest service: ``ingest.toml``, which ``SPINNEY_INGEST`` names.

    home = "/srv/ingest"                        # incoming payloads, packages, inventory.db
    profiles = "/etc/ingest/profiles"           # a TOML file for each profile; by default home/profiles
    file_roots = ["/srv/deposits"]              # the folders that file: payloads may be in

    [storage.main]
    url = "file:///srv/archive"                 # or s3://bucket/prefix

    [minters.main]
    naan = "99999"
    shoulder = "fk4"

    [mail]
    host = "mail.example.org"
    sender = "Archive <archive@example.org>"
    admins = ["staff@example.org"]

Relative paths begin at the file's folder. Every node needs the file, and so does every host where payloads are
submitted without a server; all need access to the same folders. Passwords and secrets are not in the file: it names the
environment variables that have them.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from spinney import settings_files
from spinney.apps.ingest.identifiers import EzidMinter, LocalMinter, Minter
from spinney.apps.ingest.storage.factory import location
from spinney.apps.settings_tables import (
    Located,
    Mailbox,
    MailServer,
    Table,
    database_url,
    located,
    value_errors,
)
from spinney.errors import UsageError

VARIABLE = "SPINNEY_INGEST"
FILE = "ingest.toml"
OWNER = "job"
"""A file in each folder of a working area and of ``outgoing`` with the number of the job that owns it, which
``cleanup`` reads."""
ADDRESSES_MAX = 50
"""The maximum length of a list of mail addresses: one mail goes to two such lists at most, and to at most a hundred
recipients."""
_CACHE = settings_files.FileCache["Settings"]()


@value_errors()
def _storage_place(url: str, info: ValidationInfo) -> str:
    """Return the URL of an S3 storage, or the folder of one on this machine; a relative path begins at the file's
    folder. Raises ValueError."""
    place = location(url)
    return str(located(place, info)) if isinstance(place, Path) else url


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("it must be a URL of http or https, without a user or password")
    return url


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,39}$")]
Mailboxes = Annotated[tuple[Mailbox, ...], Field(max_length=ADDRESSES_MAX)]


class Target(Table):
    """A storage of objects, a table ``[storage.NAME]`` (``storage.open_storage``)."""

    url: Annotated[str, AfterValidator(_storage_place)]
    """The path of a folder, also where the file has ``file:///folder``, or ``s3://bucket/prefix``."""
    endpoint: Annotated[str, AfterValidator(_http_url)] | None = None
    """The URL of an S3 service other than that of Amazon."""
    region: str | None = None
    """The region of the S3 service."""
    algorithm: Literal["sha512", "sha256"] = "sha512"
    """The digest algorithm of stored files."""

    @property
    def folder(self) -> Path | None:
        """The storage root on a disk of this machine; None for S3."""
        place = location(self.url)
        return place if isinstance(place, Path) else None


class Minting(Table):
    """A minter of ARKs, a table ``[minters.NAME]``: this service itself or, with ``url``, an EZID service."""

    naan: str
    """The number of the organisation, which every ARK begins with."""
    shoulder: str
    """The shoulder without the NAAN, as in ``fk4``."""
    template: str = "zeedeedk"
    """The NOID mask of new names; only without ``url``."""
    url: str | None = None
    user: str = ""
    """The user of the EZID service."""
    password_variable: str = "SPINNEY_EZID_PASSWORD"  # noqa: S105 - the name of it
    """The environment variable that has the password of the EZID user."""
    check_characters: bool = True
    """Whether the names of the EZID shoulder end in a NOID check character; a wrong one is refused."""

    @model_validator(mode="after")
    def _can_mint(self) -> "Minting":
        """Make the minter once, so that mistakes are found when the settings are read."""
        with value_errors():
            self.minter(lambda *_: 0, "")
        return self

    def minter(self, number: Callable[[str, str], int], password: str) -> Minter:
        """Return the minter. ``number``: for names that are minted here (``LocalMinter.number``); ``password``: for an
        EZID service."""
        if self.url is None:
            return LocalMinter(naan=self.naan, shoulder=self.shoulder, template=self.template, number=number)
        return EzidMinter(
            url=self.url,
            shoulder=f"ark:/{self.naan}/{self.shoulder}",
            user=self.user,
            password=password,
            check_characters=self.check_characters,
        )


class Mail(MailServer):
    """The sender of reports, and the mail server. User and password: see ``reports.MailSettings``."""

    admins: Mailboxes = ()
    """The addresses that get a copy where a profile names no admins of its own."""
    domain: str = Field(default="ingest.invalid", pattern=r"^[A-Za-z0-9.-]{1,120}$")
    """What follows the @ in the Message-IDs of this service. It should never change."""


class Downloads(Table):
    """The limits of fetching payloads: connections, tries and sizes."""

    at_once: int = Field(default=4, ge=1, le=64)
    """The maximum number of connections for one object."""
    host_limit: int = Field(default=8, ge=1)
    """The maximum number of connections to one host over all nodes; ``spinney lock download:HOST --capacity N``
    changes it for a host."""
    tries: int = Field(default=5, ge=1, le=50)
    """The maximum number of attempts to fetch one file."""
    estimates_at_once: int = Field(default=16, ge=1, le=64)
    """The maximum number of connections for one object when the sizes of its files are requested."""
    largest_bytes: int | None = Field(default=None, ge=1)
    """A larger file is refused."""


class Working(Table):
    """Working storage, where payloads are kept until they are stored."""

    limit: float = Field(default=0.70, gt=0, le=1)
    """The used fraction of the disk above which new objects wait."""
    warning: float = Field(default=0.80, gt=0, le=1)
    """The used fraction of the disk above which the messages of waiting objects contain a warning."""
    unpacked_bytes: int = Field(default=1 << 40, ge=1)
    """The maximum unpacked size of one container."""
    ratio: float = Field(default=200.0, ge=1)
    """The maximum unpacked size of a container, as a multiple of its own size."""


class Access(Table):
    """Packages of stored objects, made on request."""

    small_bytes: int = Field(default=1 << 30, ge=0)
    """A package of up to this size is made in the queue ``access-small``, a larger one in ``access-large``."""
    keep_days: float = Field(default=7.0, gt=0)
    """How long a package is kept."""
    bytes_s: float = Field(default=50e6, gt=0)
    """The rate in bytes a second by which the time of a package is estimated, until some packages have been made."""


class Fixity(Table):
    """The audit that reads stored files again and compares their digests."""

    every_days: float = Field(default=90.0, gt=0)
    """How long after its last audit an object is due again."""
    objects: int = Field(default=1000, ge=1)
    """The maximum number of objects in a run."""


class Settings(Table):
    """All settings of an ingest service; see the example above."""

    home: Located
    """The folder of everything that the service keeps beside the archive."""
    profiles: Located
    """The folder of the profiles, which say how payloads are processed."""
    inventory: Annotated[str, AfterValidator(database_url), Field(repr=False)]
    """The URL of the database of stored objects; by default an SQLite file in ``home``."""
    storage: Mapping[Name, Target] = Field(min_length=1)
    minters: Mapping[Name, Minting] = Field(min_length=1)
    areas: Mapping[Name, Located] = {}
    """Additional folders for working storage, by name; a profile chooses among them."""
    file_roots: tuple[Located, ...] = ()
    mail: Mail | None = None
    downloads: Downloads = Downloads()
    working: Working = Working()
    access: Access = Access()
    fixity: Fixity = Fixity()
    public_url: Annotated[str, AfterValidator(_http_url)] | None = None
    """The URL of the server's pages, for links in reports."""
    test_mode: bool = False
    """Whether a submission may make its objects fail on purpose (``--fail-at``), for drills."""

    @property
    def incoming(self) -> Path:
        """The folder of submitted payloads; the job of a batch moves its payload into its own folder."""
        return self.home / "incoming"

    def require_home(self) -> None:
        """Raise UsageError unless the home exists. If its disk is not mounted, all payloads would seem to be lost."""
        if not self.incoming.is_dir():
            raise UsageError(
                f"{self.incoming} does not exist: mount the disk of the service's home, or run 'spinney ingest init'"
            )

    @property
    def held(self) -> Path:
        """The folder of batches that are held on submission (``held_batches``)."""
        return self.home / "held"

    @property
    def outgoing(self) -> Path:
        """The folder of attachments of mails that are not sent yet (``outgoing_mails``)."""
        return self.home / "outgoing"

    @property
    def unresponsive_hosts(self) -> Path:
        """The folder with a file for each host that does not answer (``objects.unresponsive_hosts``)."""
        return self.home / "silent"

    @property
    def packages(self) -> Path:
        """The folder of packages for access requests."""
        return self.home / "access"

    def public_address(self, path: str) -> str | None:
        """Return the URL of a page below ``public_url``; None where there is none."""
        return None if self.public_url is None else f"{self.public_url.rstrip('/')}/{path}"

    @model_validator(mode="after")
    def _warns_above_the_limit(self) -> "Settings":
        if self.working.warning < self.working.limit:
            raise ValueError("working.warning must not be below working.limit")
        return self


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings, read again only after the file has changed. Raises UsageError that names the file."""
    path = Path(environment.get(VARIABLE) or FILE).absolute()
    return _CACHE.get(path, lambda: _read(path))


def _read(path: Path) -> Settings:
    document = settings_files.document(path, optional=True)
    if not document:
        raise UsageError(
            f"the ingest service has no settings: {path} does not exist or sets nothing; write it, or name another "
            f"with {VARIABLE}"
        )
    home = document.setdefault("home", ".")
    document.setdefault("profiles", f"{home}/profiles")
    document.setdefault("inventory", f"sqlite:///{home}/inventory.db")
    return settings_files.checked(Settings, document, path, context=path.parent)
