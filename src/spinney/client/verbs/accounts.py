"""Users, their sessions, and tokens."""

from typing import Any

from spinney.client.calls import Call, get, json_body, path, request, verb
from spinney.model.access import Rights
from spinney.model.rights.accounts import Session, Token, User
from spinney.model.values.lists import Page
from spinney.schemas import CreatedToken, EndedSessions, Me, PasswordLink


class AccountVerbs:
    """Secrets are in the answer that made them, once."""

    @verb
    def me(self: None) -> Call[Me]:
        """Who asks, and what that one may."""
        return get("/me", Me)

    @verb
    def change_password(self: None, before: str, after: str) -> Call[User]:
        """Change one's own; ends all one's sessions."""
        return request("POST", "/me/password", User, {"before": before, "after": after})

    @verb
    def users(self: None) -> Call[Page[User]]:
        """Users, by name."""
        return get("/users", Page[User])

    @verb
    def user(self: None, name: str) -> Call[User]:
        """One of them."""
        return get(path("/users/{}", name), User)

    @verb
    def add_user(
        self: None, name: str, rights: Rights, *, password: str | None = None, reason: str | None = None
    ) -> Call[User]:
        """Make a user; without a password a link sets one, or a proxy says who it is."""
        return request(
            "POST",
            "/users",
            User,
            json_body(name=name, rights=_rights(rights), password=password, reason=reason),
        )

    @verb
    def change_user(
        self: None,
        name: str,
        *,
        rights: Rights | None = None,
        disabled: bool | None = None,
        reason: str | None = None,
    ) -> Call[User]:
        """Give a user other rights, or shut him out."""
        body = json_body(rights=None if rights is None else _rights(rights), disabled=disabled, reason=reason)
        return request("PATCH", path("/users/{}", name), User, body)

    @verb
    def delete_user(self: None, name: str, *, reason: str | None = None) -> Call[None]:
        """For good."""
        return request("DELETE", path("/users/{}", name), reason=reason)

    @verb
    def make_link(self: None, name: str) -> Call[PasswordLink]:
        """A link that sets this user's password, good once, for a day."""
        return request("POST", path("/users/{}/link", name), PasswordLink)

    @verb
    def sessions(self: None, name: str) -> Call[Page[Session]]:
        """The sessions of a user, oldest first."""
        return get(path("/users/{}/sessions", name), Page[Session])

    @verb
    def end_sessions(self: None, name: str, *, reason: str | None = None) -> Call[EndedSessions]:
        """Let a user sign in again."""
        return request("DELETE", path("/users/{}/sessions", name), EndedSessions, reason=reason)

    @verb
    def tokens(self: None, *, owner: str | None = None) -> Call[Page[Token]]:
        """Tokens, without their secrets."""
        return get("/tokens", Page[Token], owner=owner)

    @verb
    def make_token(
        self: None,
        name: str,
        *,
        owner: str | None = None,
        rights: Rights | None = None,
        expires: int | None = None,
        reason: str | None = None,
    ) -> Call[CreatedToken]:
        """Make a token, a user's or a machine's; ``expires`` in µs since 1970 UTC."""
        given = None if rights is None else _rights(rights)
        return request(
            "POST",
            "/tokens",
            CreatedToken,
            json_body(name=name, owner=owner, rights=given, expires=expires, reason=reason),
        )

    @verb
    def revoke_token(self: None, token: str, *, reason: str | None = None) -> Call[Token]:
        """Make a token void for good, by its id."""
        return request("DELETE", path("/tokens/{}", token), Token, reason=reason)


def _rights(rights: Rights) -> dict[str, Any]:
    """As requests say them."""
    return {
        "role": rights.role,
        "collections": rights.within.collections,
        "queues": rights.within.queues,
        "shares": rights.shares,
        "priorities": rights.priorities,
        "locks": rights.locks,
        "external": rights.external,
    }
