"""Sign-in of people and programs by password, token, session or link. The server calls this in its own name, because
the caller is not known yet.

A password is checked in three steps: the attempt is counted as a failure, the hash is computed outside of any
transaction, and the session is opened only if the stored hash is still the same; then the count is taken back. A name
without an account takes as long as one with a wrong password.
"""

from dataclasses import dataclass

from spinney.model.access import Role
from spinney.model.errors import BadLogin, TooManyAttempts
from spinney.model.rights.accounts import (
    Device,
    Identity,
    Link,
    LoginAttempt,
    Session,
    User,
    digest,
    new_secret,
    require_password,
    token_id,
    user_name,
)
from spinney.model.rights.actor import Actor
from spinney.service import login_limits, passwords
from spinney.service.refusal_log import NOBODY, RefusalLog
from spinney.service.service import Service

IDLE_US, LASTS_US = 2 * 3_600_000_000, 12 * 3_600_000_000
"""How long a session is valid after its last use, and in all, in microseconds."""
FIRST_ADMIN_US = 3_600_000_000
"""How long the first admin's link is valid."""
_WRONG = "the name or the password is wrong; try again, or ask an admin for a link that sets a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """Where a login comes from, by which guesses of passwords are limited and sessions are told apart."""

    address: str | None = None
    """IP address; None: from this host, over a Unix socket."""
    agent: str | None = None
    """The browser's User-Agent."""
    device: Device | None = None
    """The signed device cookie that the browser has from an earlier login."""


