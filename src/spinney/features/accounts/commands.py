"""What people ask of users and tokens: what admins manage, and what everybody manages as his own.

Nobody gives away what he has not: an admin with limits makes users and tokens within them, and leaves alone who may
more than himself; of a user's own token no right goes beyond his. Every change is in the audit, and obeyed from the
next request on. Secrets are in the answer that made them, once.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command, Performs
from spinney.commands.fields import Name, Reason, Time, Word
from spinney.features.accounts.rights_field import RightsField
from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden, NoSuch, NotVisible, UsageError
from spinney.model.rights.accounts import (
    PASSWORD_MAX,
    PASSWORD_MIN,
    NewToken,
    Session,
    Token,
    User,
    digest,
    new_secret,
    new_token,
    token_name,
    user_name,
)
from spinney.model.values.hints import did_you_mean
from spinney.model.values.lists import All
from spinney.service import passwords
from spinney.service.service import ASK, Service
from spinney.service.sign_in import SignIn

LINK_US = 24 * 3_600_000_000
"""How long a link that sets a password is good."""
WELCOME = "/welcome?link="
"""Where the server's pages take a one-time secret."""
_USERS, _TOKENS = "manage users", "manage tokens of others"

UserName = Annotated[Word, Field(description="The user's name.", examples=["ann"])]
# The model checks a new password, since its sentence does not repeat it.
Password = Annotated[
    str, WithJsonSchema({"type": "string", "minLength": PASSWORD_MIN, "maxLength": PASSWORD_MAX})
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLink:
    """A one-time link that sets a user's password."""

    path: str = field(repr=False)
    """On this server."""
    secret: str = field(repr=False)
    ends_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessions:
    """Sessions that were ended."""

    ended: int


# --- users --------------------------------------------------------------------------------------


class ListUsers(Command, route="GET /users", role=Role.ADMIN, to=_USERS):
    """List users.

    By name."""

    def run(self, service: Service) -> All[User]:
        return All(items=service.store.accounts.users())


class AddUser(Command, route="POST /users", status=201, role=Role.ADMIN, to=_USERS):
    """Make a user.

    Nobody gives rights beyond his own."""

    name: Name = Field(description="The user's name.", examples=["ann"])
    rights: RightsField = Field(description="What the user may.")
    password: Password | None = Field(
        default=None,
        repr=False,
        description="null: a link sets one (`POST /users/NAME/link`), or a proxy says who it is.",
    )
    reason: Reason = None

    def run(self, service: Service) -> User:
        _require_cover(service, self.rights)
        hash_ = None if self.password is None else passwords.hashed(self.password)
        actor = service.actor(self.reason)
        return service.store.accounts.add(
            user_name(self.name), self.rights, hash_, actor, now_us=service.clock()
        )


class ShowUser(Command, route="GET /users/{name}"):
    """Show a user.

    Anybody may look at himself."""

    name: UserName

    def run(self, service: Service) -> User:
        _require_self_or_admin(service, self.name, _USERS)
        return service.store.accounts.user(self.name)


class ChangeUser(Command, route="PATCH /users/{name}", role=Role.ADMIN, to=_USERS):
    """Change a user.

    Other rights, or shut out. Sessions and tokens of who is disabled are void. What is left out stays."""

    name: UserName
    rights: RightsField | None = Field(default=None, description="What the user may from now on.")
    disabled: bool | None = Field(default=None, description="Let nobody in by this name.")
    reason: Reason = None

    def run(self, service: Service) -> User:
        user, accounts = _managed(service, self.name), service.store.accounts
        if self.rights is not None:
            _require_cover(service, self.rights)
            actor = service.actor(self.reason)
            user = accounts.change(self.name, self.rights, actor, now_us=service.clock())
        if self.disabled is not None:
            actor = service.actor(self.reason)
            user = accounts.disable(self.name, actor, disabled=self.disabled, now_us=service.clock())
        return user


class DeleteUser(Command, route="DELETE /users/{name}", role=Role.ADMIN, to=_USERS):
    """Delete a user.

    For good; tokens are revoked, sessions end."""

    name: UserName
    reason: Reason = None

    def run(self, service: Service) -> None:
        _managed(service, self.name)
        service.store.accounts.delete(self.name, service.actor(self.reason), now_us=service.clock())


# --- passwords, sessions ------------------------------------------------------------------------


class MakeLink(Command, route="POST /users/{name}/link", status=201, role=Role.ADMIN, to=_USERS):
    """Make a link that sets a password.

    Good once, for a day; the one before is void."""

    name: UserName

    def run(self, service: Service) -> PasswordLink:
        _managed(service, self.name)
        secret = new_secret()
        link = service.store.sign_in.invite(
            self.name, digest(secret), service.actor(), lasts_us=LINK_US, now_us=service.clock()
        )
        return PasswordLink(path=f"{WELCOME}{secret}", secret=secret, ends_us=link.ends_us)


class ChangePassword(Command, route="POST /me/password"):
    """Change your password.

    Ends all your sessions."""

    before: Password = Field(repr=False, description="The one that there is.")
    after: Password = Field(repr=False, description="The new one.")

    def run(self, service: Service) -> User:
        return service.part(SignIn).change_password(self.before, self.after)


class ListSessions(Command, route="GET /users/{name}/sessions"):
    """List the sessions of a user.

    Oldest first."""

    name: UserName

    def run(self, service: Service) -> All[Session]:
        _require_self_or_admin(service, self.name, _USERS)
        return All(items=service.store.sign_in.sessions(self.name, now_us=service.clock()))


class EndSessions(Command, route="DELETE /users/{name}/sessions"):
    """End all sessions of a user.

    He has to sign in again."""

    name: UserName
    reason: Reason = None

    def run(self, service: Service) -> EndedSessions:
        if self.name != service.by:
            _managed(service, self.name)
        actor = service.actor(self.reason)
        return EndedSessions(ended=service.store.sign_in.end(self.name, actor, now_us=service.clock()))


# --- tokens -------------------------------------------------------------------------------------


class ListTokens(Command, route="GET /tokens"):
    """List tokens.

    Without their secrets, which nobody has. Who is no admin sees his own."""

    owner: Word | None = Field(default=None, description="Only of this user.")

    def run(self, service: Service) -> All[Token]:
        owner = self.owner
        if owner is None and not service.rights.permits(Role.ADMIN):
            owner = service.by
        _require_self_or_admin(service, owner, _TOKENS)
        return All(items=service.store.accounts.tokens(owner))


class MakeToken(Command, route="POST /tokens", status=201):
    """Make a token.

    The secret is in this answer alone: keep it. It never allows more than its owner may."""

    name: Name = Field(description="The token's name.", examples=["nightly"])
    owner: Word | None = Field(
        default=None,
        description="In whose name it acts; null: a machine's, in its own name, which takes an admin.",
    )
    rights: RightsField | None = Field(default=None, description="Left out: the owner's.")
    expires: Time | None = Field(default=None, description="It is good until then; null: for ever.")
    reason: Reason = None

    def run(self, service: Service) -> NewToken:
        _require_self_or_admin(service, self.owner, _TOKENS)
        rights, now_us = _token_rights(service, self.owner, self.rights), service.clock()
        if self.expires is not None and self.expires <= now_us:
            raise UsageError("the token would have expired already; give a time to come, or leave it out")
        if service.ends_us is not None and (self.expires is None or self.expires > service.ends_us):
            raise Forbidden(
                "a token that expires can make none that lasts longer; give this one an earlier time, or sign in to "
                "make it"
            )
        id_, secret = new_token()
        token = Token(
            id=id_,
            name=token_name(self.name),
            owner=self.owner,
            rights=rights,
            created_us=now_us,
            by=service.by,
            expires_us=self.expires,
        )
        actor = service.actor(self.reason)
        made = service.store.accounts.make_token(token, digest(secret), actor, now_us=now_us)
        return NewToken(token=made, secret=secret)


class RevokeToken(Command, route="DELETE /tokens/{token}"):
    """Revoke a token.

    For good."""

    token: str = Field(pattern=r"^[0-9a-f]{1,64}$", description="Its id, not its secret.")
    reason: Reason = None

    def run(self, service: Service) -> Token:
        found = service.store.accounts.token(self.token)
        if found.owner != service.by:
            if not service.rights.permits(Role.ADMIN):
                raise NotVisible(f"you have no token with the id {self.token!r:.60}; look at those you have")
            _require_cover(service, found.rights)
        return service.store.accounts.revoke(self.token, service.actor(self.reason), now_us=service.clock())


COMMANDS = (
    ListUsers,
    AddUser,
    ShowUser,
    ChangeUser,
    DeleteUser,
    MakeLink,
    ListSessions,
    EndSessions,
    ChangePassword,
    ListTokens,
    MakeToken,
    RevokeToken,
)


def set_password(service: Service, name: str, password: str | None, *, reason: str | None = None) -> User:
    """Set another's password (None: none any more), which ends all sessions. No server does this: there a link has the
    user do it. Raises NoSuch, UsageError, Forbidden."""
    _managed(service, name)
    hash_ = None if password is None else passwords.hashed(password)
    return service.store.accounts.set_password(name, hash_, service.actor(reason), now_us=service.clock())


def find_token(performer: Performs, name: str, owner: str | None) -> Token:
    """Return the token of that name that is not revoked; ``owner`` None: a machine's. Raises NoSuch, Forbidden."""
    tokens = performer.do(ListTokens(owner=owner)).items
    good = {token.name: token for token in tokens if token.owner == owner and token.revoked_us is None}
    if name not in good:
        whose = f"{owner} has no" if owner else "there is no"
        raise NoSuch(
            f"{whose} token {name!r:.120}{did_you_mean(name, good)}; 'spinney token list' shows those there are"
        )
    return good[name]


# --- who may ------------------------------------------------------------------------------------


def _token_rights(service: Service, owner: str | None, rights: Rights | None) -> Rights:
    if owner is None:
        if rights is None:
            raise UsageError("a token without an owner has rights of its own; say which role, as submitter")
        _require_cover(service, rights)
        return rights
    most = service.store.accounts.user(owner).rights
    if owner == service.by:  # perhaps with a token of his that may less
        most = most.narrowed(service.rights)
    rights = most if rights is None else rights
    if not most.covers(rights):
        raise UsageError(
            f"{owner} may not do all that the token would be good for; leave out what goes beyond"
        )
    if owner != service.by:
        _require_cover(service, rights)
    return rights


def _require_self_or_admin(service: Service, name: str | None, what: str) -> None:
    if name is None or name != service.by:
        service.require(Role.ADMIN, what)


def _managed(service: Service, name: str) -> User:
    """A user whom an admin who asks may change."""
    service.require(Role.ADMIN, _USERS)
    user = service.store.accounts.user(name)
    _require_cover(service, user.rights)
    return user


def _require_cover(service: Service, rights: Rights) -> None:
    if not service.rights.covers(rights):
        raise Forbidden(f"{service.by} may not give or change rights beyond his own; {ASK}")
