"""A transport that protects private networks: it connects to the very address that it has checked.

The host name is resolved once, so that a name server cannot answer a second query with another address (DNS
rebinding). And the whole request has a time limit, so that a receiver cannot delay it by sending a byte at a time.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import httpcore
import httpx

from spinney.model.values.networks import bracketed, is_exempt, is_public
from spinney.reports.printable import printable

TOTAL_TIMEOUT_S = 30.0
"""The time limit of one whole request, however slowly its bytes come."""
SLICE_S = 0.25
"""How soon a thread that waits for bytes notices that the request was aborted."""
_HOST_MAX = 200

Resolve = Callable[[str, int], Sequence[str]]


def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host by the system's resolver. Raises socket.gaierror."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


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
        resolve: Resolve = resolved,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``advice``: how to allow a refused address, as the end of a sentence. ``halt``: aborts the request
        (SendAborted)."""
        guard = _Guard(
            hosts, private, advice, _Deadline(total_timeout_s, clock, halt or threading.Event()), resolve
        )
        self._pool = httpcore.ConnectionPool(network_backend=guard)

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


class _Deadline:
    """The time limit of the whole request, which begins with the first connection."""

    def __init__(self, total_timeout_s: float, clock: Callable[[], float], halt: threading.Event) -> None:
        self._total_timeout_s, self._clock, self._halt = total_timeout_s, clock, halt
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


class _Guard(httpcore.NetworkBackend):
    def __init__(
        self, hosts: frozenset[str], private: bool, advice: str, deadline: _Deadline, resolve: Resolve
    ) -> None:
        self._hosts = frozenset(host.strip().lower() for host in hosts)
        self._private, self._advice, self._deadline, self._resolve = private, advice, deadline, resolve
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        options = list(socket_options or ())
        failure: Exception = httpcore.ConnectError(f"{_shown(host)} has no address")
        for address in self._admitted(host, port):
            patience = self._deadline.remaining_s(timeout)
            try:
                stream = self._inner.connect_tcp(address, port, patience, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return _Stream(stream, self._deadline)
        raise failure

    def _admitted(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = self._resolve(host, port)
        except socket.gaierror as error:
            raise httpcore.ConnectError(
                f"the name {_shown(host)} is not resolved ({error.strerror})"
            ) from None
        except UnicodeError:
            raise ValueError(f"{_shown(host)} is no name of a host; mend the URL") from None
        if self._private or is_exempt(host, port, self._hosts):
            return addresses
        # One address that is not public refuses all: which is taken would be up to the name server.
        for address in addresses:
            if not is_public(address):
                raise ValueError(
                    f"{_shown(bracketed(host))} leads to {_shown(address)}, which is not on the public Internet; "
                    f"{self._advice}"
                )
        return addresses


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # In slices: a blocking read cannot be aborted from another thread.
        waited_s = 0.0
        while True:
            remaining_s = self._deadline.remaining_s(None if timeout is None else timeout - waited_s)
            try:
                return self._inner.read(max_bytes, max(0.001, min(SLICE_S, remaining_s)))
            except httpcore.ReadTimeout:
                waited_s += SLICE_S
                if timeout is not None and waited_s >= timeout:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.remaining_s(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.remaining_s(timeout))
        return _Stream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _shown(text: str) -> str:
    return printable(text, _HOST_MAX)
