"""How people and programs get in: by password, token, session, link. For the server, which acts in its own name here
until it knows in whose."""

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
from spinney.model.rights.operators import Actor
from spinney.service import login_limits, passwords
from spinney.service.refusal_log import NOBODY, RefusalLog
from spinney.service.service import Service

IDLE_S, LASTS_S = 2 * 3_600.0, 12 * 3_600.0
"""How long a session is good after it was seen last, and in all."""
FIRST_ADMIN_US = 3_600_000_000
"""How long the first admin's link is good."""
_WRONG = "the name or the password is wrong; try again, or ask an admin for a link that sets a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """Where a login comes from."""

    address: str | None = None
    """IP address; None: from this very host, over a socket."""
    agent: str | None = None
    """What the browser calls itself."""
    device: Device | None = None
    """What the browser has had from an earlier login, under a good signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How long sessions are good."""

    idle_s: float = IDLE_S
    lifetime_s: float = LASTS_S


class SignIn(Service):
    """Secrets are given back once, and kept by nobody."""

    def known_by_token(self, secret: str) -> Identity | None:
        """Whose token it is, with the rights in force; None: nobody's, expired, revoked, or its owner disabled."""
        id_ = token_id(secret)
        return None if id_ is None else self.store.accounts.known(id_, digest(secret), now_us=self.clock())

    def known_by_session(self, secret: str, *, used: bool = True) -> Identity | None:
        """Whose session it is, with the rights in force; None: it has ended. ``used``: whether this counts as a use,
        which keeps the session from ending."""
        return self.store.sign_in.known(digest(secret), used=used, now_us=self.clock())

    def login(
        self, name: str, password: str, refusals: RefusalLog, *, visit: ClientInfo, terms: SessionLimits
    ) -> tuple[str, Session]:
        """Open a session by a password; its secret, and what it is.

        Raises BadLogin, which does not tell whether there is such a user, and TooManyAttempts, with the time to wait;
        both go into the audit.
        """
        try:
            hash_, attempt = self._proven(name, password, visit)
            return self._open(name, visit, terms, proof=hash_, attempt=attempt)
        except (BadLogin, TooManyAttempts) as error:
            self._refused(name, visit, error, refusals)
            raise

    def login_known(self, name: str, *, visit: ClientInfo, terms: SessionLimits) -> tuple[str, Session]:
        """Open a session for whom somebody else has verified: an identity provider, a link that was just used.
        Raises BadLogin where there is no such user, or a disabled one."""
        return self._open(name, visit, terms)

    def device(self, session: Session) -> Device | None:
        """Return by what the browser in which this session was opened is known from now on. None: its user has no
        password, or has another by now."""
        found = self.store.accounts.password(session.user)
        password_us = None if found is None else found[0].password_us
        if password_us is None or password_us > session.created_us:
            return None
        return Device(user=session.user, password_us=password_us, number=new_secret())

    def logout(self, secret: str) -> bool:
        """End a session; False: it had ended."""
        found = self.known_by_session(secret)
        actor = self.actor() if found is None else Actor(by=found.name, call=self.actor().call)
        return self.store.sign_in.close(digest(secret), actor, now_us=self.clock())

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

    # --- links ----------------------------------------------------------------------------

    def invite_first(self) -> str | None:
        """A one-time secret with which somebody becomes the first admin within an hour of the first such link; the one
        before is void. None: there are users already. Raises Refused (that hour is over), Forbidden."""
        self.require(Role.ADMIN, "manage users")
        if self.store.accounts.any_user():
            return None
        secret = new_secret()
        self.store.sign_in.invite(
            None, digest(secret), self.actor(), lasts_us=FIRST_ADMIN_US, now_us=self.clock()
        )
        return secret

    def link(self, secret: str) -> Link:
        """What a link is good for. Raises BadLogin when for nothing."""
        found = self.store.sign_in.link(digest(secret), now_us=self.clock())
        if found is None:
            raise BadLogin(
                "the link is no longer good: it works once and for a limited time; ask for a new one"
            )
        return found

    def accept(self, secret: str, name: str | None, password: str) -> User:
        """Use a link: set the password of its user, or make the first admin under this name. Raises BadLogin (no
        longer good), BadName, UsageError (the password)."""
        link = self.link(secret)
        who = user_name(name or "") if link.user is None else link.user
        hash_ = passwords.hashed(require_password(password))
        actor = Actor(by=who, call=self.actor().call)
        return self.store.sign_in.accept(digest(secret), who, hash_, actor, now_us=self.clock())

    def secret(self, name: str) -> bytes:
        """32 random bytes, made once, the same for all servers of this store: to sign with."""
        return self.store.sign_in.secret(name, now_us=self.clock())

    # --- steps ----------------------------------------------------------------------------

    def _proven(self, name: str, password: str, visit: ClientInfo) -> tuple[str, LoginAttempt]:
        """The hash that fits, and the attempt."""
        with passwords.room():
            found = self.store.accounts.password(name)
            device = visit.device if found is not None and _is_of(visit.device, found[0]) else None
            now_us = self.clock()
            limits = login_limits.login_limits(name, visit.address, device, now_us)
            attempt = self.store.sign_in.attempt(limits, now_us=now_us)
            hash_ = None if found is None or found[0].disabled else found[1]
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
        terms: SessionLimits,
        *,
        proof: str | None = None,
        attempt: LoginAttempt | None = None,
    ) -> tuple[str, Session]:
        secret = new_secret()
        opened = self.store.sign_in.open(
            name,
            digest(secret),
            Actor(by=name, call=self.actor().call),
            proof=proof,
            attempt=attempt,
            idle_us=round(terms.idle_s * 1e6),
            lasts_us=round(terms.lifetime_s * 1e6),
            address=visit.address,
            agent=visit.agent,
            now_us=self.clock(),
        )
        return secret, opened

    def _refused(
        self, name: str, visit: ClientInfo, error: BadLogin | TooManyAttempts, refusals: RefusalLog
    ) -> None:
        # People type their passwords where the name goes; what is no user's name is not written anywhere.
        user = name if self.store.accounts.password(name) is not None else None
        why = "too soon" if isinstance(error, TooManyAttempts) else "wrong"
        what = {"user": user, "address": visit.address, "why": why}
        refusals.enter(self.store.audit, NOBODY, "login refused", what, now_us=self.clock())


def _is_of(device: Device | None, user: User) -> bool:
    """Whether this user has signed in with this browser by the password that is still good."""
    return device is not None and (device.user, device.password_us) == (user.name, user.password_us)
