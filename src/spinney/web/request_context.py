"""The caller of a request, and calls of ``control`` in the caller's name.

A route declares a parameter ``context: Authenticated`` and reaches the store only by ``context.run``. So no route
answers a caller who is not authenticated, and none does what the caller's rights do not allow.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from spinney.commands.control import Control
from spinney.folders import folders
from spinney.model.access import Rights
from spinney.model.errors import Forbidden, NoSuch, NoSuchJob, NotVisible
from spinney.model.values.times import now_us as now_us
from spinney.schemas import AuthMethod
from spinney.service.refusal_log import RefusalLog
from spinney.store.parts import Store
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of a request: a user, a machine token, a peer of the Unix socket, or a user that a proxy
    names.

    ``name`` is the one in the audit; ``rights`` are those at the time when the caller was authenticated."""

    name: str
    rights: Rights
    how: AuthMethod
    csrf: str | None = None
    """The token that forms of this session must contain. None: the caller is authenticated by no cookie, so that no
    other site can act in the caller's name."""
    session: str | None = None
    """The number of the session, not its secret."""
    ends_us: int | None = None
    """When the token expires; None: never, or it is none."""
    by_configuration: bool = False
    """Whether the rights come from the configuration (``peers``, ``trusted_role``) and not from an account."""


class Authenticator(Protocol):
    """Authenticates the callers of requests; servers may have another than the store's."""

    async def authenticate(self, request: Request) -> Principal | None:
        """Return the caller; None for a request without credentials. Raises Forbidden for a caller who is known and
        has no access, and for a form without its token; TooMany."""

    async def reauthenticate(self, request: Request) -> Principal | None:
        """Return the caller of a long request again, with the rights in force now. This checks no form, and does not
        count as a use of the session. Raises as ``authenticate``, and StoreUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What a route gets: the caller, and ``run``, which calls ``control`` in the caller's name and with the caller's
    rights."""

    principal: Principal
    stores: StorePool
    """The threads with stores in which calls run."""
    run_dir: str | None
    """The run-time directory, in which nodes of this host listen for wake-ups; None: there is none."""
    folders: Path | None = None
    """The folder root. None: this server reaches no folders, and nodes remove those of deleted jobs."""
    refusals: RefusalLog = field(default_factory=RefusalLog)
    """Records what the caller is refused."""
    principal_refresh: PrincipalRefresh[Principal] | None = None
    """Authenticates the caller again while the request lasts. None outside of requests."""

    @property
    def lasting(self) -> PrincipalRefresh[Principal]:
        """Return ``principal_refresh``, for a response that takes long. Raises ValueError outside of requests."""
        if self.principal_refresh is None:
            raise ValueError("a context outside of a request has no long responses")
        return self.principal_refresh

    async def run(self, call: Callable[[Control], T], *, long: bool = False, disk: bool = False) -> T:
        """Return what ``call`` returns, in a thread that has a store (``StorePool.run``).

        The audit log records refusals for lack of rights, and what a caller with limited rights did not find: neither
        the response nor its time says whether it exists for others.

        The call has the rights that are in force when it begins. ``long``: the call may take more than some 100 ms; it
        is stopped between two steps when the rights change. ``disk``: it also uses the folder root. Raises what
        ``call`` raises, Unidentified and Forbidden for a caller who has lost access since the request began, and
        ServerBusy.
        """
        if self.principal_refresh is None:
            return await self._run(call, long=long, disk=disk)
        context = replace(self, principal=await self.principal_refresh.principal())
        if not long:
            return await context._run(call, disk=disk)
        stopped: list[Forbidden] = []

        def go_on() -> None:
            if stopped:
                raise stopped[0]

        watch = asyncio.create_task(self.principal_refresh.watch(stopped.append))
        try:
            return await context._run(call, long=True, disk=disk, go_on=go_on)
        finally:
            watch.cancel()

    async def _run(
        self,
        call: Callable[[Control], T],
        *,
        long: bool = False,
        disk: bool = False,
        go_on: Callable[[], None] = lambda: None,
    ) -> T:
        """Run ``call`` in a thread with a store. Refusals, and what a caller with limits did not find, are entered into
        the audit. ``go_on`` is called between the steps of a long call."""

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

        return await self.stores.run(made, long=long, disk=disk)

    def refused(self, store: Store, why: str) -> None:
        """Record in the audit log that the caller was refused something. It may wait for the store, and
        belongs into the thread that has it."""
        self.refusals.enter(store.audit, self.principal.name, "refused", {"why": why}, now_us=now_us())

    def control(self, store: Store) -> Control:
        """Return the ``Control`` of the caller, for the thread that this store belongs to."""
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
            folder_root=self.folders,
            remove_folder=None if self.folders is None else partial(folders.remove, self.folders),
        )


_BEARER = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token: `spinney token make NAME` prints one."
)
_COOKIE = APIKeyCookie(
    name=SESSION_COOKIE,
    auto_error=False,
    scheme_name="session",
    description="The session cookie of the web pages.",
)


async def optional_context(request: Request) -> RequestContext | None:
    """Return the context of an authenticated caller, else None; for routes that answer anybody, such as the
    sign-in page. A request is authenticated once, and again every ``refresh_s`` while it lasts. Raises what
    ``Authenticator.authenticate`` raises."""
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
    """Return the context of the caller. Raises Unidentified for a caller who is not authenticated."""
    if context is None:
        raise Unidentified
    return context


Authenticated = Annotated[RequestContext, Depends(require_context)]
"""The parameter of a route that only authenticated callers may use."""
MaybeAuthenticated = Annotated[RequestContext | None, Depends(optional_context)]
"""The parameter of a route that anybody may use, and that shows more to a caller it knows."""
