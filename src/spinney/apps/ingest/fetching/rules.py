"""The rules of fetching, what is wanted, what came of it, and how it fails."""

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
    """What may be reached, how long it is waited for, how often it is tried."""

    hosts: frozenset[str] = frozenset()
    """``host`` or ``host:port`` (as in a URL: ``[::1]:8080``) that may be reached although its address is
    loopback, link-local or private. With a port: that port only."""
    file_roots: tuple[Path, ...] = ()
    """Folders below which ``file:`` URLs may lie."""
    redirects: int = 5
    connect_s: float = 10.0
    read_s: float = 60.0
    """How long a server may be silent."""
    floor_bytes_s: float = 1000.0
    floor_window_s: float = 60.0
    """A server that has been waited for this long in one answer and brought less than the floor is given up."""
    backoff: Backoff = BACKOFF
    """Rests between the tries of one file."""
    retry_after_max_s: float = 120.0
    """A longer ``Retry-After`` is cut to this."""
    largest_bytes: int | None = None
    """A file larger than this is refused, so that an endless one cannot fill the disk."""
    if_larger: str = "split it, or have downloads.largest_bytes raised"
    """What its sender is told to do then."""
    mark_bytes: int = 16 << 20
    """So much, or what comes in `mark_s`, is lost at most when the process dies."""
    mark_s: float = 5.0
    avoided: frozenset[str] = frozenset()
    """Hosts as in ``hosts_of`` that are not asked, as if they were silent: others try whether they answer."""
    authorities: Path | None = None
    """A PEM file of certificate authorities trusted beside the system's."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(h.strip().lower() for h in self.hosts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a server says a payload weighs.

    ``size_bytes`` is None when the server does not tell (it refuses HEAD, or gives no length), or when
    it cannot be asked; in the second case ``problem`` says why, in one sentence.
    """

    url: str = field(repr=False)
    size_bytes: int | None = None
    problem: str | None = None

    @property
    def unknown(self) -> bool:
        """Whether the payload seems to be there, but its size is not told."""
        return self.size_bytes is None and self.problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One file to fetch. The URL is kept out of the repr: its query may be a signature."""

    url: str = field(repr=False)
    name: str
    """Relative path below the folder."""
    digest: Digest | None = None
    size_bytes: int | None = None
    tried: int = 0
    """How often it was tried by earlier calls, which counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One file that stands, whole and durable."""

    name: str
    size_bytes: int
    sums: Mapping[str, str]
    """Algorithm to lowercase hexadecimal, of the bytes that came."""
    modified: datetime | None
    """When the server (or the file system) says it was changed; UTC."""


class FetchFailed(Exception):
    """A file could not be fetched.

    ``url`` bears neither credentials nor a query. ``retryable``: another attempt, later, may meet
    something else. ``tried``: how often the file was tried, earlier calls included. ``host``: which server was silent,
    if that is why; to try it again at once would be to wait as long in vain.
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
    def silent(self) -> bool:
        return self.host is not None


class Stopped(Exception):
    """Fetching was called off; what has come is kept, so call it again to go on from there."""


def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host by the system's resolver. Raises socket.gaierror."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is handed in, so that a test can give its own: chance, rest, clock, name resolution."""

    draw: Callable[[], float] = random.random
    """0..1, for the jitter of a rest."""
    pause: Callable[[threading.Event, float], object] = threading.Event.wait
    """Rests for so many seconds, or until the event (called off) is set."""
    now: Callable[[], float] = time.monotonic
    resolve: Callable[[str, int], Sequence[str]] = resolved
