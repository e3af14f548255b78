"""The settings of a monitor: ``monitor.toml``, which ``SPINNEY_MONITOR`` names.

    tables = "sqlite:///monitor.db"        # or postgresql://…?schema=monitor; by default beside the store
    tasks = "tasks"                        # the folder of the tasks, run in the order of their names
    data = "data"                          # where tasks keep files
    workers = 50                           # how many checks run at once
    timeout_s = 30                         # the time limit of one task

    [network]
    host_limit = 4                         # connections to one host at a time
    private = ["gis.example.lan"]          # hosts with private addresses that checks may reach; by default none

    [results]
    group = 200                            # the most results that are written together
    wait_s = 0                             # how long one waits for others

    [socket]
    listen = "127.0.0.1:4422"              # empty: no TCP
    path = "monitor.sock"                  # empty: no Unix socket

    [mail]
    host = "mail.example.org"
    sender = "Monitor <monitor@example.org>"
    url = "https://monitor.example.org"    # of the server's pages, for links

Relative paths begin at the file's folder; without a file, all of the above are the defaults, in the current folder.
"""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from spinney import settings_files
from spinney.apps.settings_tables import Located, MailServer, Table, database_url
from spinney.config import database_file
from spinney.config import settings as store_settings
from spinney.errors import UsageError

VARIABLE = "SPINNEY_MONITOR"
"""The environment variable with the path of the settings file. A file that it names must exist."""
FILE = "monitor.toml"
"""The settings file where the variable is not set, in the current folder; it may be missing."""
TIMEOUT_MAX_S = 3600.0
"""The longest time limit that a task may have."""
_PORT_MAX = 65_535
_CACHE = settings_files.FileCache["Settings"]()


def _empty_is_none(value: object) -> object:
    """Return None for an empty text, by which a file says that there is no socket: TOML has no null."""
    return None if value == "" else value


def _zone(name: str) -> str:
    """Return the name of a time zone. Raises ValueError where this host has none of that name."""
    try:
        if name != "UTC":  # the default needs no data of the host
            ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            "this host has no such time zone; use a name such as Europe/Berlin, or UTC"
        ) from None
    return name


def _network(text: str) -> str:
    """Return a network as it is written. Raises ValueError where it is none."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("it is no network; write it as in 10.1.0.0/16") from None
    return text


def _address(text: str) -> str:
    """Return host and port as they are written. Raises ValueError for a port that cannot be."""
    if text and int(text.rpartition(":")[2]) > _PORT_MAX:
        raise ValueError(f"a port is at most {_PORT_MAX}")
    return text


SocketPath = Annotated[Located | None, BeforeValidator(_empty_is_none)]


class Network(Table):
    """What checks may reach, and how gently."""

    host_limit: int = Field(default=4, ge=1)
    """The most checks of services of one host at a time, over all nodes."""
    private: tuple[str, ...] = ()
    """Hosts that checks may reach although their addresses are private: as in a URI, with or without the port."""
    pause_s: float = Field(default=0.0, ge=0, le=60)
    """The least time between two requests of one process to the same host."""
    slow_s: float = Field(default=10.0, gt=0)
    """A response that takes longer is a warning."""
    certificate_days: int = Field(default=14, ge=0)
    """A TLS certificate that ends within so many days is a warning."""


class Grouping(Table):
    """How results of checks that end at about the same time are written together."""

    group: int = Field(default=200, ge=1, le=1000)
    """The most results of one transaction."""
    wait_s: float = Field(default=0.0, ge=0, le=10)
    """How long a result waits for others while no group is being written. With 0 an idle monitor writes at once, and a
    busy one writes together what has come while the last group was written."""


class Socket(Table):
    """The line protocol for older clients (``spinney.apps.monitor.line_protocol``)."""

    listen: Annotated[str, Field(pattern=r"^$|^.+:[0-9]{1,5}$"), AfterValidator(_address)] = "127.0.0.1:4422"
    """Host and port; empty: no TCP."""
    path: SocketPath = Path("monitor.sock")
    """The Unix socket; empty: none."""
    allowed: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """The addresses that may connect by TCP when ``listen`` is not on loopback: networks, as in ``10.1.0.0/16``."""
    connections: int = Field(default=100, ge=1)
    """The most clients at a time; a further one is disconnected at once."""
    line_bytes: int = Field(default=65_536, ge=100)
    """The longest line that a client may send."""
    idle_s: float = Field(default=3600.0, gt=0)
    """A client that sends nothing for so many seconds is disconnected."""


class Mail(MailServer):
    """The sender of mails to owners, and the mail server."""

    url: str = Field(default="http://127.0.0.1:8080", pattern=r"^https?://[^\s@]+$")
    """The URL of the server's pages, for links in mails."""


