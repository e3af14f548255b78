"""Who asks, and one call of ``control`` in his name.

A route says what it wants by ``Asked``, and calls nothing but ``hands.run``; so nothing is answered to who is not
known, and nothing done without his rights.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from spinney.control import Control
from spinney.control.refusals import Refusals
from spinney.model.access import Rights
from spinney.model.errors import Forbidden
from spinney.server.problems import Unidentified
from spinney.server.stores import Stores
from spinney.stores.contract import Store
from spinney.waking import wake_all

T = TypeVar("T")

SESSION_COOKIE = "spinney_session"


class How(StrEnum):
    """By what somebody is known."""

    TOKEN = "token"  # noqa: S105 - no secret
    SESSION = "session"
    PEER = "peer"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks."""

    name: str
    rights: Rights
    how: How
    csrf: str | None = None
    """What forms of this session have to bear; None where no browser could be misled."""
    session: str | None = None
    """The number of the session, not its secret."""
    ends_us: int | None = None
    """When the token expires; None: never, or it is none."""


class Identity(Protocol):
    """Tells who asks."""

    async def who(self, request: Request) -> Asker | None:
        """None: nobody is known. Raises Forbidden for who is known and shut out, or for a forged form; TooMany."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The verbs of ``control``, in the name and with the rights of who asks."""

    asker: Asker
    stores: Stores
    run_dir: str | None
    refusals: Refusals = field(default_factory=Refusals)

    async def run(self, call: Callable[[Control], T], *, long: bool = False) -> T:
        """What ``call`` returns; see ``Stores.run``. A refusal for lack of rights is in the audit."""

        def made(store: Store) -> T:
            control = self.control(store)
            try:
                return call(control)
            except Forbidden as error:
                what = {"why": str(error)}
                self.refusals.enter(store.audit, self.asker.name, "refused", what, now_us=now_us())
                raise

        return await self.stores.run(made, long=long)

    def control(self, store: Store) -> Control:
        """For a thread that has a store."""
        return Control(
            store=store,
            clock=now_us,
            nudge=lambda: wake_all(store, self.run_dir),
            by=self.asker.name,
            rights=self.asker.rights,
            ends_us=self.asker.ends_us,
        )


def now_us() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


_BEARER = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token: `spinney token make NAME` prints one."
)
_COOKIE = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session", description="Of the pages.")


async def perhaps(request: Request) -> Hands | None:
    """The hands of who asks, if he is known. Looked for once in a request."""
    state = request.app.state
    if not hasattr(request.state, "asker"):
        request.state.asker = await state.identity.who(request)
    asker = request.state.asker
    if asker is None:
        return None
    return Hands(asker=asker, stores=state.stores, run_dir=state.run_dir, refusals=state.refusals)


async def asked(
    hands: Annotated[Hands | None, Depends(perhaps)],
    _token: Annotated[object, Security(_BEARER)] = None,
    _session: Annotated[object, Security(_COOKIE)] = None,
) -> Hands:
    """The same; refuses who is not known."""
    if hands is None:
        raise Unidentified
    return hands


Asked = Annotated[Hands, Depends(asked)]
PerhapsAsked = Annotated[Hands | None, Depends(perhaps)]
