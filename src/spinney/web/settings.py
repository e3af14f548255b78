"""The table ``[server]`` of ``spinney.toml``: the addresses of a server, how users sign in, and its limits."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from spinney.config import FILE
from spinney.define.params.duration_field import DurationField
from spinney.model.access import Role
from spinney.model.values.networks import unmapped
from spinney.settings_files import checked

TABLE = "server"
PORT = 8620
"""The port of a server whose settings name none."""
SHORT_CONNECTIONS = 500
"""The connections that are added by default for requests that are answered at once, not streamed."""


def _network(text: str) -> str:
    ip_network(text)
    return text


def _site(text: str) -> str:
    """Return the URL of a server without a slash at its end. Raises ValueError for one that is more or less than a
    scheme, a host and a port: links in pages begin at the root of the host, so none would lead below a path."""
    url = urlsplit(text.lower())
    site = f"{url.scheme}://{url.netloc}"
    if url.scheme not in {"http", "https"} or not url.hostname or url.geturl() not in {site, f"{site}/"}:
        raise ValueError(
            "it must be a scheme and a host name that the server has for itself, such as "
            "https://spinney.example.org, without a path"
        )
    return site


AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]


class Oidc(BaseModel):
    """Sign-in by an OpenID Connect provider (authorization code with PKCE)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str
    """The provider's URL, below which ``/.well-known/openid-configuration`` is."""
    client_id: str
    """The name by which the provider knows this server."""
    client_secret_variable: str = "SPINNEY_OIDC_SECRET"  # noqa: S105 - the name of it
    """The environment variable that holds the client's secret; if it is empty, this server is a public client, without
    a secret."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """The scopes that are requested."""
    name_claim: str = "preferred_username"
    """The claim that has the user's name."""
    groups_claim: str = "groups"
    """The claim that lists the user's groups."""
    roles: Mapping[str, Role] = {}
    """The role of each group, for users who have no account in the store; the highest role of a user's groups
    counts."""
    label: str = "Sign in with your organisation"
    """The label of the button on the sign-in page."""


class ServerSettings(BaseModel):
    """The settings of a server. Raises ValidationError for invalid values, which ``read`` turns into UsageError."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    """The address on which the server listens."""
    port: Annotated[int, Field(ge=0, le=65535)] = PORT
    """The port on which the server listens; 0: any free port."""
    socket: str | None = None
    """The path of the Unix socket; by default ``server.sock`` in the run-time directory; empty: no socket."""
    url: Annotated[str, AfterValidator(_site)] | None = None
    """The URL of the server for users, if they reach it through a reverse proxy: ``https://spinney.example.org``. It
    has no path: the server needs a host name for itself."""
    hosts: tuple[str, ...] = ()
    """Names that are accepted in the Host header, in addition to the addresses on which it listens and the host of
    ``url``."""
    threads: Annotated[int, Field(ge=1, le=64)] = 4
    """The number of threads that read and write the store for requests."""
    body_max_bytes: Annotated[int, Field(ge=1024, le=2**40)] = 32 * 2**20
    """The maximum size of a request body of JSON or JSON lines."""
    upload_max_bytes: Annotated[int, Field(ge=1024, le=2**50)] = 10 * 2**30
    """The maximum size of an uploaded file."""
    body_patience_s: Annotated[float, Field(gt=0, le=3600), DurationField()] = 30.0
    """How long a client may send nothing in the middle of a request before the connection is closed."""
    streams_max: AtLeastOne = 1000
    """The maximum number of event streams at once."""
    streams_per_user: AtLeastOne = 50
    """The maximum number of event streams of one user at once."""
    streams_per_address: AtLeastOne = 200
    """The same for one client address, as in the other limits for an address; with IPv6, for one /64 network."""
    followers_max: AtLeastOne = 200
    """The maximum number of outputs of jobs that are followed at once."""
    followers_per_user: AtLeastOne = 20
    """The maximum number of outputs that one user follows at once."""
    followers_per_address: AtLeastOne = 50
    """The same for one client address."""
    downloads_max: AtLeastOne = 400
    """The maximum number of downloads of more than 1 MiB at once."""
    downloads_per_user: AtLeastOne = 50
    """The maximum number of such downloads by one user."""
    downloads_per_address: AtLeastOne = 100
    """The same for one client address."""
    uploads_max: AtLeastOne = 200
    """The maximum number of request bodies at once that have taken more than a second so far."""
    uploads_per_user: AtLeastOne = 30
    """The maximum number of such request bodies of one user."""
    uploads_per_address: AtLeastOne = 60
    """The same for one client address."""
    connections_max: AtLeastOne | None = None
    """The maximum number of open connections; by default the sum of the maxima of streams, followed outputs, downloads
    and uploads, and 500 more."""
    connections_per_address: AtLeastOne = 300
    """The maximum number of open connections from one client address."""
    idle_per_address: AtLeastOne = 100
    """The maximum number of those on which no request is being answered."""
    trusted_header: str | None = None
    """The header in which a reverse proxy names the user whom it has signed in."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """The networks of the reverse proxies whose ``trusted_header`` and X-Forwarded-For are trusted. Loopback is not
    among them unless it is listed, because any program on this machine could then act as any user."""
    trusted_role: Role | None = None
    """The role of a user whom the proxy names and who has no account in the store; by default such a user is
    refused."""
    peers: Mapping[str, Role] = {}
    """The roles of clients of the Unix socket, by the name or number of their system user. The server's own user is
    admin."""
    oidc: Oidc | None = None
    """The table ``[server.oidc]``; by default there is no sign-in by OpenID Connect."""
    secure_cookies: bool | None = None
    """Whether cookies are sent over HTTPS only; by default if ``url`` begins with https."""
    webhook_private: bool = False
    """Whether webhooks may go to loopback and private addresses."""
    metrics: Literal["open", "token"] = "token"
    """Whether ``/metrics`` needs a token."""
    otlp: str | None = None
    """The URL of an OTLP/HTTP receiver for traces; by default none are sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is written to the server's log."""

    @model_validator(mode="after")
    def _require_proxies(self) -> Self:
        if self.trusted_header is not None and not self.trusted_proxies:
            raise ValueError(
                "trusted_header needs trusted_proxies: list the proxies that set it; with 127.0.0.1/32 every program "
                "on this machine may act as any user"
            )
        return self

    @property
    def connections(self) -> int:
        """The maximum number of open connections."""
        if self.connections_max is not None:
            return self.connections_max
        return (
            self.streams_max + self.followers_max + self.downloads_max + self.uploads_max + SHORT_CONNECTIONS
        )

    @property
    def https(self) -> bool:
        """Whether users reach the server over HTTPS."""
        return self.url is not None and self.url.startswith("https://")

    @property
    def secure(self) -> bool:
        """Whether cookies are sent over HTTPS only."""
        return self.https if self.secure_cookies is None else self.secure_cookies

    def trusts(self, address: str | None) -> bool:
        """Return whether this is the address of a trusted reverse proxy. Where the server listens on ``::``, a proxy
        with an IPv4 address comes as ``::ffff:127.0.0.1``, which counts as that address."""
        try:
            ip, plain = ip_address(address or ""), ip_address(unmapped(address or ""))
        except ValueError:
            return False
        return any(ip in network or plain in network for network in map(ip_network, self.trusted_proxies))


def read(table: Mapping[str, Any], directory: Path) -> ServerSettings:
    """Return the settings in the table; keys that are missing have their defaults. Raises UsageError, which
    names the first key that is unknown or has an invalid value. ``directory``: that of the file, for the
    message."""
    return checked(ServerSettings, table, f"{directory / FILE}: [{TABLE}]")