class Settings(Table):
    """All settings of a monitor; see the example above."""

    tables: Annotated[str, AfterValidator(database_url), Field(repr=False)]
    """The URL of the database with the monitor's tables. It may hold a password, so ``repr`` leaves it
    out."""
    tasks: Located = Path("tasks")
    data: Located = Path("data")
    """The folder where tasks keep files, and where the list of tasks is kept."""
    workers: int = Field(default=50, ge=1, le=1000)
    """How many checks run at once on the node of ``spinney monitor run``."""
    timeout_s: float = Field(default=30.0, gt=0, le=TIMEOUT_MAX_S)
    """The time limit of one task, in seconds."""
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """The time zone in which times are shown by the line protocol."""
    keep_days: int = Field(default=90, ge=1)
    """How long every result is kept; older ones are thinned to the changes of status."""
    network: Network = Network()
    results: Grouping = Grouping()
    socket: Socket = Socket()
    mail: Mail | None = None
    """The mail server; None: no mails are sent."""

    @model_validator(mode="after")
    def _pauses_fit(self) -> Self:
        """Raise ValueError where checks of one host may wait for each other until their time is over, so that a
        service in order would look as if it did not answer. ``content`` makes two requests."""
        if 2 * self.network.pause_s * self.network.host_limit > self.timeout_s:
            raise ValueError(
                "pause_s times host_limit of [network] must be at most half of timeout_s, or checks of one host wait "
                "for each other until their time is over; lower one of them, or raise timeout_s"
            )
        return self


class SettingsUnusable(UsageError):
    """The settings cannot be used; the message names the file, and what to correct in it."""


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings, read again only after the file has changed, so that it may be called for each
    check. Raises SettingsUnusable where the file cannot be read, has a wrong value, or does not exist although
    the variable names it."""
    named = environment.get(VARIABLE)
    path, optional = Path(named or FILE).absolute(), named is None
    store = environment.get("SPINNEY_STORE", "")
    try:
        return _CACHE.get(path, lambda: _read(path, optional, store), (optional, store))
    except UsageError as error:
        raise SettingsUnusable(str(error) if optional else f"{error} ({VARIABLE} names this file)") from error


def is_set_up(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether there is a monitor here, so that its pages show something: settings, or a database with
    its tables. Tables on a database server count as there, since only a connection could tell."""
    if environment.get(VARIABLE) or Path(FILE).exists():
        return True
    try:
        file = database_file(load(environment).tables)
    except UsageError:
        return False
    return file is None or file.exists()


def _read(path: Path, optional: bool, store: str) -> Settings:
    """Read the file. ``optional``: it may be missing; ``store``: the one beside which the tables are by default."""
    document = settings_files.document(path, optional=optional)
    document.setdefault("socket", {})  # so that the default of its path begins at the file's folder, too
    if "tables" not in document:
        from spinney.apps.monitor.inventory import TABLES

        environment = {"SPINNEY_STORE": store} if store else {}
        document["tables"] = TABLES.beside(
            store_settings(environment=environment, directory=Path.cwd()).store
        )
        if (file := database_file(document["tables"])) is not None:
            document["tables"] = f"sqlite:///{file.absolute()}"
    return settings_files.checked(Settings, document, path, context=path.parent)
