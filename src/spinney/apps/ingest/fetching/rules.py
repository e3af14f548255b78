"""The rules of fetching, the files to fetch, the results and the errors."""

import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from spinney.apps.ingest.files.digests import Digest
from spinney.jobs import Backoff

BACKOFF = Backoff(base_s=1.0, factor=2.0, cap_s=60.0, jitter=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which hosts may be reached, and the limits of time and size."""

    hosts: frozenset[str] = frozenset()
    """``host`` or ``host:port`` (as in a URL: ``[::1]:8080``) that may be reached although its address is
    loopback, link-local or private. With a port: that port only."""
    file_roots: tuple[Path, ...] = ()
    """The folders below which ``file:`` URLs are allowed."""
    redirects: int = 5
    connect_s: float = 10.0
    read_s: float = 60.0
    """How long to wait for bytes of a server."""
    floor_bytes_s: float = 1000.0
    floor_window_s: float = 60.0
    """A server that sends less than the minimum over this time of waiting is given up."""
    backoff: Backoff = BACKOFF
    """The delays between the tries of one file."""
    retry_after_max_s: float = 120.0
    """A longer ``Retry-After`` is cut to this."""
    largest_bytes: int | None = None
    """A larger file is refused, so that an endless one cannot fill the disk."""
    if_larger: str = "split it, or have downloads.largest_bytes raised"
    """The advice in the error for a larger file."""
    mark_bytes: int = 16 << 20
    """A process that dies loses at most so many bytes, or those of `mark_s`."""
    mark_s: float = 5.0
    avoided: frozenset[str] = frozenset()
    """Hosts as in ``hosts_of`` that get no requests, as if they did not answer: other jobs try them."""
    authorities: Path | None = None
    """A PEM file of certificate authorities to trust in addition to the system's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(h.strip().lower() for h in self.hosts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The size of a payload according to its server.

    ``size_bytes`` is None when the server does not give it (it refuses HEAD, or sends no length), or when
    the request failed; in the second case ``problem`` says why, in one sentence.
    """

    url: str = field(repr=False)
    size_bytes: int | None = None
    problem: str | None = None

    @property
    def unknown(self) -> bool:
        """Whether the payload seems to exist, but its size is unknown."""
        return self.size_bytes is None and self.problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file to fetch. The URL is kept out of the repr, since its query may be a signature."""

    url: str = field(repr=False)
    name: str
    """The relative path below the folder."""
    digest: Digest | None = None
    size_bytes: int | None = None
    tried: int = 0
    """How often earlier calls have tried it, which counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file that was fetched, whole and durable."""

    name: str
    size_bytes: int
    sums: Mapping[str, str]
    """The digests of the received bytes, algorithm to lowercase hexadecimal."""
    modified: datetime | None
    """When it was changed according to the server (or the file system); UTC."""


class FetchFailed(Exception):
    """A file could not be fetched.

    ``url`` has neither credentials nor a query. ``retryable``: a later attempt may succeed. ``tried``: how often the
    file was tried, earlier calls included. ``host``: the server that did not answer, if that is the reason; trying it
    again at once would be to wait as long in vain.
    """

    def __init__(
        self, url: str, reason: str, retryable: bool, *, name: str, tried: int = 0, host: str | None = None
    ) -> None:
        super().__init__(f"'{name}' could not be fetched from {url}: {reason}")
        self.url = url
        self.reason = reason
        self.retryable = retryable
        self.name = name
        self.tried = tried
        self.host = host

    @property
    def unresponsive(self) -> bool:
        return self.host is not None


class Stopped(Exception):
    """Fetching was stopped; the received bytes are kept, so that another call continues with them."""


def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host by the system's resolver. Raises socket.gaierror."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Replaceable parts of the environment, so that tests can control them: random numbers, pauses, clock, resolver."""

    draw: Callable[[], float] = random.random
    """Returns a number in 0..1 for the jitter of a delay."""
    pause: Callable[[threading.Event, float], object] = threading.Event.wait
    """Waits for so many seconds, or until the event (abort) is set."""
    now: Callable[[], float] = time.monotonic
    resolve: Callable[[str, int], Sequence[str]] = resolved
