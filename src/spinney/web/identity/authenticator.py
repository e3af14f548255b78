"""Authenticates the callers of requests by what the store, the configuration and the kernel say
(``request_context.Authenticator``).

It is used in the event loop; each question to the store runs in a thread of the pool, in nobody's name, and its answer
is kept for a second.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request

from spinney.model.access import Rights
from spinney.model.errors import Forbidden
from spinney.model.rights.accounts import Identity, User, digest, token_id
from spinney.schemas import AuthMethod
from spinney.service.refusal_log import NOBODY
from spinney.service.sign_in import SignIn
from spinney.web.identity import forms, peers, proxies
from spinney.web.identity.cookies import Cookies
from spinney.web.problems import Unidentified
from spinney.web.refusal_log import audit_denied_access
from spinney.web.request_context import SESSION_COOKIE, Principal, now_us
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool
from spinney.web.timed_cache import KEPT_S, TimedCache

log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreAuthenticator:
    """The authenticator of a real server. ``spinney.web.identity`` says which credential counts."""

    def __init__(self, stores: StorePool, settings: ServerSettings, *, kept_s: float = KEPT_S) -> None:
        """``kept_s``: how long an answer of the store is kept, in seconds."""
        self._stores, self._settings = stores, settings
        self._identities: TimedCache[Identity | None] = TimedCache(kept_s)
        self._users: TimedCache[User | None] = TimedCache(kept_s)
        self._cookies: Cookies | None = None
        self._once = asyncio.Lock()
        self._warned = False
        """Once is enough: anybody may send that header."""

    async def authenticate(self, request: Request) -> Principal | None:
        """Return the caller; None for a request without credentials. Raises Unidentified for a wrong token, and
        Forbidden for a peer or user without access and for a request of a browser that no page of this server made.
        Both are entered into the audit."""
        refused: Forbidden | None = getattr(request.state, "refused", None)
        if refused is not None:
            raise refused  # asked a second time, to make a page of the refusal
        try:
            principal = await self._principal(request)
            if principal is not None and principal.csrf is not None and request.method not in forms.SAFE:
                await forms.require_ours(request, principal.csrf, self._settings)
        except Forbidden as error:
            peer = peers.uid(request.client.host if request.client else None)
            by = NOBODY if peer is None else peers.name(peer)
            request.state.refused = error
            await audit_denied_access(request, str(error), by=by, address=self.address(request))
            raise
        return principal

    async def reauthenticate(self, request: Request) -> Principal | None:
        """Return the caller of a long request again, without counting a use of the session. Raises Unidentified,
        Forbidden."""
        return await self._principal(request, used=False)

    def forget(self) -> None:
        """Drop the cached tokens, sessions and users, because this server has just changed some of them."""
        self._identities.forget()
        self._users.forget()

    def address(self, request: Request) -> str | None:
        """Return the IP address of the caller; None over the Unix socket. Logs once when an X-Forwarded-For is
        ignored."""
        if not self._warned and proxies.ignored(request, self._settings):
            self._warned = True
            assert request.client is not None
            log.warning(
                "a request from %s has X-Forwarded-For, which is ignored because trusted_proxies of [server] does "
                "not name that address; if it is that of your reverse proxy, name it, else all its visitors count as "
                "one address when they sign in",
                request.client.host,
            )
        return proxies.address(request, self._settings)

    async def cookies(self) -> Cookies:
        """Return the cookies of this server, signed with the key that all servers of the store share. The key is read
        once."""
        if self._cookies is None:
            async with self._once:
                key = await self.sign_in(lambda sign_in: sign_in.secret("session-key"))
                self._cookies = Cookies(key=key, secure=self._settings.secure)
        return self._cookies

    async def sign_in(self, call: Callable[[SignIn], T]) -> T:
        """Return the result of ``call``, which runs in a thread with a store, in nobody's name, because the caller is
        not known yet."""
        return await self._stores.run(
            lambda store: call(SignIn(store=store, clock=now_us, wake_nodes=lambda: None, by=NOBODY))
        )

    # --- ways to identify a caller, in the order in which they are tried ------------------

    async def _principal(self, request: Request, *, used: bool = True) -> Principal | None:
        """Return the caller by the first credential that the request has; None: it has none. ``used``: see
        ``_by_session``. Raises Unidentified and Forbidden."""
        token = _bearer(request)
        if token is not None:
            return await self._by_token(request, token)
        peer = peers.uid(request.client.host if request.client else None)
        if peer is not None:
            return self._by_peer(request, peer)
        return await self._by_session(request, used=used) or await self._by_proxy(request)

    async def _by_token(self, request: Request, secret: str) -> Principal:
        """Return the caller of a token. Raises Unidentified for one that is not valid, which is entered into the
        audit."""
        identity = None
        if token_id(secret) is not None:
            identity = await self._identities.get(
                digest(secret), lambda: self.sign_in(lambda sign_in: sign_in.known_by_token(secret))
            )
        if identity is None or identity.token is None or not identity.token.good(now_us()):
            await audit_denied_access(
                request, "wrong token", token=token_id(secret), address=self.address(request)
            )
            raise Unidentified(
                "this token is unknown, expired or revoked; make another with 'spinney token make NAME'"
            )
        return Principal(
            name=identity.name,
            rights=identity.rights,
            how=AuthMethod.TOKEN,
            ends_us=identity.token.expires_us,
        )

    def _by_peer(self, request: Request, number: int) -> Principal:
        """Return the caller at the other end of the Unix socket. Raises Forbidden for a user without access,
        and for what a proxy passes on."""
        rights = peers.rights(number, self._settings.peers)
        if proxies.passed_on(request):
            raise Forbidden(
                f"a proxy that runs as {peers.name(number).removeprefix(peers.PREFIX)} passes this on over the Unix "
                f"socket, where all its visitors would be that user; let it come over TCP, and set trusted_proxies"
            )
        return Principal(name=peers.name(number), rights=rights, how=AuthMethod.PEER, by_configuration=True)

    async def _by_session(self, request: Request, *, used: bool) -> Principal | None:
        """Return the user of a session's cookie; None without a cookie, and for a session that has ended:
        then other credentials count. ``used``: whether this counts as a use of the session, which keeps it
        from ending."""
        if not any(name.endswith(SESSION_COOKIE) for name in request.cookies):
            return None
        cookies = await self.cookies()
        secret = cookies.session(request.cookies)
        if secret is None:
            return None
        session_digest = digest(secret)
        identity = await self._identities.get(
            (session_digest, used),
            lambda: self.sign_in(lambda sign_in: sign_in.known_by_session(secret, used=used)),
        )
        if identity is None or identity.session is None:
            return None
        return Principal(
            name=identity.name,
            rights=identity.rights,
            how=AuthMethod.SESSION,
            csrf=cookies.proof("session", session_digest),
            session=identity.session.id,
        )

    async def _by_proxy(self, request: Request) -> Principal | None:
        """Return the user whom a trusted proxy names; None where it names none. Raises Forbidden."""
        name = proxies.user(request, self._settings)
        if name is None:
            return None
        user = await self._users.get(name, lambda: self._user(name))
        rights = self._proxied(name, user)
        return Principal(
            name=name,
            rights=rights,
            how=AuthMethod.PROXY,
            csrf=(await self.cookies()).proof("proxy", name),
            by_configuration=user is None,
        )

    def _proxied(self, name: str, user: User | None) -> Rights:
        """Return the rights of a user whom a proxy names: those of the account, or ``trusted_role``. Raises
        Forbidden."""
        if user is not None and user.disabled:
            raise Forbidden(f"{name} is disabled; ask an admin, who can let that user in again")
        if user is not None:
            return user.rights
        if self._settings.trusted_role is None:
            raise Forbidden(
                f"{name} is no user here; ask an admin, who can make one with 'spinney user add {name} --no-password'"
            )
        return Rights(role=self._settings.trusted_role)

    async def _user(self, name: str) -> User | None:
        """Return the account of this name; None: there is none."""
        user_and_hash = await self._stores.run(lambda store: store.accounts.password(name))
        return None if user_and_hash is None else user_and_hash[0]


def _bearer(request: Request) -> str | None:
    """Return the token of the request; None without one. Other schemes than Bearer are left to a proxy in front."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None
