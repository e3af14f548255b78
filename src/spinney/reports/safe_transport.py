"""A transport of httpx that protects private networks (``safe_addresses``), for the requests of webhooks.

It connects to the very address that was checked: the host name is resolved once, below httpx, while the name
itself stays in the request and in the check of the certificate. The whole request has a time limit, so that a
receiver cannot delay it by sending a byte at a time. An object carries one request, since the limit begins
with its first connection.
"""

import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from spinney.host.resolver import Resolve, resolve
from spinney.reports.http_post import SendAborted
from spinney.reports.safe_addresses import ForbiddenAddress, SafeAddresses, shown

SLICE_S = 0.25
"""How soon a thread that waits for bytes notices that its request was aborted."""
TOTAL_TIMEOUT_S = 30.0
"""The time limit of one whole request, however slowly its bytes come."""


class SafeTransport(httpx.BaseTransport):
    """Carries one request: to public addresses, to ``hosts`` (``host`` or ``host:port``, as in a URL), or,
    when ``private``, to any.

    Raises ValueError for a forbidden address, SendAborted, otherwise the errors of httpx.
    """

    def __init__(
        self,
        *,
        hosts: frozenset[str] = frozenset(),
        private: bool = False,
        advice: str,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
        halt: threading.Event | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        """Prepare for one request.

        ``advice``: how to allow a refused address, as the end of a sentence. ``total_timeout_s``: the limit
        of the whole request, in seconds. ``halt``: when it is set, by another thread, the request is aborted
        (SendAborted).
        """
        addresses = SafeAddresses(hosts=hosts, private=private, resolve=resolve)
        backend = _Backend(addresses, advice, total_timeout_s, halt or threading.Event())
        self._pool = httpcore.ConnectionPool(network_backend=backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, and return its response, whose body is read later within the same time limit. Raises
        ValueError for a forbidden address, SendAborted, and errors of httpx."""
        url = request.url
        core_request = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _errors_of_httpx():
            answer = self._pool.handle_request(core_request)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        """Close the connections. The client calls this when the request is over."""
        self._pool.close()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raise errors of httpcore as those of httpx."""
    try:
        yield
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(str(error) or "it took too long") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise httpx.ReadError(str(error)) from None
    except httpcore.UnsupportedProtocol as error:
        raise httpx.UnsupportedProtocol(str(error)) from None


class _Body(httpx.SyncByteStream):
    """The body of an answer, with errors as httpx raises them."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _errors_of_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Backend(httpcore.NetworkBackend):
    """Connections that share the time limit of one request, which begins with the first of them."""

    def __init__(
        self, addresses: SafeAddresses, advice: str, total_timeout_s: float, halt: threading.Event
    ) -> None:
        self._addresses, self._advice = addresses, advice
        self._total_timeout_s, self._halt = total_timeout_s, halt
        self._ends: float | None = None
        self._inner = httpcore.SyncBackend()

    def remaining_s(self, timeout: float | None) -> float:
        """Return the seconds that a step with this timeout may still take. Raises ReadTimeout when there are none,
        SendAborted."""
        if self._halt.is_set():
            raise SendAborted
        if self._ends is None:
            self._ends = time.monotonic() + self._total_timeout_s
        remaining_s = self._ends - time.monotonic()
        if remaining_s <= 0:
            raise httpcore.ReadTimeout(f"the whole took more than {self._total_timeout_s:g} s")
        return remaining_s if timeout is None else min(timeout, remaining_s)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers. Raises ValueError for a forbidden one."""
        options, failure = list(socket_options or ()), Exception()
        for address in self._admitted_addresses(host, port):
            remaining_s = self.remaining_s(timeout)
            try:
                stream = self._inner.connect_tcp(address, port, remaining_s, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self)
        raise failure

    def _admitted_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host to which the request may connect. Raises ValueError when it may not
        connect to one of them, and ConnectError when the name is not resolved."""
        try:
            return self._addresses.of(host, port)
        except socket.gaierror as error:
            raise httpcore.ConnectError(
                f"the name {shown(host)} is not resolved ({error.strerror})"
            ) from None
        except ForbiddenAddress as error:
            raise ValueError(f"{error}; {self._advice}") from None


class _Stream(httpcore.NetworkStream):
    """A connection each of whose steps is limited by its backend. Reads wait in slices, because a blocking read cannot
    be aborted from another thread."""

    def __init__(self, inner: httpcore.NetworkStream, backend: _Backend) -> None:
        self._inner, self._backend = inner, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes. It waits for a quarter of a second at a time, and looks in between whether
        the request was aborted or its time is over."""
        waited_s = 0.0
        while True:
            remaining_s = self._backend.remaining_s(None if timeout is None else timeout - waited_s)
            try:
                return self._inner.read(max_bytes, max(0.001, min(SLICE_S, remaining_s)))
            except httpcore.ReadTimeout:
                waited_s += SLICE_S
                if timeout is not None and waited_s >= timeout:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, within what is left of the time limit."""
        self._inner.write(buffer, self._backend.remaining_s(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Encrypt the connection, with the certificate checked for ``server_hostname``; its steps stay
        limited."""
        inner = self._inner.start_tls(ssl_context, server_hostname, self._backend.remaining_s(timeout))
        return _Stream(inner, self._backend)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
