"""A transport of httpx that protects private networks (``safe_connections``), for the requests of webhooks.

The whole request has a time limit, so that a receiver cannot delay it by sending a byte at a time."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import httpcore
import httpx

from spinney.host.resolver import Resolve, resolve
from spinney.reports.safe_connections import ForbiddenAddress, SafeBackend, shown

TOTAL_TIMEOUT_S = 30.0
"""The time limit of one whole request, however slowly its bytes come."""


class SendAborted(Exception):
    """The request was aborted: whether the receiver got it is unknown."""


class SafeTransport(httpx.BaseTransport):
    """Carries one request: to public addresses, to ``hosts`` (``host`` or ``host:port``, as in a URL), or, when
    ``private``, to any. Raises ValueError for a forbidden address, otherwise the errors of httpx."""

    def __init__(
        self,
        *,
        hosts: frozenset[str] = frozenset(),
        private: bool = False,
        advice: str,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
        halt: threading.Event | None = None,
        resolve: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``advice``: how to allow a refused address, as the end of a sentence. ``halt``: aborts the request
        (SendAborted)."""
        self._pool = httpcore.ConnectionPool(
            network_backend=_Backend(
                hosts=hosts,
                private=private,
                resolve=resolve,
                advice=advice,
                total_timeout_s=total_timeout_s,
                halt=halt or threading.Event(),
                clock=clock,
            )
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        core_request = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = self._pool.handle_request(core_request)
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout(str(error) or "it took too long") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error)) from None
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_stream()
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise httpx.ReadError(str(error)) from None

    def close(self) -> None:
        self._answer.close()


class _Backend(SafeBackend):
    """Connections that share the time limit of one request, which begins with the first of them."""

    def __init__(
        self,
        *,
        hosts: frozenset[str],
        private: bool,
        resolve: Resolve,
        advice: str,
        total_timeout_s: float,
        halt: threading.Event,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(hosts=hosts, private=private, resolve=resolve)
        self._advice, self._total_timeout_s, self._halt, self._clock = advice, total_timeout_s, halt, clock
        self._ends: float | None = None

    def remaining_s(self, timeout: float | None) -> float:
        """Return the seconds that a step with this timeout may still take. Raises ReadTimeout when there are none,
        SendAborted."""
        if self._halt.is_set():
            raise SendAborted
        if self._ends is None:
            self._ends = self._clock() + self._total_timeout_s
        remaining_s = self._ends - self._clock()
        if remaining_s <= 0:
            raise httpcore.ReadTimeout(f"the whole took more than {self._total_timeout_s:g} s")
        return remaining_s if timeout is None else min(timeout, remaining_s)

    def addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            return super().addresses(host, port)
        except socket.gaierror as error:
            raise httpcore.ConnectError(
                f"the name {shown(host)} is not resolved ({error.strerror})"
            ) from None
        except ForbiddenAddress as error:
            raise ValueError(f"{error}; {self._advice}") from None
