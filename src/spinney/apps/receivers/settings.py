"""The settings of the service: ``receivers.toml``, which ``SPINNEY_RECEIVERS`` names.

    data = "receivers"                     # databases and raw files, by receiver
    tags = "tags.csv"                      # the table of tags
    unpacked_bytes = 50_000_000_000        # the most that one archive, with those in it, may unpack to

    [sync]
    receivers = "attached.csv"             # the attached receivers: a table with a column "receiver"
    command = ["rsync", "-a", "{receiver}:data/", "{folder}/"]
    every = "1h"

    [mail]
    host = "mail.example.org"
    sender = "Receivers <receivers@example.org>"
    staff = ["staff@example.org"]          # who gets failures, grouped by cause
    url = "https://example.org"            # of the server, for links in mails

Relative paths begin at the file's folder; without a file, the first three are the defaults, in the current folder.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from spinney import settings_files
from spinney.apps.settings_tables import Located, Mailbox, MailServer, Table

VARIABLE = "SPINNEY_RECEIVERS"
"""The environment variable with the path of the settings file. A file that it names must exist."""
FILE = "receivers.toml"
"""The settings file where the variable is not set, in the current folder; it may be missing."""


class Sync(Table):
    """How attached receivers are asked for new files."""

    receivers: Located
    """The table of attached receivers, which is read again each time: a CSV file with a column ``receiver``,
    or a file with a JSON object on each line."""
    command: tuple[str, ...] = Field(min_length=1)
    """A program with its arguments, in which ``{receiver}`` and ``{folder}`` are replaced; it puts files there."""
    every: str = "1h"
    """How often each of them is asked, as in ``30m``."""


class Mail(MailServer):
    """The mail server, the sender of mails to uploaders, and who gets the failures."""

    staff: tuple[Mailbox, ...] = ()
    """Who gets the failures; without anybody no such mails are sent."""
    url: str = Field(default="", pattern="^(https?://.*)?$")
    """The URL of the server, for links in mails; empty: there are no links."""

    def link(self, path: str) -> str:
        """Return the address of a page of the server; nothing where the settings name no server."""
        return f"{self.url.rstrip('/')}{path}" if self.url else ""


class Settings(Table):
    """All settings; see the example above."""

    data: Located = Path("receivers")
    tags: Located = Path("tags.csv")
    unpacked_bytes: int = Field(default=50_000_000_000, ge=1)
    sync: Sync | None = None
    """How attached receivers are asked; None: none are."""
    mail: Mail | None = None
    """The mail server; None: no mails are sent."""

    def database(self, receiver: str) -> Path:
        """Return the file of a receiver's database, which may not exist yet."""
        return self.data / "databases" / f"{receiver}.sqlite"

    def files(self, receiver: str) -> Path:
        """Return the folder of a receiver's raw files, in which each boot session has its own."""
        return self.data / "files" / receiver


def is_set_up(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the service is used here, so that its pages show something: settings, or a folder with data."""
    return bool(environment.get(VARIABLE)) or Path(FILE).exists() or load(environment).data.is_dir()


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings, read from the file at each call. Raises UsageError that names the file, where that
    cannot be read, has a wrong value, or does not exist although the variable names it."""
    named = environment.get(VARIABLE)
    path = Path(named or FILE).absolute()
    return settings_files.read(Settings, path, optional=named is None)
