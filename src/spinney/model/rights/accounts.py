"""People and programs that may ask: users, tokens, sessions, and what their secrets look like.

A secret is shown once and kept by nobody: of tokens, sessions and links the store has the SHA-256 (of 256 random bits
nothing slower is needed), of passwords an argon2 hash.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

import orjson

from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, SpinneyError, UsageError
from spinney.model.values import names

PASSWORD_MIN, PASSWORD_MAX = 12, 256
"""Characters. Length is all that counts (NIST SP 800-63B, 5.1.1.2: no rules of composition); the most, so that nobody
has a server hash megabytes."""
AGENT_MAX = 200
TOKEN_NAME = "token:"  # noqa: S105 - no secret
"""How the name begins in which a machine's token acts. No user is called so."""
_TOKEN = re.compile(r"spn_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who may ask."""

    name: str
    rights: Rights
    created_us: int
    by: str
    """Who made it."""
    disabled: bool = False
    password_us: int | None = None
    """Since when the password is what it is. None: there is none (a proxy or an identity provider says who it is)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a program asks with."""

    id: str
    name: str
    """Unique among those of its owner that are not revoked."""
    owner: str | None
    """The user in whose name it acts; None: a machine's, which acts in a name of its own."""
    rights: Rights
    """As it was made; it never allows what its owner may not."""
    created_us: int
    by: str
    expires_us: int | None = None
    revoked_us: int | None = None
    used_us: int | None = None
    """When it was used last, to the minute."""

    @property
    def acts_as(self) -> str:
        """In whose name it does what it does."""
        return self.owner if self.owner is not None else f"{TOKEN_NAME}{self.name}"

    def good(self, now_us: int) -> bool:
        """Whether it opens anything, as far as itself goes."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was just made, with its secret, which nobody can show again."""

    token: Token
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody's login with a browser."""

    id: str
    """Beginning of the digest of its secret: to tell one from another."""
    user: str
    created_us: int
    seen_us: int
    """To the minute."""
    ends_us: int
    """Whatever happens; and before that when it was not used for a while."""
    address: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks, once a secret has shown it."""

    name: str
    rights: Rights
    """In force now: those of a token are narrowed by its owner's."""
    token: Token | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a one-time secret is good for."""

    user: str | None
    """Whose password it sets; None: it makes the first admin."""
    ends_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A browser in which a user has signed in before. Strangers who guess at the user's name do not slow it."""

    user: str
    password_us: int
    """Since when the password is what it was then: another password makes all devices unknown."""
    number: str
    """Random; failures from this browser are counted under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLimit:
    """Something under which failed logins are counted: a name from an address, an address, a name."""

    whose: str
    """A digest."""
    free: int
    """So many attempts may fail before the next has to wait."""
    cleared: bool = False
    """A login that succeeds forgets all failures that were counted here, not only its own attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginAttempt:
    """A login under way, which counts as failed until it has succeeded."""

    limits: tuple[LoginLimit, ...]
    at_us: int
    before_us: tuple[int, ...]
    """For each limit: when an attempt that is counted there failed last before this one; 0: none has."""


# --- names and secrets ------------------------------------------------------------------------


def user_name(text: str) -> str:
    """Return what can name a user, else raise BadName. No ``:``, so that no user is taken for a token."""
    names.name("user", text)
    if ":" in text:
        raise BadName(f"{text!r} cannot name a user: leave out the ':', as in 'ann' or 'ann@example.org'")
    return text


def token_name(text: str) -> str:
    """Return what can name a token, else raise BadName."""
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
    """The id of a token to be, and its secret, which begins with it."""
    token_id = secrets.token_hex(8)
    return token_id, f"spn_{token_id}_{new_secret()}"


def new_secret() -> str:
    """256 random bits for a URL or a cookie: 43 characters."""
    return secrets.token_urlsafe(32)


def token_id(secret: str) -> str | None:
    """The id in a token's secret; None: it is no token's."""
    found = _TOKEN.fullmatch(secret)
    return None if found is None else found[1]


def digest(secret: str) -> str:
    """What is kept of a secret: SHA-256, in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- rights as text ---------------------------------------------------------------------------


def rights_text(rights: Rights) -> str:
    """Rights as JSON, for the store and the audit."""
    return orjson.dumps(rights, option=orjson.OPT_SORT_KEYS).decode()


def rights_of(text: str) -> Rights:
    """Rights as ``rights_text`` writes them. Raises ValueError, KeyError or UsageError for anything else, so that
    what cannot be read opens nothing."""
    said: dict[str, Any] = orjson.loads(text)
    within, priorities = said["within"], said["priorities"]
    return Rights(
        role=Role(said["role"]),
        within=AccessScope(collections=_tuple(within["collections"]), queues=_tuple(within["queues"])),
        shares=_tuple(said["shares"]),
        priorities=None if priorities is None else (priorities[0], priorities[1]),
        locks=_tuple(said["locks"]),
        external=tuple(said["external"]),
    )


def rights_in(text: str) -> Rights:
    """The same for a row of the store: one that cannot be read allows nothing, and is no reason to fail others."""
    try:
        return rights_of(text)
    except (SpinneyError, KeyError, TypeError, ValueError):
        return Rights(role=Role.VIEWER, within=AccessScope(collections=(), queues=()))


def _tuple(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
