"""``[server]`` of ``spinney.toml``: where a server listens, whom it believes, and how much it takes."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from spinney.config import FILE
from spinney.define.params.duration_field import DurationField
from spinney.model.access import Role
from spinney.model.errors import UsageError

TABLE = "server"
PORT = 8620
ROOM = 500
"""Connections for requests that are answered at once."""


def _network(text: str) -> str:
    ip_network(text)
    return text


AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]


class Oidc(BaseModel):
    """Sign-in by an OpenID Connect provider (authorization code with PKCE)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str
    """Its URL, below which ``/.well-known/openid-configuration`` is found."""
    client_id: str
    """The name by which the provider knows this server."""
    client_secret_variable: str = "SPINNEY_OIDC_SECRET"  # noqa: S105 - the name of it
    """The environment variable that holds the client's secret; where it is empty there is none (a public client)."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """What is asked for."""
    name_claim: str = "preferred_username"
    """Which claim is the user's name."""
    groups_claim: str = "groups"
    """Which claim names the user's groups."""
    roles: Mapping[str, Role] = {}
    """Group to role, for users that the store does not know; the highest counts."""
    label: str = "Sign in with your organisation"
    """What the button of the sign-in page says."""


class ServerSettings(BaseModel):
    """Raises ValidationError (``read`` turns it into a UsageError) for what cannot be meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    """The address on which the server listens."""
    port: Annotated[int, Field(ge=0, le=65535)] = PORT
    """The port on which the server listens; 0: any that is free."""
    socket: str | None = None
    """The Unix socket; unless given ``server.sock`` in the run-time directory, empty: none."""
    url: str | None = None
    """Under which address people reach it, when a proxy stands before it: ``https://spinney.example.org``."""
    hosts: tuple[str, ...] = ()
    """Names that the Host header may bear, beside those it listens on and that of ``url``."""
    threads: Annotated[int, Field(ge=1, le=64)] = 4
    """How many requests ask the store at once."""
    body_max_bytes: Annotated[int, Field(ge=1024, le=2**40)] = 32 * 2**20
    """The longest body of JSON or JSON lines."""
    upload_max_bytes: Annotated[int, Field(ge=1024, le=2**50)] = 10 * 2**30
    """The longest file that is uploaded."""
    body_patience_s: Annotated[float, Field(gt=0, le=3600), DurationField()] = 30.0
    """How long nothing may come of a body or a head before the connection is closed."""
    streams_max: AtLeastOne = 1000
    """Event streams at once."""
    streams_per_user: AtLeastOne = 50
    """Event streams of one user."""
    streams_per_address: AtLeastOne = 200
    """Event streams from one address; of IPv6, from one network of 64 bits."""
    followers_max: AtLeastOne = 200
    """Outputs that are followed at once."""
    followers_per_user: AtLeastOne = 20
    """Outputs that one user follows."""
    followers_per_address: AtLeastOne = 50
    """Outputs that are followed from one address."""
    downloads_max: AtLeastOne = 400
    """Downloads of more than 1 MiB at once."""
    downloads_per_user: AtLeastOne = 50
    """Such downloads of one user."""
    downloads_per_address: AtLeastOne = 100
    """Such downloads from one address."""
    uploads_max: AtLeastOne = 200
    """Bodies at once that have been coming for more than a second."""
    uploads_per_user: AtLeastOne = 30
    """Such bodies of one user."""
    uploads_per_address: AtLeastOne = 60
    """Such bodies from one address."""
    connections_max: AtLeastOne | None = None
    """Open connections; unless given as many as streams, outputs, downloads and uploads may need, and 500 more."""
    connections_per_address: AtLeastOne = 300
    """Open connections from one address."""
    idle_per_address: AtLeastOne = 100
    """Open connections from one address on which no request is being answered."""
    trusted_header: str | None = None
    """A header in which a reverse proxy names the user that it has signed in."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """The reverse proxies whose word counts, as networks: for ``trusted_header``, and for X-Forwarded-For. Loopback is
    none of them unless it is listed: any program on this machine could claim to ask for somebody else."""
    trusted_role: Role | None = None
    """The role of a user whom the proxy names and the store does not know; unless given such a one is refused."""
    peers: Mapping[str, Role] = {}
    """Who comes over the Unix socket: user name or number to role. The server's own user is admin."""
    oidc: Oidc | None = None
    """The table ``[server.oidc]``; unless given nobody signs in so."""
    secure_cookies: bool | None = None
    """Cookies are sent over HTTPS only; unless given as ``url`` says."""
    webhook_private: bool = False
    """Whether webhooks may go to loopback and private addresses."""
    metrics: Literal["open", "token"] = "token"
    """Whether ``/metrics`` needs a token."""
    otlp: str | None = None
    """Where traces go: the URL of an OTLP/HTTP receiver."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is worth a line of the server's log."""

    @model_validator(mode="after")
    def _believes_somebody(self) -> Self:
        if self.trusted_header is not None and not self.trusted_proxies:
            raise ValueError(
                "trusted_header needs trusted_proxies: say whose word counts; with 127.0.0.1/32 every program on this "
                "machine may name itself as it likes"
            )
        return self

    @property
    def connections(self) -> int:
        """Open connections at once."""
        if self.connections_max is not None:
            return self.connections_max
        return self.streams_max + self.followers_max + self.downloads_max + self.uploads_max + ROOM

    @property
    def https(self) -> bool:
        """Whether people reach it over HTTPS."""
        return self.url is not None and self.url.startswith("https://")

    @property
    def secure(self) -> bool:
        """Whether cookies go over HTTPS only."""
        return self.https if self.secure_cookies is None else self.secure_cookies

    def trusts(self, address: str | None) -> bool:
        """Whether what stands at this address is a proxy whose word counts."""
        try:
            found = ip_address(address or "")
        except ValueError:
            return False
        return any(found in ip_network(network) for network in self.trusted_proxies)


def read(table: Mapping[str, Any], directory: Path) -> ServerSettings:
    """The settings of the table. Raises UsageError with the key for what cannot be meant."""
    try:
        return ServerSettings.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{directory / FILE}: [{TABLE}] {key}: {first['msg']}; mend it there") from None
