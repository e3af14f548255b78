"""The settings of mail and webhooks. Secrets are only named here; their values are in the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spinney.model.errors import UsageError
from spinney.model.values import durations

DAY_S = 86_400.0


class Security(StrEnum):
    """How the connection to the mail server is protected."""

    STARTTLS = "starttls"
    """The connection begins unencrypted and must then be encrypted (port 587 unless set)."""
    TLS = "tls"
    """The connection is encrypted from the first byte (port 465 unless set)."""
    NONE = "none"
    """The connection is not encrypted (port 25 unless set): for a server on this host or in a private network."""


_PORTS = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """The mail server, and for how long mail is tried. Raises UsageError for invalid values.

    Times are seconds, and may be given as any length of time: ``"30s"``, ``timedelta(days=5)``.
    """

    host: str
    """The name or address of the mail server."""
    port: int = 0
    """The port of the server; 0: the usual one for ``security``."""
    security: Security = Security.STARTTLS
    """How the connection is protected."""
    ca_file: Path | None = None
    """Certificate authorities to trust in addition to the system's."""
    user_variable: str = "SPINNEY_SMTP_USER"
    """The environment variable that holds the user; without user and password there is no login."""
    password_variable: str = "SPINNEY_SMTP_PASSWORD"  # noqa: S105 - the name of it
    """The environment variable that holds the password."""
    hello: str = ""
    """The name of this host in EHLO; by default its host name."""
    timeout_s: float = 30.0
    """How long each answer of the server may take, in seconds."""
    give_up_s: float = 5 * DAY_S
    """How long a mail is tried, in seconds; then it fails (RFC 5321, section 4.5.4.1, asks for 4 to 5
    days)."""
    away_s: float = 60.0
    """How long all mail waits while the server is away, until one mail probes it."""
    retry_least_s: float = 60.0
    """The shortest delay between two tries of one mail."""
    retry_most_s: float = 3600.0
    """The longest delay between tries of one mail that the server does not accept yet."""
    attachments: Path | None = None
    """The folder below which attachments must lie; None: the folder root, so that stages can attach files of
    their jobs."""
    attachments_max_bytes: int = 15_000_000
    """The size of all attachments of one mail together; most servers' limit is 25 to 35 MB after encoding."""

    def __post_init__(self) -> None:
        if not self.host or not self.host.isprintable() or " " in self.host:
            raise UsageError(f"{self.host!r} names no mail server; name one")
        if self.port not in range(65_536):
            raise UsageError(f"the mail server's port must lie within 1 to 65535, not {self.port!r}; fix it")
        times = durations.in_seconds(
            self, "timeout_s", "give_up_s", "away_s", "retry_least_s", "retry_most_s"
        )
        if min(times) <= 0 or self.attachments_max_bytes < 0:
            raise UsageError(
                "times of mail must be more than 0 seconds, and sizes 0 bytes or more; correct the settings"
            )

    @property
    def in_force_port(self) -> int:
        """The port of the server: ``port``, or the usual one for ``security``."""
        return self.port or _PORTS[self.security]

    def credentials(self, environment: Mapping[str, str]) -> tuple[str, str] | None:
        """Return user and password from the environment; None when no login is configured.

        Raises UsageError when one of the two is missing or not ASCII, or when they would go over the network
        unencrypted.
        """
        user, password = environment.get(self.user_variable), environment.get(self.password_variable)
        if not user and not password:
            return None
        if not user or not password:
            missing = self.password_variable if user else self.user_variable
            raise UsageError(f"the environment has no {missing}; set it and start the nodes again")
        for variable, value in ((self.user_variable, user), (self.password_variable, password)):
            if not value.isascii():
                raise UsageError(
                    f"{variable} has characters that are not ASCII, which a login by SMTP cannot have here; "
                    f"choose another and start the nodes again"
                )
        if self.security is Security.NONE and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise UsageError(
                f"a password would go to {self.host} in clear; set SPINNEY_SMTP_SECURITY to starttls or tls"
            )
        return user, password

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "MailSettings":
        """Read the settings from SPINNEY_SMTP_HOST, _PORT and _SECURITY; all others have their default.
        ``environment`` None: that of the process. Raises UsageError."""
        env = os.environ if environment is None else environment
        host = env.get("SPINNEY_SMTP_HOST", "")
        if not host:
            raise UsageError("no mail server is named; set SPINNEY_SMTP_HOST and start the nodes again")
        port = env.get("SPINNEY_SMTP_PORT", "0")
        security = env.get("SPINNEY_SMTP_SECURITY", Security.STARTTLS)
        if not (port.isascii() and port.isdigit()):
            raise UsageError(f"SPINNEY_SMTP_PORT={port!r} is no number; set it from 1 to 65535")
        if security not in list(Security):
            raise UsageError(
                f"SPINNEY_SMTP_SECURITY={security!r} is none of {', '.join(Security)}; set one of them"
            )
        return cls(host=host, port=int(port[:6]), security=Security(security))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """For how long webhooks are tried, and where their secrets are. Raises UsageError for invalid values.

    Times are seconds, and may be given as any length of time: ``"10s"``, ``timedelta(hours=6)``.
    """

    secret_prefix: str = "SPINNEY_WEBHOOK_SECRET_"  # noqa: S105 - the beginning of its name
    """The secret ``depositor-a`` is in the environment variable with this prefix and ``DEPOSITOR_A``. The prefix
    ensures that no message can use another variable of a node."""
    tries: int = 12
    """How many times a request is sent before the job fails."""
    timeout_s: float = 10.0
    """The limit for connecting, and for each part of the answer."""
    retry_least_s: float = 10.0
    """The delay after the first try; it is three times as long after each further one."""
    retry_most_s: float = 6 * 3600.0
    """The longest delay between two tries."""
    retry_after_most_s: float = 6 * 3600.0
    """The longest delay that a receiver may ask for with Retry-After."""

    def __post_init__(self) -> None:
        times = durations.in_seconds(self, "timeout_s", "retry_least_s", "retry_most_s", "retry_after_most_s")
        if self.tries < 1 or min(times) <= 0:
            raise UsageError(
                "webhooks need 1 try or more, and times of more than 0 seconds; correct the settings"
            )
        if not self.secret_prefix:
            raise UsageError("the prefix of webhook secrets must not be empty; correct the settings")

    def secret(self, name: str, environment: Mapping[str, str]) -> str:
        """Return the secret of that name from the environment; case and ``-`` or ``_`` make no difference.
        Raises UsageError when there is none."""
        variable = self.secret_prefix + name.upper().replace("-", "_")
        value = environment.get(variable)
        if not value:
            raise UsageError(
                f"the environment has no {variable}, with which the webhook is signed; set it and start "
                f"the nodes again"
            )
        return value
