"""Limits on long requests that are open at the same time: in all, by one user, and from one address.

A user is counted with all sessions and tokens, so that nobody gets more by making tokens. An address is one
of IPv4, or a network of IPv6 with 64 bits. Behind a trusted proxy it is the one that the proxy forwards; what
comes over the Unix socket, or from a proxy that forwards none, has no address here.

Counts are those of one server: several servers of a store each allow as many. They are kept in the event loop
and need no lock."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from fastapi import Request
from starlette.requests import HTTPConnection

from spinney.model.values.networks import block
from spinney.web.identity import proxies
from spinney.web.problems import TooMany
from spinney.web.request_context import RequestContext
from spinney.web.settings import ServerSettings

QUOTA_STACK = "spinney.held"
"""The key in a request's scope of the ExitStack with its places, which ``request_guard`` closes with the request."""
AGAIN_S = 10.0
"""How many seconds a refused client is told to wait."""


class Quota:
    """The limits of one kind of requests, and how many are open."""

    def __init__(self, noun: str, *, most: int, per_user: int, per_address: int) -> None:
        """``noun``: the kind in messages, as ``event streams``."""
        self._noun, self._most, self._per_user, self._per_address = noun, most, per_user, per_address
        self._users: Counter[str] = Counter()
        self._addresses: Counter[str] = Counter()
        self.open = 0

    @contextmanager
    def place(self, user: str | None, address: str | None) -> Iterator[None]:
        """Occupy a place within ``with``. Raises TooMany, and then nothing is counted. ``user`` None: not
        authenticated; ``address`` None: not limited."""
        self._require_room(user, address)
        self.open += 1
        both = ((self._users, user), (self._addresses, address))
        counts = [(counter, key) for counter, key in both if key is not None]
        for counter, key in counts:
            counter[key] += 1
        try:
            yield
        finally:
            self.open -= 1
            for counter, key in counts:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]

    def _require_room(self, user: str | None, address: str | None) -> None:
        """Raise TooMany when the user, the address or the server has as many open as they may."""
        noun = self._noun
        if user is not None and self._users[user] >= self._per_user:
            raise TooMany(
                f"{user} has {self._per_user:,} {noun} open, which is the maximum; close some first", AGAIN_S
            )
        if address is not None and self._addresses[address] >= self._per_address:
            raise TooMany(
                f"{self._per_address:,} {noun} are open from {address}, which is the maximum; close some first",
                AGAIN_S,
            )
        if self.open >= self._most:
            raise TooMany(
                f"{self._most:,} {noun} are open, which is the maximum of this server; try again later",
                AGAIN_S,
            )


class Quotas:
    """The quotas of long requests to one server, one for each kind."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.streams = self._quota("event streams", "streams")
        self.followers = self._quota("followed outputs", "followers")
        self.downloads = self._quota("long downloads", "downloads")
        self.uploads = self._quota("long uploads", "uploads")

    def _quota(self, noun: str, kind: str) -> Quota:
        """Return the quota of one kind of requests. ``kind``: the word with which the names of its settings begin."""
        return Quota(
            noun,
            most=getattr(self._settings, f"{kind}_max"),
            per_user=getattr(self._settings, f"{kind}_per_user"),
            per_address=getattr(self._settings, f"{kind}_per_address"),
        )

    def address(self, request: HTTPConnection) -> str | None:
        """Return the client address that a request counts for; None: the limits per address do not apply."""
        address = proxies.address(request, self._settings)
        return None if address is None or self._settings.trusts(address) else block(address)


def quota_stack(request: Request) -> ExitStack:
    """Return the stack that is closed when the request has been answered or was aborted."""
    stack: ExitStack = request.scope[QUOTA_STACK]
    return stack


def acquire_quota(request: Request, context: RequestContext, quota: Quota) -> None:
    """Occupy a place until the request has been answered or was aborted. Raises TooMany."""
    address = request.app.state.quotas.address(request)
    quota_stack(request).enter_context(quota.place(context.principal.name, address))