class SignIn(Service):
    """Sign-in by password, token, session and link. Secrets are returned once; the store has only their digests."""

    def known_by_token(self, secret: str) -> Identity | None:
        """Return the owner of a token, with the current rights; None: no such token, expired, revoked, or its owner is
        disabled."""
        id_ = token_id(secret)
        if id_ is None:
            return None
        return self.store.accounts.identity_of_token(id_, digest(secret), now_us=self.clock())

    def known_by_session(self, secret: str, *, used: bool = True) -> Identity | None:
        """Return the user of a session, with the current rights; None: it has ended. ``used``: whether this counts as a
        use, which keeps the session from ending."""
        return self.store.sign_in.identity_of_session(digest(secret), used=used, now_us=self.clock())

    def login(
        self, name: str, password: str, refusals: RefusalLog, *, visit: ClientInfo
    ) -> tuple[str, Session]:
        """Open a session by a password; return its secret and the session.

        Raises BadLogin, which does not tell whether there is such a user, and TooManyAttempts, with the time to wait;
        both go into the audit.
        """
        try:
            hash_, attempt = self._proven(name, password, visit)
            return self._open(name, visit, proof=hash_, attempt=attempt)
        except (BadLogin, TooManyAttempts) as error:
            self._refused(name, visit, error, refusals)
            raise

    def login_known(self, name: str, *, visit: ClientInfo) -> tuple[str, Session]:
        """Open a session for a user whom an identity provider or a link has already verified. Raises BadLogin where
        there is no such user, or a disabled one."""
        return self._open(name, visit)

    def device(self, session: Session) -> Device | None:
        """Return the device by which the browser of this session is recognized from now on. None: its user has no
        password, or another one by now."""
        account = self.store.accounts.password(session.user)
        password_us = None if account is None else account[0].password_us
        if password_us is None or password_us > session.created_us:
            return None
        return Device(user=session.user, password_us=password_us, number=new_secret())

    def logout(self, secret: str) -> bool:
        """End a session; return False when it had already ended."""
        identity = self.known_by_session(secret)
        actor = self.actor() if identity is None else Actor(by=identity.name, call=self.actor().call)
        return self.store.sign_in.close(digest(secret), actor, now_us=self.clock())

    def change_password(self, before: str, after: str) -> User:
        """Change the caller's own password, which takes the current one. This ends all sessions, including the
        caller's. Raises BadLogin, TooManyAttempts (too many wrong passwords), UsageError, NoSuch (the caller is no
        user)."""
        self.store.accounts.user(self.by)
        with passwords.room():
            attempt = self.store.sign_in.attempt(login_limits.password_limits(self.by), now_us=self.clock())
            account = self.store.accounts.password(self.by)
            proof = None if account is None else account[1]
            if not passwords.fits(proof, before):
                raise BadLogin(
                    "that is not the password that you have; try again, or ask an admin for a link"
                )
        self.store.sign_in.take_back(attempt)
        return self.store.accounts.set_password(
            self.by, passwords.hashed(after), self.actor(), proof=proof, now_us=self.clock()
        )

    # --- links ----------------------------------------------------------------------------

    def invite_first(self) -> str | None:
        """Return a one-time secret with which a person becomes the first admin, within an hour of the first such link;
        it replaces the one before. None: there are users already. Raises Refused (that hour is over), Forbidden."""
        self.require(Role.ADMIN, "manage users")
        if self.store.accounts.any_user():
            return None
        secret = new_secret()
        self.store.sign_in.invite(
            None, digest(secret), self.actor(), lasts_us=FIRST_ADMIN_US, now_us=self.clock()
        )
        return secret

    def link(self, secret: str) -> Link:
        """Return what a link is for. Raises BadLogin when it is no longer valid."""
        return self.store.sign_in.link(digest(secret), now_us=self.clock())

    def accept(self, secret: str, name: str | None, password: str) -> User:
        """Use a link: set the password of its user, or make the first admin under this name. Raises BadLogin (no longer
        valid), BadName, UsageError (the password)."""
        link = self.link(secret)
        user = user_name(name or "") if link.user is None else link.user
        hash_ = passwords.hashed(require_password(password))
        actor = Actor(by=user, call=self.actor().call)
        return self.store.sign_in.accept(digest(secret), user, hash_, actor, now_us=self.clock())

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes to sign with; they are made once and are the same for all servers of this store."""
        return self.store.sign_in.secret(name, now_us=self.clock())

    # --- shared steps ---------------------------------------------------------------------

    def _proven(self, name: str, password: str, visit: ClientInfo) -> tuple[str, LoginAttempt]:
        """Return the hash that the password fits, and the attempt, which counts as a failure until the
        session is open.

        The attempt is counted before the hash is computed, so that many at once cannot all be free. A hash of
        older parameters is replaced. Raises BadLogin, TooManyAttempts."""
        with passwords.room():
            account = self.store.accounts.password(name)
            device = visit.device if account is not None and _is_of(visit.device, account[0]) else None
            now_us = self.clock()
            limits = login_limits.login_limits(name, visit.address, device, now_us)
            attempt = self.store.sign_in.attempt(limits, now_us=now_us)
            hash_ = None if account is None or account[0].disabled else account[1]
            if not passwords.fits(hash_, password) or hash_ is None:
                raise BadLogin(_WRONG)
            if not passwords.outdated(hash_):
                return hash_, attempt
            better = passwords.hashed(password)
        self.store.accounts.rehash(name, hash_, better)
        return better, attempt

    def _open(
        self,
        name: str,
        visit: ClientInfo,
        *,
        proof: str | None = None,
        attempt: LoginAttempt | None = None,
    ) -> tuple[str, Session]:
        """Open a session, and return its secret with it. ``proof``: the hash that was verified; when the
        password was changed since, the sign-in fails. None: the user was authenticated by other means.
        ``attempt``: what is taken back in the same transaction, because it has succeeded."""
        secret = new_secret()
        opened = self.store.sign_in.open(
            name,
            digest(secret),
            Actor(by=name, call=self.actor().call),
            proof=proof,
            attempt=attempt,
            idle_us=IDLE_US,
            lasts_us=LASTS_US,
            address=visit.address,
            agent=visit.agent,
            now_us=self.clock(),
        )
        return secret, opened

    def _refused(
        self, name: str, visit: ClientInfo, error: BadLogin | TooManyAttempts, refusals: RefusalLog
    ) -> None:
        # People type their passwords where the name goes; a text that is not the name of a user is not written
        # anywhere.
        user = name if self.store.accounts.password(name) is not None else None
        why = "too soon" if isinstance(error, TooManyAttempts) else "wrong"
        details = {"user": user, "address": visit.address, "why": why}
        refusals.enter(self.store.audit, NOBODY, "login refused", details, now_us=self.clock())


def _is_of(device: Device | None, user: User) -> bool:
    """Return whether this user has signed in with this browser by the current password."""
    return device is not None and (device.user, device.password_us) == (user.name, user.password_us)
