"""Connections that protect private networks: each is made to the very address that was checked.

The host name is resolved once, so that a name server cannot answer a second query with another address (DNS
rebinding). Reads wait in slices, because a blocking read cannot be aborted from another thread. Whoever sends requests
to URLs of users derives a ``SafeBackend`` that says when a step must end: see ``safe_transport``, and the downloads of
``spinney.apps.ingest.fetching``."""

import socket
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore

from spinney.host.resolver import Resolve, resolve
from spinney.model.values.networks import bracketed, is_exempt, is_public
from spinney.reports.printable import printable

SLICE_S = 0.25
"""How soon a thread that waits for bytes notices that its request was aborted."""
_HOST_MAX = 200


class ForbiddenAddress(ValueError):
    """A host leads to an address that is not on the public Internet; name another, or have the host allowed."""

    def __init__(self, host: str, address: str) -> None:
        super().__init__(
            f"{shown(bracketed(host))} leads to {shown(address)}, which is not on the public Internet"
        )


class SafeBackend(httpcore.NetworkBackend):
    """Connects to public addresses, to ``hosts`` (``host`` or ``host:port``, as in a URL), or, when ``private``, to
    any. Give it to an ``httpcore.ConnectionPool``."""

    def __init__(
        self, *, hosts: frozenset[str] = frozenset(), private: bool = False, resolve: Resolve = resolve
    ) -> None:
        self._hosts = frozenset(host.strip().lower() for host in hosts)
        self._private, self._resolve = private, resolve
        self._inner = httpcore.SyncBackend()

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, all of which may be reached. Raises ForbiddenAddress, ValueError (no name of
        a host), socket.gaierror."""
        try:
            addresses = self._resolve(host, port)
        except UnicodeError:
            raise ValueError(f"{shown(host)} is no name of a host; correct the URL") from None
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        if self._private or is_exempt(host, port, self._hosts):
            return addresses
        # One address that is not public refuses all: which one is used would be up to the name server.
        for address in addresses:
            if not is_public(address):
                raise ForbiddenAddress(host, address)
        return addresses

    def remaining_s(self, timeout: float | None) -> float | None:
        """Return how long a step with this timeout may take. A derived class may return less, or raise to abort."""
        return timeout

    def wrapped(self, stream: httpcore.NetworkStream) -> httpcore.NetworkStream:
        """Return the stream by which a connection is used."""
        return SafeStream(stream, self)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers. Raises what ``addresses`` and httpcore raise."""
        options, failure = list(socket_options or ()), Exception()
        for address in self.addresses(host, port):
            remaining_s = self.remaining_s(timeout)
            try:
                stream = self._inner.connect_tcp(address, port, remaining_s, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return self.wrapped(stream)
        raise failure


class SafeStream(httpcore.NetworkStream):
    """A connection each of whose steps is limited by its backend."""

    def __init__(self, inner: httpcore.NetworkStream, backend: SafeBackend) -> None:
        self._inner, self._backend = inner, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        waited_s = 0.0
        while True:
            remaining_s = self._backend.remaining_s(None if timeout is None else timeout - waited_s)
            slice_s = SLICE_S if remaining_s is None else max(0.001, min(SLICE_S, remaining_s))
            try:
                return self._inner.read(max_bytes, slice_s)
            except httpcore.ReadTimeout:
                waited_s += SLICE_S
                if timeout is not None and waited_s >= timeout:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._backend.remaining_s(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._backend.remaining_s(timeout))
        return self._backend.wrapped(inner)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def shown(host: str) -> str:
    """Return a host or an address, as a URL or a name server gave it, made safe to show."""
    return printable(host, _HOST_MAX)
