"""Users and tokens, as admins manage them and as everybody manages his own.

Nobody gives away what he has not: an admin with limits makes users and tokens within them, and leaves alone who may
more than himself; of a user's own token no right goes beyond his.
"""

from collections.abc import Sequence

from spinney.model.access import Rights, Role
from spinney.model.errors import BadLogin, Forbidden, NoSuch, NotVisible, UsageError
from spinney.model.rights.accounts import (
    Link,
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
from spinney.service import login_limits, passwords
from spinney.service.service import ASK, Service

RESET_US = 24 * 3_600_000_000
"""How long a link to set a password is good."""
FIRST_ADMIN_US = 3_600_000_000
_USERS, _TOKENS = "manage users", "manage tokens of others"
_NOBODYS = ""
"""Owner of machines' tokens, as the store has it."""


class Accounts(Service):
    """Every change is in the audit, and obeyed from the next request on."""

    # --- users ----------------------------------------------------------------------------

    def users(self) -> Sequence[User]:
        """All, by name. Raises Forbidden."""
        self.require(Role.ADMIN, _USERS)
        return self.store.accounts.users()

    def user(self, name: str) -> User:
        """One of them; anybody may look at himself. Raises NoSuch, Forbidden."""
        self._require_self_or_admin(name, _USERS)
        return self.store.accounts.user(name)

    def add(self, name: str, rights: Rights, password: str | None, *, reason: str | None = None) -> User:
        """Make a user; without a password somebody else (a proxy, an identity provider) says who it is, or a link
        sets one. Raises BadName, UsageError (the password), Refused (the name is taken), Forbidden."""
        self.require(Role.ADMIN, _USERS)
        self._require_cover(rights)
        hash_ = None if password is None else passwords.hashed(password)
        return self.store.accounts.add(
            user_name(name), rights, hash_, self.actor(reason), now_us=self.clock()
        )

    def change(self, name: str, rights: Rights, *, reason: str | None = None) -> User:
        """Give a user other rights. Raises NoSuch, Refused (the only admin without limits), Forbidden."""
        self._managed(name)
        self._require_cover(rights)
        return self.store.accounts.change(name, rights, self.actor(reason), now_us=self.clock())

    def disable(self, name: str, *, disabled: bool = True, reason: str | None = None) -> User:
        """Let nobody in by this name, or again (False). Raises NoSuch, Refused (the only admin without limits),
        Forbidden."""
        self._managed(name)
        return self.store.accounts.disable(name, self.actor(reason), disabled=disabled, now_us=self.clock())

    def delete(self, name: str, *, reason: str | None = None) -> None:
        """The same for good; tokens are revoked. Raises what ``disable`` raises."""
        self._managed(name)
        self.store.accounts.delete(name, self.actor(reason), now_us=self.clock())

    # --- passwords, links, sessions -------------------------------------------------------

    def set_password(self, name: str, password: str | None, *, reason: str | None = None) -> User:
        """Another password (None: none any more), which ends all sessions. Raises NoSuch, UsageError, Forbidden."""
        self._managed(name)
        hash_ = None if password is None else passwords.hashed(password)
        return self.store.accounts.set_password(name, hash_, self.actor(reason), now_us=self.clock())

    def change_password(self, before: str, after: str) -> User:
        """One's own, by the one that there is; ends all sessions, also the one it is asked with. Raises BadLogin,
        TooManyAttempts (guessed at too often), UsageError, NoSuch (who asks is no user)."""
        self.store.accounts.user(self.by)
        with passwords.room():
            attempt = self.store.sign_in.attempt(login_limits.password_limits(self.by), now_us=self.clock())
            found = self.store.accounts.password(self.by)
            proof = None if found is None else found[1]
            if not passwords.fits(proof, before):
                raise BadLogin(
                    "that is not the password that you have; try again, or ask an admin for a link"
                )
        self.store.sign_in.take_back(attempt)
        return self.store.accounts.set_password(
            self.by, passwords.hashed(after), self.actor(), proof=proof, now_us=self.clock()
        )

    def invite(self, name: str) -> tuple[str, Link]:
        """A one-time secret with which somebody sets this user's password within a day; the one before is void. Raises
        NoSuch, Refused (disabled), Forbidden."""
        self._managed(name)
        secret = new_secret()
        link = self.store.sign_in.invite(
            name, digest(secret), self.actor(), lasts_us=RESET_US, now_us=self.clock()
        )
        return secret, link

    def invite_first(self) -> str | None:
        """A one-time secret with which somebody becomes the first admin within an hour of the first such link; the one
        before is void. None: there are users already. Raises Refused (that hour is over), Forbidden."""
        self.require(Role.ADMIN, _USERS)
        if self.store.accounts.any_user():
            return None
        secret = new_secret()
        self.store.sign_in.invite(
            None, digest(secret), self.actor(), lasts_us=FIRST_ADMIN_US, now_us=self.clock()
        )
        return secret

    def sessions(self, name: str) -> Sequence[Session]:
        """A user's logins, oldest first. Raises NoSuch, Forbidden."""
        self._require_self_or_admin(name, _USERS)
        return self.store.sign_in.sessions(name, now_us=self.clock())

    def end_sessions(self, name: str, *, reason: str | None = None) -> int:
        """End all of a user's logins; how many. Raises NoSuch, Forbidden."""
        if name != self.by:
            self._managed(name)
        return self.store.sign_in.end(name, self.actor(reason), now_us=self.clock())

    # --- tokens ---------------------------------------------------------------------------

    def tokens(self, owner: str | None = None) -> Sequence[Token]:
        """Those of one user (empty: of machines), or all that who asks may see. Raises Forbidden."""
        if owner is None and not self.rights.permits(Role.ADMIN):
            owner = self.by
        self._require_self_or_admin(owner, _TOKENS)
        return self.store.accounts.tokens(owner)

    def make_token(
        self,
        name: str,
        *,
        owner: str | None,
        rights: Rights | None = None,
        expires_us: int | None = None,
        reason: str | None = None,
    ) -> NewToken:
        """A token of a user's, or (``owner`` None) of a machine's, which acts in a name of its own. Without rights:
        the owner's. Raises BadName, NoSuch, Refused (the name is taken, the owner disabled), UsageError (it would
        exceed its owner's rights, or has expired), Forbidden."""
        self._require_self_or_admin(owner, _TOKENS)
        rights = self._token_rights(owner, rights)
        now_us = self.clock()
        if expires_us is not None and expires_us <= now_us:
            raise UsageError("the token would have expired already; give a time to come, or leave it out")
        if self.ends_us is not None and (expires_us is None or expires_us > self.ends_us):
            raise Forbidden(
                "a token that expires can make none that lasts longer; give this one an earlier time, or sign in to "
                "make it"
            )
        id_, secret = new_token()
        token = Token(
            id=id_,
            name=token_name(name),
            owner=owner,
            rights=rights,
            created_us=now_us,
            by=self.by,
            expires_us=expires_us,
        )
        made = self.store.accounts.make_token(token, digest(secret), self.actor(reason), now_us=now_us)
        return NewToken(token=made, secret=secret)

    def find_token(self, name: str, owner: str | None) -> Token:
        """The one of that name that is not revoked. Raises NoSuch, Forbidden."""
        self._require_self_or_admin(owner, _TOKENS)
        found = {t.name: t for t in self.store.accounts.tokens(owner or _NOBODYS) if t.revoked_us is None}
        if name not in found:
            whose = f"{owner} has no" if owner else "there is no"
            raise NoSuch(
                f"{whose} token {name!r:.120}{did_you_mean(name, found)}; 'spinney token list' shows those there are"
            )
        return found[name]

    def revoke_token(self, token_id: str, *, reason: str | None = None) -> Token:
        """Make it void for good. Raises NoSuch, also for others' tokens where who asks is no admin."""
        found = self.store.accounts.token(token_id)
        if found.owner != self.by:
            if not self.rights.permits(Role.ADMIN):
                raise NotVisible(f"you have no token with the id {token_id!r:.60}; look at those you have")
            self._require_cover(found.rights)
        return self.store.accounts.revoke(token_id, self.actor(reason), now_us=self.clock())

    # --- who may --------------------------------------------------------------------------

    def _token_rights(self, owner: str | None, rights: Rights | None) -> Rights:
        if owner is None:
            if rights is None:
                raise UsageError(
                    "a token without an owner has rights of its own; say which role, as submitter"
                )
            self._require_cover(rights)
            return rights
        most = self.store.accounts.user(owner).rights
        if owner == self.by:  # perhaps with a token of his that may less
            most = most.narrowed(self.rights)
        rights = most if rights is None else rights
        if not most.covers(rights):
            raise UsageError(
                f"{owner} may not do all that the token would be good for; leave out what goes beyond"
            )
        if owner != self.by:
            self._require_cover(rights)
        return rights

    def _require_self_or_admin(self, name: str | None, what: str) -> None:
        if name is None or name != self.by:
            self.require(Role.ADMIN, what)

    def _managed(self, name: str) -> User:
        """A user whom who asks may change."""
        self.require(Role.ADMIN, _USERS)
        found = self.store.accounts.user(name)
        self._require_cover(found.rights)
        return found

    def _require_cover(self, rights: Rights) -> None:
        if not self.rights.covers(rights):
            raise Forbidden(f"{self.by} may not give or change rights beyond his own; {ASK}")
