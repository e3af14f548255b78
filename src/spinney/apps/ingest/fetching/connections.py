"""Sockets under the rules: checked where they connect, given up when they are too slow or called off.

The address is judged here, at the moment of connecting, and the connection is made to the very address
that was judged. A name server that answers the second question otherwise finds that there is none.
"""

import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any

import httpcore

from spinney.apps.ingest.fetching.errors import Halted, Trouble
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import paths
from spinney.safe_http import bracketed, is_exempt, is_public

HEAD_MAX_BYTES = 256 << 10
"""An answer's head; a server that sends interim answers without end is stopped here."""

SLICE_S = 0.25
"""How soon a thread that waits for bytes learns that it was called off."""


class Guard(httpcore.NetworkBackend):
    """Connects to public addresses, and to hosts that the rules name."""

    def __init__(self, rules: Rules, halt: threading.Event, given: Surroundings) -> None:
        self._rules = rules
        self._halt = halt
        self._given = given
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Raises Trouble when the host may not be reached or is not known; httpcore's errors else."""
        options = list(socket_options or ())
        failure: Exception = Trouble(f"{paths.shown(host)} has no address; check the host", retryable=False)
        for address in self._admitted_addresses(host, port):
            if self._halt.is_set():
                raise Halted
            try:
                stream = self._inner.connect_tcp(address, port, timeout, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return Stream(stream, self._rules, self._halt, self._given)
        raise failure

    def _admitted_addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = list(self._given.resolve(host, port))
        except socket.gaierror as error:
            passing = error.errno == socket.EAI_AGAIN
            advice = "try again later" if passing else "check the host in the URL"
            raise Trouble(
                f"the name {paths.shown(host)} is not resolved ({error.strerror}); {advice}",
                retryable=passing,
                silent=passing,
            ) from None
        except UnicodeError:
            raise Trouble(
                f"{paths.shown(host)} is no name of a host; mend the URL", retryable=False
            ) from None
        if is_exempt(host, port, self._rules.hosts):
            return addresses
        # One address that is not public refuses all: which is taken would be up to the name server.
        for address in addresses:
            if not is_public(address):
                raise Trouble(
                    f"{paths.shown(host)} leads to {paths.shown(address)}, which is not on the public Internet; "
                    f"have '{paths.shown(bracketed(host))}:{port}' added to the hosts of the profile if it may be "
                    f"reached",
                    retryable=False,
                )
        return addresses


class Stream(httpcore.NetworkStream):
    """A connection that keeps the server to a pace, and ends soon when it is called off."""

    def __init__(
        self, inner: httpcore.NetworkStream, rules: Rules, halt: threading.Event, given: Surroundings
    ) -> None:
        self._inner = inner
        self._rules = rules
        self._halt = halt
        self._given = given
        self._pace = Pace(rules.floor_bytes_s, rules.floor_window_s)
        self._head_bytes: int | None = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        patience = self._rules.read_s if timeout is None else timeout
        began = self._given.now()
        chunk = self._read_within(max_bytes, patience, began)
        if not self._pace.kept(self._given.now() - began, len(chunk)):
            raise Trouble(
                f"the server sent less than {self._rules.floor_bytes_s:.0f} bytes a second over "
                f"{self._rules.floor_window_s:g} seconds; try again when it is less busy",
                retryable=True,
            )
        if self._head_bytes is not None:
            self._head_bytes += len(chunk)
            if self._head_bytes > HEAD_MAX_BYTES:
                raise Trouble("the server's answer has no end of headers; ask its operators", retryable=False)
        return chunk

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._pace = Pace(self._rules.floor_bytes_s, self._rules.floor_window_s)
        self._head_bytes = 0
        self._inner.write(buffer, timeout)

    def body_begins(self) -> None:
        """The head has been read; from here on the caller counts."""
        self._head_bytes = None

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, timeout)
        return Stream(inner, self._rules, self._halt, self._given)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _read_within(self, max_bytes: int, patience: float, began: float) -> bytes:
        # In slices: a blocking read cannot be called off from another thread.
        while True:
            if self._halt.is_set():
                raise Halted
            left = patience - (self._given.now() - began)
            try:
                return self._inner.read(max_bytes, max(0.001, min(SLICE_S, left)))
            except httpcore.ReadTimeout:
                if left <= SLICE_S:
                    raise


class Pace:
    """A floor of bytes a second, over whole windows of time spent waiting."""

    def __init__(self, floor_bytes_s: float, window_s: float) -> None:
        self._floor = floor_bytes_s
        self._window_s = window_s
        self._waited_s = 0.0
        self._bytes = 0

    def kept(self, waited_s: float, came_bytes: int) -> bool:
        """Count one read; False when a window ends below the floor."""
        self._waited_s += waited_s
        self._bytes += came_bytes
        if self._waited_s < self._window_s:
            return True
        fast_enough = self._bytes >= self._floor * self._waited_s
        self._waited_s, self._bytes = 0.0, 0
        return fast_enough
