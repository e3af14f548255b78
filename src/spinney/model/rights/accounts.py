"""Accounts of people and programs: users, tokens, sessions, and the form of their secrets.

A secret is shown once and never stored: of tokens, sessions and links the store has the SHA-256 (for 256 random bits
nothing slower is needed), of passwords an argon2 hash."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

import orjson

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, UsageError
from spinney.model.values import names
from spinney.model.values.unreadable import UNREADABLE

PASSWORD_MIN, PASSWORD_MAX = 12, 256
"""The length of a password in characters. Only the length is checked (NIST SP 800-63B, 5.1.1.2: no rules of
composition); the maximum keeps clients from having a server hash megabytes."""
AGENT_MAX = 200
TOKEN_NAME = "token:"  # noqa: S105 - no secret
"""The prefix of the name in which a machine's token acts. No user can have such a name."""
_TOKEN = re.compile(r"spn_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user account with its rights; the password's hash is not part of it."""

    name: str
    rights: Rights
    created_us: int
    by: str
    """The user who created it."""
    disabled: bool = False
    password_us: int | None = None
    """When the current password was set. None: there is none (a proxy or an identity provider authenticates the
    user)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An API token of a program."""

    id: str
    name: str
    """Unique among those of its owner that are not revoked."""
    owner: str | None
    """The user in whose name it acts; None: a machine's token, which acts in a name of its own."""
    rights: Rights
    """Its rights at creation; it never allows more than its owner's rights."""
    created_us: int
    by: str
    expires_us: int | None = None
    revoked_us: int | None = None
    used_us: int | None = None
    """When it was used last, to the minute."""

    @property
    def acts_as(self) -> str:
        """Return the name in which it acts."""
        return self.owner if self.owner is not None else f"{TOKEN_NAME}{self.name}"

    def good(self, now_us: int) -> bool:
        """Return whether the token is neither revoked nor expired; its owner is not considered."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A new token, with its secret, which cannot be shown again."""

    token: Token
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A user's login with a browser."""

    id: str
    """The beginning of the digest of its secret, to tell sessions apart."""
    user: str
    created_us: int
    seen_us: int
    """When the session was last used, to the minute, in microseconds since 1970 UTC."""
    ends_us: int
    """When it ends in any case; it ends earlier when it is not used for a while."""
    address: str | None = None
    """The address of the client at the login."""
    agent: str | None = None
    """What the browser said of itself (``User-Agent``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The authenticated caller, with the token or the session that identifies it: exactly one of the two."""

    name: str
    rights: Rights
    """The current rights: those of a token are narrowed by its owner's."""
    token: Token | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a one-time link is for."""

    user: str | None
    """The user whose password it sets; None: it creates the first admin."""
    ends_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A browser in which a user has signed in before. Strangers who guess the user's password do not slow it down."""

    user: str
    password_us: int
    """When the password of that sign-in was set: a new password makes all devices unknown."""
    number: str
    """A random number; failures from this browser are counted under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLimit:
    """A limit under which failed logins are counted: by name and address, by address, or by name."""

    key: str
    """A digest of what is limited."""
    free: int
    """How many attempts may fail before the next one has to wait."""
    cleared: bool = False
    """Whether a successful login clears all failures that were counted here, not only its own attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginAttempt:
    """A login under way, which counts as failed until it has succeeded."""

    limits: tuple[LoginLimit, ...]
    at_us: int
    before_us: tuple[int, ...]
    """When an attempt last failed before this one, for each limit; 0: none has."""


# --- names and secrets ------------------------------------------------------------------------


def user_name(text: str) -> str:
    """Return a valid name of a user, else raise BadName. It has no ``:``, so that no user is mistaken for a token."""
    names.name("user", text)
    if ":" in text:
        raise BadName(f"{text!r} cannot name a user: leave out the ':', as in 'ann' or 'ann@example.org'")
    return text


def token_name(text: str) -> str:
    """Return a valid name of a token, else raise BadName."""
    return names.name("token", text)


def require_password(text: str) -> str:
    """Return a password that is long enough, else raise UsageError (which does not repeat it)."""
    if not PASSWORD_MIN <= len(text) <= PASSWORD_MAX:
        raise UsageError(
            f"a password has {PASSWORD_MIN} to {PASSWORD_MAX} characters, this one {len(text):,}; a few words in a row "
            f"are easily kept in mind"
        )
    return text


def new_token() -> tuple[str, str]:
    """Return the id of a new token, and its secret, which contains the id."""
    token_id = secrets.token_hex(8)
    return token_id, f"spn_{token_id}_{new_secret()}"


def new_secret() -> str:
    """Return 256 random bits for a URL or a cookie, as 43 characters."""
    return secrets.token_urlsafe(32)


def token_id(secret: str) -> str | None:
    """Return the id in a token's secret; None: it is no token's secret."""
    match = _TOKEN.fullmatch(secret)
    return None if match is None else match[1]


def digest(secret: str) -> str:
    """Return the digest of a secret that the store has: SHA-256, in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- rights as text ---------------------------------------------------------------------------


def rights_text(rights: Rights) -> str:
    """Return rights as JSON, for the store and the audit."""
    return orjson.dumps(rights, option=orjson.OPT_SORT_KEYS).decode()


def rights_of(text: str) -> Rights:
    """Return the rights of a text made by ``rights_text``. Raises ValueError, KeyError or UsageError for anything else,
    so that an unreadable text grants nothing."""
    value: dict[str, Any] = orjson.loads(text)
    within, priorities = value["within"], value["priorities"]
    return Rights(
        role=Role(value["role"]),
        within=AccessScope(collections=_tuple(within["collections"]), queues=_tuple(within["queues"])),
        shares=_tuple(value["shares"]),
        priorities=None if priorities is None else (priorities[0], priorities[1]),
        locks=_tuple(value["locks"]),
        external=tuple(value["external"]),
    )


def rights_in(text: str) -> Rights:
    """Return the rights of a row of the store: an unreadable text grants nothing, and does not make other rows fail."""
    try:
        return rights_of(text)
    except UNREADABLE:
        return Rights(role=Role.VIEWER, within=AccessScope(collections=(), queues=()))


def _tuple(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
