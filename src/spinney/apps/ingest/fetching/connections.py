"""Sockets under the rules: their address is checked, and they are closed when they are too slow or aborted."""

import socket
import threading
from collections.abc import Callable, Sequence

import httpcore

from spinney.apps.ingest.fetching.errors import Halted, TryFailed
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import paths
from spinney.safe_http import ForbiddenAddress, SafeBackend, SafeStream, bracketed

HEAD_MAX_BYTES = 256 << 10
"""The maximum size of an answer's head, which also stops a server that sends interim answers without end."""


class Guard(SafeBackend):
    """Connects to public addresses, and to hosts that the rules name. Raises TryFailed for all others, and Halted after
    ``halt`` was set."""

    def __init__(self, rules: Rules, halt: threading.Event, surroundings: Surroundings) -> None:
        super().__init__(hosts=rules.hosts, resolve=surroundings.resolve)
        self._rules = rules
        self._halt = halt
        self._now = surroundings.now

    def addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            return super().addresses(host, port)
        except socket.gaierror as error:
            passing = error.errno == socket.EAI_AGAIN
            advice = "try again later" if passing else "check the host in the URL"
            raise TryFailed(
                f"the name {paths.shown(host)} is not resolved ({error.strerror}); {advice}",
                retryable=passing,
                unresponsive=passing,
            ) from None
        except ForbiddenAddress as error:
            raise TryFailed(
                f"{error}; have '{paths.shown(bracketed(host))}:{port}' added to the hosts of the profile if it may be "
                f"reached",
                retryable=False,
            ) from None
        except ValueError as error:
            raise TryFailed(str(error), retryable=False) from None

    def remaining_s(self, timeout: float | None) -> float | None:
        if self._halt.is_set():
            raise Halted
        return timeout

    def wrapped(self, stream: httpcore.NetworkStream) -> "Stream":
        return Stream(stream, self, self._rules, self._now)


class Stream(SafeStream):
    """A connection that requires a minimum rate of the server, and ends soon when it is aborted."""

    def __init__(
        self, inner: httpcore.NetworkStream, guard: Guard, rules: Rules, now: Callable[[], float]
    ) -> None:
        super().__init__(inner, guard)
        self._rules = rules
        self._now = now
        self._pace = Pace(rules.floor_bytes_s, rules.floor_window_s)
        self._head_bytes: int | None = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        began = self._now()
        chunk = super().read(max_bytes, self._rules.read_s if timeout is None else timeout)
        if not self._pace.is_kept(self._now() - began, len(chunk)):
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
        super().write(buffer, timeout)

    def body_begins(self) -> None:
        """Note that the head has been read; from here on the caller counts the bytes."""
        self._head_bytes = None


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
