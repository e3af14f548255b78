"""The commands for users and tokens: those of admins, and those for every user's own account.

Nobody grants more rights than they have: an admin with limits manages users and tokens within these limits only, and a
user's token never has rights beyond the user's. Every change is in the audit, and in force from the next request on. A
secret is in the answer to the command that created it, and nowhere else.
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
"""How long a link that sets a password is valid."""
WELCOME = "/welcome?link="
"""The path of the page that takes the secret of a link."""
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
    """The path of the page on this server that takes the link, with its secret."""
    secret: str = field(repr=False)
    """The secret alone. It is only in this answer."""
    ends_us: int
    """When the link expires, in microseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessions:
    """How many sessions of a user were ended."""

    ended: int
    """How many sessions were open until now."""


# --- users --------------------------------------------------------------------------------------


class ListUsers(Command, route="GET /users", role=Role.ADMIN, to=_USERS):
    """List users.

    Returns all users with their rights, ordered by name, also the disabled ones.
    """

    def run(self, service: Service) -> All[User]:
        return All(items=service.store.accounts.users())


class AddUser(Command, route="POST /users", status=201, role=Role.ADMIN, to=_USERS):
    """Make a user.

    You can only grant rights that you have."""

    name: Name = Field(description="The user's name.", examples=["ann"])
    rights: RightsField = Field(description="The user's role and its limits.")
    password: Password | None = Field(
        default=None,
        repr=False,
        description="The first password; null: the user sets one with a link (`POST /users/NAME/link`), or signs in "
        "through a proxy.",
    )
    reason: Reason = None

    def run(self, service: Service) -> User:
        """Hash the password before any transaction, because that takes long on purpose."""
        _require_cover(service, self.rights)
        if self.password is not None:
            _require_no_end(service, "give a user a password")
        hash_ = None if self.password is None else passwords.hashed(self.password)
        actor = service.actor(self.reason)
        return service.store.accounts.add(
            user_name(self.name), self.rights, hash_, actor, now_us=service.clock()
        )


class ShowUser(Command, route="GET /users/{name}"):
    """Show a user.

    Every user may see their own account."""

    name: UserName

    def run(self, service: Service) -> User:
        _require_self_or_admin(service, self.name, _USERS)
        return service.store.accounts.user(self.name)


