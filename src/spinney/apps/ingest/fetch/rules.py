"""The parameters, results and errors of fetching files from other servers: limits, files to fetch, fetched files."""

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spinney.files.digests import Digest
from spinney.jobs import Backoff
from spinney.safe_http import Resolve, resolve

BACKOFF = Backoff(base_s=1.0, factor=2.0, cap_s=60.0, jitter=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The hosts that may be reached, and the limits of time and size."""

    hosts: frozenset[str] = frozenset()
    """The hosts, as ``host`` or ``host:port`` (as in a URL: ``[::1]:8080``), that may be reached although their
    addresses are loopback, link-local or private. With a port, only that port may be reached."""
    file_roots: tuple[Path, ...] = ()
    """The folders below which ``file:`` URLs are allowed."""
    redirects: int = 5
    """The maximum number of redirects that are followed for one file."""
    connect_s: float = 10.0
    """The time limit for a connection to a server."""
    read_s: float = 60.0
    """How long a server may send nothing before the connection is given up."""
    floor_bytes_s: float = 1000.0
    """The minimum rate: a connection that is slower over ``floor_window_s`` is given up."""
    floor_window_s: float = 60.0
    """The time over which the rate is measured; only time spent waiting for the server counts."""
    backoff: Backoff = BACKOFF
    """The delays between the attempts to fetch one file."""
    retry_after_max_s: float = 120.0
    """The maximum delay that a server may request with ``Retry-After``; a longer one is shortened to this."""
    largest_bytes: int | None = None
    """The maximum size of a file, so that an endless answer cannot fill the disk; None: no limit."""
    too_large_advice: str = "split it, or have downloads.largest_bytes raised"
    """What the error for a larger file advises to do."""
    mark_bytes: int = 16 << 20
    """Received bytes are made durable, with a mark from which fetching can resume, after every so many bytes."""
    mark_s: float = 5.0
    """The same after this time, if that is earlier. A process that dies loses at most what followed the last mark."""
    skipped_hosts: frozenset[str] = frozenset()
    """Hosts that get no requests, because they did not answer another job lately: their files fail at once, as if the
    hosts had not answered again. Named as ``hosts_of`` names them."""
    authorities: Path | None = None
    """A PEM file of certificate authorities to trust in addition to the system's."""
    resolve: Resolve = resolve
    """Resolves the names of hosts; this and the next two are for tests to replace."""
    draw: Callable[[], float] = random.random
    """Returns a random number from 0 to 1, for the jitter of a delay."""
    pause: Callable[[threading.Event, float], object] = threading.Event.wait
    """Waits for so many seconds, or until the event is set, which aborts fetching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The size of a payload according to its server.

    ``size_bytes`` is None when the server does not give it (it refuses HEAD, or sends no length), or when
    the request failed; in the second case ``problem`` says why, in one sentence.
    """

    url: str = field(repr=False)
    size_bytes: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file to fetch. The URL is kept out of the repr, since its query may be a signature."""

    url: str = field(repr=False)
    name: str
    """The relative path below the folder."""
    digest: Digest | None = None
    size_bytes: int | None = None
    tried: int = 0
    """How many attempts earlier calls have made; they count towards the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file that has been fetched: complete, verified and durable."""

    name: str
    source: str
    """A hash of the URL, which may itself be a secret."""
    size_bytes: int
    sums: Mapping[str, str]
    """The digests of the received bytes, in lowercase hexadecimal, by algorithm."""


class FetchFailed(Exception):
    """A file could not be fetched.

    ``url`` has neither credentials nor a query. ``retryable``: a later attempt may succeed. ``tried``: the number of
    attempts, with those of earlier calls. ``host``: the server that did not answer, if that is the reason; another
    attempt at once would probably wait as long and fail too.
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


class Stopped(Exception):
    """The caller stopped fetching. The received bytes are kept, and another call continues after them."""
