"""Who asks, and one call of ``control`` in his name.

A route says what it wants by ``Authenticated``, and calls nothing but ``context.run``; so nothing is answered to who
is not known, and nothing done without his rights.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from spinney.control import Control
from spinney.folders import folders
from spinney.model.access import Rights
from spinney.model.errors import Forbidden, NoSuch, NoSuchJob, NotVisible
from spinney.service.refusal_log import RefusalLog
from spinney.store.contract import Store
from spinney.wakeup import wake_all
from spinney.web.principal_refresh import PrincipalRefresh
from spinney.web.problems import Unidentified
from spinney.web.store_pool import StorePool

T = TypeVar("T")

SESSION_COOKIE = "spinney_session"
REFRESH_S = 0.75
"""How often a request that lasts looks anew at who makes it. The answer may be ``timed_cache.KEPT_S`` old, and
whoever follows a file looks only every ``files.output_stream.LOOK_S``: together these are the two seconds within
which a change of rights is promised to be obeyed."""
LOOKS = 16
"""So many requests that last look anew at the same time: else many streams, woken by one event, would take all the room
that ``StorePool`` has for calls."""


class AuthMethod(StrEnum):
    """By what somebody is known."""

    TOKEN = "token"  # noqa: S105 - no secret
    SESSION = "session"
    PEER = "peer"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks."""

    name: str
    rights: Rights
    how: AuthMethod
    csrf: str | None = None
    """What forms of this session have to bear; None where no browser could be misled."""
    session: str | None = None
    """The number of the session, not its secret."""
    ends_us: int | None = None
    """When the token expires; None: never, or it is none."""
    by_configuration: bool = False
    """Whether the configuration says what this one may (``peers``, ``trusted_role``), and no account."""


class Authenticator(Protocol):
    """Tells who asks."""

    async def authenticate(self, request: Request) -> Principal | None:
        """None: nobody is known. Raises Forbidden for who is known and shut out, or for a forged form; TooMany."""

    async def reauthenticate(self, request: Request) -> Principal | None:
        """The same for a request that was let in and lasts. It asks for no proof of a form, and does not count as a use
        of a session. Raises as ``authenticate``, and StoreUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The verbs of ``control``, in the name and with the rights of who asks."""

    principal: Principal
    stores: StorePool
    run_dir: str | None
    folders: Path | None = None
    """Of the jobs; without it nodes remove those of deleted ones."""
    refusals: RefusalLog = field(default_factory=RefusalLog)
    principal_refresh: PrincipalRefresh[Principal] | None = None
    """Looks anew at who asks while the request lasts; None: it is no request that could last."""

    @property
    def lasting(self) -> PrincipalRefresh[Principal]:
        """What looks anew at who asks, for an answer that lasts."""
        if self.principal_refresh is None:
            raise ValueError("hands that no request has cannot answer for long")
        return self.principal_refresh

    async def run(self, call: Callable[[Control], T], *, long: bool = False) -> T:
        """What ``call`` returns; see ``StorePool.run``. A refusal for lack of rights is in the audit, and so is what is
        not there for who is limited: whether it is there for others, neither the answer nor its time tells.

        The call has the rights in force when it begins. One that is ``long`` is stopped between two steps when they
        change meanwhile. Raises Unidentified and Forbidden where a principal lost its rights while the request lasted.
        """
        context = (
            self
            if self.principal_refresh is None
            else replace(self, principal=await self.principal_refresh.principal())
        )
        if self.principal_refresh is None or not long:
            return await context._run(call, long=long)
        stopped: list[Forbidden] = []

        def go_on() -> None:
            if stopped:
                raise stopped[0]

        watch = asyncio.create_task(self.principal_refresh.watch(stopped.append))
        try:
            return await context._run(call, long=True, go_on=go_on)
        finally:
            watch.cancel()

    async def _run(
        self, call: Callable[[Control], T], *, long: bool, go_on: Callable[[], None] = lambda: None
    ) -> T:
        def made(store: Store) -> T:
            control = replace(self.control(store), go_on=go_on)
            try:
                return call(control)
            except Forbidden as error:
                self.refused(store, str(error))
                raise
            except (NoSuch, NoSuchJob) as error:
                if isinstance(error, NotVisible) or not self.principal.rights.everywhere:
                    self.refused(store, str(error))
                raise

        return await self.stores.run(made, long=long)

    def refused(self, store: Store, why: str) -> None:
        """Enter into the audit what was refused to who asks."""
        self.refusals.enter(store.audit, self.principal.name, "refused", {"why": why}, now_us=now_us())

    def control(self, store: Store) -> Control:
        """For a thread that has a store."""
        return Control(
            store=store,
            clock=now_us,
            wake_nodes=lambda: wake_all(store, self.run_dir),
            by=self.principal.name,
            rights=self.principal.rights,
            ends_us=self.principal.ends_us,
            by_configuration=self.principal.by_configuration,
            log_refusal=lambda why: self.refused(store, why),
            recent_stats=self.stores.stats_cache.stats,
            remove_folder=None if self.folders is None else partial(folders.remove, self.folders),
        )


def now_us() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


_BEARER = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token: `spinney token make NAME` prints one."
)
_COOKIE = APIKeyCookie(
    name=SESSION_COOKIE, auto_error=False, scheme_name="session", description="Of the pages."
)


async def optional_context(request: Request) -> RequestContext | None:
    """The hands of who asks, if he is known. Looked for once in a request, and again while the request lasts."""
    state = request.app.state
    if not hasattr(request.state, "principal"):
        looked_s = time.monotonic()
        principal = request.state.principal = await state.identity.authenticate(request)
        if principal is not None:

            async def look() -> Principal | None:
                async with state.looks:
                    return await state.identity.reauthenticate(request)  # type: ignore[no-any-return]

            request.state.principal_refresh = PrincipalRefresh(
                principal, look, every_s=state.refresh_s, looked_s=looked_s
            )
    if request.state.principal is None:
        return None
    principal_refresh: PrincipalRefresh[Principal] = request.state.principal_refresh
    return RequestContext(
        principal=await principal_refresh.principal(),
        stores=state.stores,
        run_dir=state.run_dir,
        folders=state.folders,
        refusals=state.refusals,
        principal_refresh=principal_refresh,
    )


async def require_context(
    context: Annotated[RequestContext | None, Depends(optional_context)],
    _token: Annotated[object, Security(_BEARER)] = None,
    _session: Annotated[object, Security(_COOKIE)] = None,
) -> RequestContext:
    """The same; refuses who is not known."""
    if context is None:
        raise Unidentified
    return context


Authenticated = Annotated[RequestContext, Depends(require_context)]
MaybeAuthenticated = Annotated[RequestContext | None, Depends(optional_context)]