class ChangeUser(Command, route="PATCH /users/{name}", role=Role.ADMIN, to=_USERS):
    """Change a user.

    Changes the rights, or disables the user, whose sessions end and whose tokens are refused. A field that is left out
    stays as it is."""

    name: UserName
    rights: RightsField | None = Field(
        default=None, description="The user's role and its limits from now on."
    )
    disabled: bool | None = Field(
        default=None, description="Whether the user is disabled and can no longer sign in."
    )
    reason: Reason = None

    def run(self, service: Service) -> User:
        """Change the rights first and then whether the user is disabled, each in a transaction and an audit
        entry of its own."""
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

    The tokens are revoked, and the sessions end."""

    name: UserName
    reason: Reason = None

    def run(self, service: Service) -> None:
        _managed(service, self.name)
        service.store.accounts.delete(self.name, service.actor(self.reason), now_us=service.clock())


# --- passwords, sessions ------------------------------------------------------------------------


class MakeLink(Command, route="POST /users/{name}/link", status=201, role=Role.ADMIN, to=_USERS):
    """Make a link that sets a password.

    It works once, within a day; the previous link is void."""

    name: UserName

    def run(self, service: Service) -> PasswordLink:
        _managed(service, self.name)
        _require_no_end(service, "make a link that sets a password")
        secret = new_secret()
        link = service.store.sign_in.invite(
            self.name, digest(secret), service.actor(), lasts_us=LINK_US, now_us=service.clock()
        )
        return PasswordLink(path=f"{WELCOME}{secret}", secret=secret, ends_us=link.ends_us)


class ChangePassword(Command, route="POST /me/password"):
    """Change your password.

    Ends all your sessions."""

    before: Password = Field(repr=False, description="The current password.")
    after: Password = Field(repr=False, description="The new password.")

    def run(self, service: Service) -> User:
        return service.part(SignIn).change_password(self.before, self.after)


class ListSessions(Command, route="GET /users/{name}/sessions"):
    """List the sessions of a user.

    The oldest session comes first.
    """

    name: UserName

    def run(self, service: Service) -> All[Session]:
        _require_self_or_admin(service, self.name, _USERS)
        return All(items=service.store.sign_in.sessions(self.name, now_us=service.clock()))


class EndSessions(Command, route="DELETE /users/{name}/sessions"):
    """End all sessions of a user.

    The user has to sign in again."""

    name: UserName
    reason: Reason = None

    def run(self, service: Service) -> EndedSessions:
        if self.name != service.by:
            _managed(service, self.name)
        else:
            _require_own_rights(service, "end your sessions")
        actor = service.actor(self.reason)
        return EndedSessions(ended=service.store.sign_in.end(self.name, actor, now_us=service.clock()))


# --- tokens -------------------------------------------------------------------------------------


class ListTokens(Command, route="GET /tokens"):
    """List tokens.

    Their secrets are not stored. A caller who is no admin sees only their own tokens.
    """

    owner: Word | None = Field(default=None, description="Only tokens of this user.")

    def run(self, service: Service) -> All[Token]:
        owner = self.owner
        if owner is None and not service.rights.permits(Role.ADMIN):
            owner = service.by
        _require_self_or_admin(service, owner, _TOKENS)
        return All(items=service.store.accounts.tokens(owner))


class MakeToken(Command, route="POST /tokens", status=201):
    """Make a token.

    The secret is only in this answer, so keep it. A token never has more rights than its owner."""

    name: Name = Field(description="The token's name.", examples=["nightly"])
    owner: Word | None = Field(
        default=None,
        description="The user for whom it acts; null: a machine's token, which only an admin can make.",
    )
    rights: RightsField | None = Field(
        default=None, description="The token's rights; left out: those of its owner."
    )
    expires: Time | None = Field(default=None, description="When the token expires; null: never.")
    reason: Reason = None

    def run(self, service: Service) -> NewToken:
        """Create the secret here, so that it never gets into the store, and return it with the token.

        A token that expires cannot make one that lasts longer: it would outlive itself. Raises UsageError,
        Forbidden, NoSuch, Refused.
        """
        _require_self_or_admin(service, self.owner, _TOKENS)
        rights, now_us = _token_rights(service, self.owner, self.rights), service.clock()
        if self.expires is not None and self.expires <= now_us:
            raise UsageError(
                "the token would have expired already; give a time in the future, or leave it out"
            )
        if service.ends_us is not None and (self.expires is None or self.expires > service.ends_us):
            raise Forbidden(
                "a token that expires cannot make one that lasts longer; give the new one an earlier time, or sign in "
                "to make it"
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

    It is refused from now on, for ever."""

    token: str = Field(pattern=r"^[0-9a-f]{1,64}$", description="The token's id, not its secret.")
    reason: Reason = None

    def run(self, service: Service) -> Token:
        """Revoke the token if it is the caller's own, or an admin's rights cover it. To others it does not
        exist."""
        token = service.store.accounts.token(self.token)
        if token.owner != service.by:
            if not service.rights.permits(Role.ADMIN):
                raise NotVisible(
                    f"you have no token with the id {self.token!r:.60}; list your tokens to see their ids"
                )
            _require_cover(service, token.rights)
        elif not service.rights.covers(token.rights):
            _require_own_rights(service, "revoke a token that has more rights")
        return service.store.accounts.revoke(self.token, service.actor(self.reason), now_us=service.clock())


