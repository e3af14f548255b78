"""Signing in and out, for all pages that do it: each way checks the caller, writes the audit and opens a session."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request

from spinney.model.access import Rights
from spinney.model.errors import BadLogin, BadName, Forbidden, TooManyAttempts
from spinney.model.rights.accounts import Device, Link, Session, user_name
from spinney.model.rights.actor import Actor
from spinney.service.refusal_log import RefusalLog
from spinney.service.sign_in import ClientInfo, SignIn
from spinney.web.identity import forms
from spinney.web.identity.authenticator import StoreAuthenticator
from spinney.web.identity.oidc import OidcUser, PendingAuthorization, Provider, provider
from spinney.web.problems import TooMany
from spinney.web.refusal_log import audit_denied_access
from spinney.web.request_context import RequestContext
from spinney.web.settings import Oidc, ServerSettings
from spinney.web.telemetry.counters import ServerCounters

AT_ONCE = 2
"""How many passwords are verified at the same time: each takes 50 ms of a processor and 64 MiB."""
QUEUED_MAX = 40
"""How many logins may wait or be checked at once; more are refused with the time to try again."""
AGENT_MAX = 200
"""How many characters of User-Agent are kept with a session."""
NAME_MAX = 200
"""A longer name is that of no user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A user who has signed in."""

    name: str
    secret: str
    """The secret of the session, for the cookie."""
    device: Device | None = None
    """The device as which this browser is recognized from now on; None: the user has no password."""


class SignInFlow:
    """The ways to sign in to one server: password, link, identity provider; and signing out."""

    def __init__(
        self,
        identity: StoreAuthenticator,
        settings: ServerSettings,
        refusals: RefusalLog,
        counters: ServerCounters,
    ) -> None:
        self._identity, self._settings, self._refusals = identity, settings, refusals
        self._counters = counters
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._queued = 0
        self._provider: Provider | None = None

    # --- forms of who is not known yet ----------------------------------------------------

    async def require_ours(self, request: Request, proof: str) -> None:
        """Raise Forbidden unless a page of this server made the request; the refusal is entered into the audit."""
        async with self._audited(request, Forbidden):
            await forms.require_ours(request, proof, self._settings)

    # --- passwords ------------------------------------------------------------------------

    async def sign_in(self, request: Request, name: str, password: str) -> SignedIn:
        """Check a name and a password, and open a session. Raises BadLogin, TooManyAttempts (this name or address has
        to wait), TooMany (too many sign in at this moment)."""
        # No user has the empty name; its check takes as long as that of a wrong password.
        checked_name = name if name.isprintable() and len(name) <= NAME_MAX else ""
        cookies = await self._identity.cookies()
        visit = replace(self._visit(request), device=cookies.device(request.cookies, checked_name))

        def done(sign_in: SignIn) -> SignedIn:
            return _entered(sign_in, sign_in.login(checked_name, password, self._refusals, visit=visit))

        with self._counters.sign_in("password"):
            async with self._password_slot():
                return await self._identity.sign_in(done)

    async def sign_out(self, secret: str) -> None:
        """End the session with this secret. A session that has ended already is no error."""
        await self._identity.sign_in(lambda sign_in: sign_in.logout(secret))
        self._identity.forget()

    async def end_other_sessions(self, request: Request, name: str) -> SignedIn:
        """End all sessions of this user, and open a new one for this browser."""
        visit = self._visit(request)

        def done(sign_in: SignIn) -> SignedIn:
            sign_in.store.sign_in.end(name, replace(sign_in, by=name).actor(), now_us=sign_in.clock())
            return _enter(sign_in, name, visit)

        try:
            return await self._identity.sign_in(done)
        finally:
            self._identity.forget()

    async def change_password(
        self, request: Request, context: RequestContext, before: str, after: str
    ) -> SignedIn:
        """Change the caller's own password, which ends all sessions, and open a new one for this browser. Raises
        BadLogin, TooManyAttempts (both are entered into the audit), UsageError, TooMany."""
        visit, name = self._visit(request), context.principal.name
        async with self._audited(request, BadLogin, TooManyAttempts, by=name), self._password_slot():
            await context.run(lambda control: control.part(SignIn).change_password(before, after))
        self._identity.forget()
        return await self._identity.sign_in(lambda sign_in: _enter(sign_in, name, visit))

    # --- links ----------------------------------------------------------------------------

    async def link(self, request: Request, secret: str) -> Link:
        """Return what a one-time link is for. Raises BadLogin (entered into the audit) when it is void."""
        async with self._audited(request, BadLogin):
            return await self._identity.sign_in(lambda sign_in: sign_in.link(secret))

    async def accept(self, request: Request, secret: str, name: str | None, password: str) -> SignedIn:
        """Use up a one-time link: set the password of its user, or make the first admin under ``name``, and open a
        session. Raises BadLogin, BadName, UsageError, TooMany."""
        visit = self._visit(request)

        def done(sign_in: SignIn) -> SignedIn:
            return _enter(sign_in, sign_in.accept(secret, name, password).name, visit)

        with self._counters.sign_in("link"):
            await self.link(request, secret)  # a caller without a valid link makes the server hash nothing
            async with self._password_slot():
                try:
                    return await self._identity.sign_in(done)
                finally:
                    self._identity.forget()

    # --- an identity provider -------------------------------------------------------------

    async def begin_oidc(self, redirect_uri: str) -> tuple[str, PendingAuthorization]:
        """Return the address of the provider to which the browser is sent, and what must come back with it. Raises
        BadLogin where no provider is configured, ProviderAway."""
        return await self._by_provider().begin_oidc(redirect_uri)

    async def complete_oidc(
        self, request: Request, query: Mapping[str, str], away: PendingAuthorization
    ) -> SignedIn:
        """Open a session for the user whom the provider names. A user whom only the provider has made gets the role of
        the groups anew. Raises BadLogin, Forbidden (both are entered into the audit), ProviderAway."""
        visit, oidc = self._visit(request), self._oidc()

        def done(sign_in: SignIn) -> SignedIn:
            _settle(sign_in, oidc, person)
            return _enter(sign_in, person.name, visit)

        async with self._audited(request, BadLogin, Forbidden, by_provider=oidc.issuer):
            with self._counters.sign_in("provider"):
                person = await self._by_provider().complete_oidc(query, away)
                entered = await self._identity.sign_in(done)
        self._identity.forget()
        return entered

    def _by_provider(self) -> Provider:
        if self._provider is None:
            self._provider = provider(self._oidc(), os.environ)
        return self._provider

    def _oidc(self) -> Oidc:
        if self._settings.oidc is None:
            raise BadLogin("no identity provider is set up here; sign in with a password")
        return self._settings.oidc

    # --- shared steps ---------------------------------------------------------------------

    def _visit(self, request: Request) -> ClientInfo:
        """Return from where the request comes, for the session and the audit: address and browser."""
        agent = request.headers.get("user-agent", "")
        plain = "".join(c for c in agent if c.isprintable())[:AGENT_MAX]
        return ClientInfo(address=self._identity.address(request), agent=plain or None)

    @asynccontextmanager
    async def _audited(
        self, request: Request, *refusals: type[Exception], **details: Any
    ) -> AsyncIterator[None]:
        """Enter errors of these classes that the block raises into the audit, with these details."""
        try:
            yield
        except refusals as error:
            address = self._identity.address(request)
            await audit_denied_access(request, str(error), address=address, **details)
            raise

    @asynccontextmanager
    async def _password_slot(self) -> AsyncIterator[None]:
        """Wait for one of the few places in which passwords are verified. Raises TooMany when too many wait."""
        if self._queued >= QUEUED_MAX:
            raise TooMany("too many users sign in at this moment; try again in a few seconds", 5)
        self._queued += 1
        try:
            async with self._turn:
                yield
        finally:
            self._queued -= 1


def _enter(sign_in: SignIn, name: str, visit: ClientInfo) -> SignedIn:
    """Open a session for a user who is known by other means than a password."""
    return _entered(sign_in, sign_in.login_known(name, visit=visit))


def _entered(sign_in: SignIn, opened: tuple[str, Session]) -> SignedIn:
    secret, session = opened
    return SignedIn(name=session.user, secret=secret, device=sign_in.device(session))


def _settle(sign_in: SignIn, oidc: Oidc, person: OidcUser) -> None:
    """Create or update the user who belongs to a person. A user whom an admin has made keeps the rights of the store;
    one who came by the provider gets the role of the groups, each time anew, within limits that an admin may have set.
    Raises Forbidden for a person who may not come in."""
    try:
        name = user_name(person.name)
    except BadName:
        raise Forbidden(
            f"the provider names {person.name[:60]!r}, which cannot be a user here; have name_claim of [server.oidc] "
            f"name another claim"
        ) from None
    actor = Actor(by=f"oidc:{oidc.issuer}", call=sign_in.actor().call)
    roles = [oidc.roles[group] for group in person.groups if group in oidc.roles]
    role = max(roles, key=lambda role: role.rank, default=None)
    accounts, now_us = sign_in.store.accounts, sign_in.clock()
    user_and_hash = accounts.password(name)
    if user_and_hash is not None and user_and_hash[0].disabled:
        raise Forbidden(f"{name} is disabled; ask an admin, who can let that user in again")
    if user_and_hash is not None and user_and_hash[0].by != actor.by:
        return
    if role is None:
        if user_and_hash is not None:
            sign_in.store.sign_in.end(name, actor, now_us=now_us)
        raise Forbidden(
            f"{name} is in none of the groups that may sign in here; ask an admin, who can make a user of that name "
            f"or name a group in roles of [server.oidc]"
        )
    if user_and_hash is None:
        accounts.add(name, Rights(role=role), None, actor, now_us=now_us)
    elif user_and_hash[0].rights.role is not role:
        accounts.change(name, replace(user_and_hash[0].rights, role=role), actor, now_us=now_us)
