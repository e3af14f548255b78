"""One request to a server: redirects are followed, each is checked, and errors are explained."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpcore
import httpx

from spinney.apps.ingest.fetching import response_headers, urls
from spinney.apps.ingest.fetching.connections import Guard, Stream
from spinney.apps.ingest.fetching.errors import TryFailed
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import paths
from spinney.apps.ingest.files.paths import NotAdmitted

_KEPT_ALIVE_S = 15.0
_ANSWERED_BYTES = 1 << 20
"""After so much of a body, or its end, a server counts as answering; not after its head: many stop sending after
that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, headers by lower-case name, and the body in chunks as they are received."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


class HttpClient:
    """Sends requests, keeping connections alive between them. Used by many threads at once.

    Proxies of the environment are not used, since the addresses behind a proxy cannot be checked.
    """

    def __init__(
        self,
        rules: Rules,
        halt: threading.Event,
        surroundings: Surroundings,
        *,
        at_once: int,
        answered: Callable[[str], None] = lambda host: None,
    ) -> None:
        """``answered`` is called with each host that answers, with any status, in the requesting thread."""
        self._rules = rules
        self._answered = answered
        self._guard = Guard(rules, halt, surroundings)
        self._at_once = at_once
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.close()

    @contextmanager
    def request(self, method: str, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """Send a request, and yield the answer at the end of all redirects; its chunks are read inside the block.

        Raises TryFailed, also for errors of the connection inside the block.
        """
        current_url = _admitted(url)
        for _ in range(self._rules.redirects + 1):
            with (
                self._host_watched(urls.host_name(current_url)),
                self._send(method, current_url, headers) as answer,
            ):
                if answer.status not in response_headers.REDIRECTS:
                    yield answer
                    return
                current_url = _next(current_url, answer)
        raise TryFailed(
            f"it is redirected more than {self._rules.redirects} times, at last to {urls.shown(current_url)}; "
            f"give the URL it ends at",
            retryable=False,
        )

    @contextmanager
    def _host_watched(self, host: str) -> Iterator[None]:
        """Report that a host answered, and add to an error the host that did not answer."""
        if host in self._rules.skipped_hosts:
            failure = TryFailed(
                f"{paths.shown(host)} does not answer; try again later", retryable=True, unresponsive=True
            )
            failure.host = host
            raise failure
        try:
            yield
        except TryFailed as failure:
            if failure.unresponsive:
                failure.host = host
            else:
                self._answered(host)
            raise

    def _counting(self, host: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        received_bytes = 0
        for chunk in chunks:
            received_bytes += len(chunk)
            if received_bytes - len(chunk) < _ANSWERED_BYTES <= received_bytes:
                self._answered(host)
            yield chunk
        self._answered(host)

    @contextmanager
    def _send(self, method: str, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[Answer]:
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        request_headers: list[tuple[bytes | str, bytes | str]] = [
            ("Host", url.netloc),
            ("User-Agent", "spinney-ingest"),
            # The bytes of the file itself are archived, not an encoded form of them.
            ("Accept-Encoding", "identity"),
            *headers.items(),
        ]
        timeouts = {
            "connect": self._rules.connect_s,
            "read": self._rules.read_s,
            "write": self._rules.read_s,
            "pool": None,
        }
        with (
            _explained_errors(self._rules),
            self._pool(url.scheme).stream(
                method, target, headers=request_headers, extensions={"timeout": timeouts}
            ) as response,
        ):
            stream = response.extensions["network_stream"]
            if isinstance(stream, Stream):
                stream.body_begins()
            # A HEAD has no body: read to its end, the connection serves the next request.
            body = iter(list(response.iter_stream())) if method == "HEAD" else response.iter_stream()
            host = urls.host_name(url)
            if method == "HEAD" or response.status not in (200, 206):
                self._answered(host)
            yield Answer(
                status=response.status,
                headers=response_headers.headers_of(response.headers),
                chunks=self._counting(host, body),
            )

    def _pool(self, scheme: str) -> httpcore.ConnectionPool:
        # One for each scheme: loading the system's authorities takes longer than a small file, and http needs none.
        with self._opening:
            if scheme not in self._pools:
                self._pools[scheme] = httpcore.ConnectionPool(
                    ssl_context=self._context() if scheme == "https" else None,
                    max_connections=self._at_once,
                    max_keepalive_connections=self._at_once,
                    keepalive_expiry=_KEPT_ALIVE_S,
                    network_backend=self._guard,
                )
            return self._pools[scheme]

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._rules.authorities is not None:
            context.load_verify_locations(self._rules.authorities)
        return context


def status_error(answer: Answer, rules: Rules) -> TryFailed:
    """Return the error for an answer with an unexpected status."""
    if answer.status in response_headers.RETRYABLE:
        return TryFailed(
            f"the server answers {answer.status}; try again later",
            retryable=True,
            after_s=response_headers.retry_after_s(answer.headers, rules.retry_after_max_s),
        )
    return TryFailed(
        f"the server answers {answer.status}; see to it that the file can be had there", retryable=False
    )


def _admitted(url: str) -> httpx.URL:
    try:
        return urls.admitted(url)
    except NotAdmitted as error:
        raise TryFailed(str(error), retryable=False) from None


def _next(current_url: httpx.URL, answer: Answer) -> httpx.URL:
    location = answer.headers.get("location", "")
    if not location:
        raise TryFailed(f"the server answers {answer.status} without saying whereto", retryable=False)
    try:
        # Joined first: a Location may be relative (RFC 9110 section 10.2.2).
        next_url = urls.admitted(str(current_url.join(location)))
    except (NotAdmitted, httpx.InvalidURL, ValueError) as error:
        reason = str(error) if isinstance(error, NotAdmitted) else "that is no URL; ask its operators"
        raise TryFailed(f"it is redirected, but {reason}", retryable=False) from None
    if next_url.scheme not in urls.PORTS:
        raise TryFailed(
            f"it is redirected to {urls.shown(next_url)}; from http only http and https are followed",
            retryable=False,
        )
    if current_url.scheme == "https" and next_url.scheme == "http":
        raise TryFailed(
            f"it is redirected from https to {urls.shown(next_url)}, where anybody could change it on the way; "
            f"give a URL that stays with https",
            retryable=False,
        )
    return next_url


@contextmanager
def _explained_errors(rules: Rules) -> Iterator[None]:
    """Turn errors of httpcore into TryFailed, without their whole texts, which may contain anything."""
    unresponsive = True
    try:
        yield
    except httpcore.ConnectTimeout:
        reason = f"the server did not take the connection within {rules.connect_s:g} seconds; try again later"
    except httpcore.ConnectError as error:
        cause = error.args[0] if error.args else None
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise TryFailed(
                f"the server's certificate is not trusted ({paths.shown(cause.verify_message)}); "
                f"have it renewed, or its authority added to those that this machine trusts",
                retryable=False,
            ) from None
        unresponsive = not isinstance(cause, ssl.SSLError)
        detail = cause.strerror if isinstance(cause, OSError) else None
        reason = f"no connection to the server ({paths.shown(detail or 'refused')}); try again later"
    except httpcore.TimeoutException:
        reason = f"the server was silent for {rules.read_s:g} seconds; try again later"
    except httpcore.LocalProtocolError:
        raise TryFailed(
            "a question for it cannot be written as HTTP; mend the URL", retryable=False
        ) from None
    except httpcore.ProtocolError:
        reason, unresponsive = "the answer broke off, or is no HTTP; try again later", False
    except httpcore.NetworkError:
        reason, unresponsive = "the connection broke; try again later", False
    else:
        return
    raise TryFailed(reason, retryable=True, unresponsive=unresponsive)