def set_password(service: Service, name: str, password: str | None, *, reason: str | None = None) -> User:
    """Set another user's password (None: remove it), which ends all sessions, and return the user.

    It is for callers with the store only: through a server, a link lets the user set the password, so that
    nobody else knows it. Raises NoSuch, UsageError (the password is too short or too long), Forbidden.
    """
    _managed(service, name)
    hash_ = None if password is None else passwords.hashed(password)
    return service.store.accounts.set_password(name, hash_, service.actor(reason), now_us=service.clock())


def find_token(performer: Performs, name: str, owner: str | None) -> Token:
    """Return the token of that name that is not revoked. ``owner`` None: the token of a machine. Raises
    NoSuch, Forbidden."""
    tokens = performer.do(ListTokens(owner=owner)).items
    good = {token.name: token for token in tokens if token.owner == owner and token.revoked_us is None}
    if name not in good:
        owners = [token.owner for token in tokens if token.name == name and token.revoked_us is None]
        if not owner and owners:
            raise NoSuch(f"token {name!r} belongs to {', '.join(map(str, owners))}; add --user {owners[0]}")
        refusal = f"{owner} has no" if owner else "there is no"
        raise NoSuch(
            f"{refusal} token {name!r:.120}{did_you_mean(name, good)}; 'spinney token list' lists them all"
        )
    return good[name]


# --- rights -------------------------------------------------------------------------------------


def _token_rights(service: Service, owner: str | None, rights: Rights | None) -> Rights:
    """Return the rights of a new token: those that are asked for, or else the owner's.

    The caller's own token may have fewer rights than its owner; a token that it makes for the same owner has
    no more. An admin makes tokens only for users whom the admin may manage, since a token acts in its owner's name.
    Raises UsageError when the rights exceed the owner's or a machine's token names none, and Forbidden when
    they exceed the caller's.
    """
    if owner is None:
        if rights is None:
            raise UsageError(
                "a token without an owner needs rights of its own; name a role, for example submitter"
            )
        _require_cover(service, rights)
        return rights
    if owner == service.by:  # perhaps with a token of fewer rights
        most = service.store.accounts.user(owner).rights.narrowed(service.rights)
    else:
        most = _managed(service, owner).rights
    rights = most if rights is None else rights
    if not most.covers(rights):
        raise UsageError(f"the token would have more rights than {owner}; leave out what goes beyond them")
    return rights


def _require_self_or_admin(service: Service, name: str | None, act: str) -> None:
    """Raise Forbidden unless the caller is this user, or an admin."""
    if name is None or name != service.by:
        service.require(Role.ADMIN, act)


def _require_own_rights(service: Service, act: str) -> None:
    """Raise Forbidden for a token with fewer rights than its owner has: whoever has the token of one program must not
    be able to end the owner's others."""
    if not service.rights.covers(service.store.accounts.user(service.by).rights):
        raise Forbidden(
            f"this token has fewer rights than {service.by} and may not {act}; sign in, or use a token with all rights "
            f"of {service.by}"
        )


def _managed(service: Service, name: str) -> User:
    """Return a user whom the caller may manage: an admin whose rights cover those of the user. Raises
    Forbidden, NoSuch."""
    service.require(Role.ADMIN, _USERS)
    user = service.store.accounts.user(name)
    _require_cover(service, user.rights)
    return user


def _require_no_end(service: Service, act: str) -> None:
    """Raise Forbidden for a caller whose token expires: a password or a link would let its bearer in for
    longer than that."""
    if service.ends_us is not None:
        raise Forbidden(
            f"a token that expires cannot {act}, which lasts longer; sign in to do it, or use a token that does not "
            "expire"
        )


def _require_cover(service: Service, rights: Rights) -> None:
    """Raise Forbidden unless the caller has all of these rights."""
    if not service.rights.covers(rights):
        raise Forbidden(f"{service.by} may not grant or change rights that {service.by} does not have; {ASK}")
