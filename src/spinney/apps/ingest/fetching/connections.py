"""Sockets under the rules: their address is checked, and they are closed when they are too slow or aborted.

The address is checked at the moment of connecting, and the connection is made to the very address that was
checked, so that a name server cannot answer a second query with another address (DNS rebinding).
"""

import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any

import httpcore

from spinney.apps.ingest.fetching.errors import Halted, TryFailed
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import paths
from spinney.safe_http import bracketed, is_exempt, is_public

HEAD_MAX_BYTES = 256 << 10
"""The maximum size of an answer's head, which also stops a server that sends interim answers without end."""

SLICE_S = 0.25
"""How soon a thread that waits for bytes notices that it was aborted."""


class Guard(httpcore.NetworkBackend):
    """Connects to public addresses, and to hosts that the rules name."""

    def __init__(self, rules: Rules, halt: threading.Event, surroundings: Surroundings) -> None:
        self._rules = rules
        self._halt = halt
        self._surroundings = surroundings
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host. Raises TryFailed when it may not be reached or is unknown, else httpcore's errors."""
        options = list(socket_options or ())
        failure: Exception = TryFailed(f"{paths.shown(host)} has no address; check the host", retryable=False)
        for address in self._admitted_addresses(host, port):
            if self._halt.is_set():
                raise Halted
            try:
                stream = self._inner.connect_tcp(address, port, timeout, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return Stream(stream, self._rules, self._halt, self._surroundings)
        raise failure

    def _admitted_addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = list(self._surroundings.resolve(host, port))
        except socket.gaierror as error:
            passing = error.errno == socket.EAI_AGAIN
            advice = "try again later" if passing else "check the host in the URL"
            raise TryFailed(
                f"the name {paths.shown(host)} is not resolved ({error.strerror}); {advice}",
                retryable=passing,
                unresponsive=passing,
            ) from None
        except UnicodeError:
            raise TryFailed(
                f"{paths.shown(host)} is no name of a host; mend the URL", retryable=False
            ) from None
        if is_exempt(host, port, self._rules.hosts):
            return addresses
        # One address that is not public refuses all: which is taken would be up to the name server.
        for address in addresses:
            if not is_public(address):
                raise TryFailed(
                    f"{paths.shown(host)} leads to {paths.shown(address)}, which is not on the public Internet; "
                    f"have '{paths.shown(bracketed(host))}:{port}' added to the hosts of the profile if it may be "
                    f"reached",
                    retryable=False,
                )
        return addresses


class Stream(httpcore.NetworkStream):
    """A connection that requires a minimum rate of the server, and ends soon when it is aborted."""

    def __init__(
        self, inner: httpcore.NetworkStream, rules: Rules, halt: threading.Event, surroundings: Surroundings
    ) -> None:
        self._inner = inner
        self._rules = rules
        self._halt = halt
        self._surroundings = surroundings
        self._pace = Pace(rules.floor_bytes_s, rules.floor_window_s)
        self._head_bytes: int | None = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        patience = self._rules.read_s if timeout is None else timeout
        began = self._surroundings.now()
        chunk = self._read_within(max_bytes, patience, began)
        if not self._pace.is_kept(self._surroundings.now() - began, len(chunk)):
            raise TryFailed(
                f"the server sent less than {self._rules.floor_bytes_s:.0f} bytes a second over "
                f"{self._rules.floor_window_s:g} seconds; try again when it is less busy",
                retryable=True,
            )
        if self._head_bytes is not None:
            self._head_bytes += len(chunk)
            if self._head_bytes > HEAD_MAX_BYTES:
                raise TryFailed(
                    "the server's answer has no end of headers; ask its operators", retryable=False
                )
        return chunk

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._pace = Pace(self._rules.floor_bytes_s, self._rules.floor_window_s)
        self._head_bytes = 0
        self._inner.write(buffer, timeout)

    def body_begins(self) -> None:
        """Note that the head has been read; from here on the caller counts the bytes."""
        self._head_bytes = None

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, timeout)
        return Stream(inner, self._rules, self._halt, self._surroundings)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _read_within(self, max_bytes: int, patience: float, began: float) -> bytes:
        # In slices: a blocking read cannot be aborted from another thread.
        while True:
            if self._halt.is_set():
                raise Halted
            remaining_s = patience - (self._surroundings.now() - began)
            try:
                return self._inner.read(max_bytes, max(0.001, min(SLICE_S, remaining_s)))
            except httpcore.ReadTimeout:
                if remaining_s <= SLICE_S:
                    raise


class Pace:
    """A minimum of bytes a second, over whole windows of waiting time."""

    def __init__(self, floor_bytes_s: float, window_s: float) -> None:
        self._floor = floor_bytes_s
        self._window_s = window_s
        self._waited_s = 0.0
        self._bytes = 0

    def is_kept(self, waited_s: float, read_bytes: int) -> bool:
        """Count one read; return False when a window ends below the minimum."""
        self._waited_s += waited_s
        self._bytes += read_bytes
        if self._waited_s < self._window_s:
            return True
        fast_enough = self._bytes >= self._floor * self._waited_s
        self._waited_s, self._bytes = 0.0, 0
        return fast_enough
