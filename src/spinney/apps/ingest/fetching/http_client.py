"""One question to a server: its redirects followed, each judged anew, and what fails named."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpcore
import httpx

from spinney.apps.ingest.fetching import response_headers, urls
from spinney.apps.ingest.fetching.connections import Guard, Stream
from spinney.apps.ingest.fetching.errors import Trouble
from spinney.apps.ingest.fetching.rules import Rules, Surroundings
from spinney.apps.ingest.files import paths
from spinney.apps.ingest.files.paths import NotAdmitted

_KEPT_ALIVE_S = 15.0
_ANSWERED_BYTES = 1 << 20
"""So much of a body shows that a server answers, as its end does; a head alone does not: many fall silent behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, headers by lower-case name, and the bytes that follow, in chunks as they come."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


class Asker:
    """Asks servers, keeping connections alive between questions. Used by many threads at once.

    Proxies of the environment are not used: behind one, nobody here would see the address reached.
    """

    def __init__(
        self,
        rules: Rules,
        halt: threading.Event,
        given: Surroundings,
        *,
        at_once: int,
        answered: Callable[[str], None] = lambda host: None,
    ) -> None:
        """``answered``: called with each host that answers, whatever it says, in the thread that asked."""
        self._rules = rules
        self._answered = answered
        self._guard = Guard(rules, halt, given)
        self._at_once = at_once
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.close()

    @contextmanager
    def ask(self, method: str, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """The answer at the end of all redirects; its chunks are read inside the block.

        Raises Trouble, for what fails inside the block too.
        """
        at = _admitted(url)
        for _ in range(self._rules.redirects + 1):
            with self._heard(urls.host_name(at)), self._asked(method, at, headers) as answer:
                if answer.status not in response_headers.REDIRECTS:
                    yield answer
                    return
                at = _next(at, answer)
        raise Trouble(
            f"it is redirected more than {self._rules.redirects} times, at last to {urls.shown(at)}; "
            f"give the URL it ends at",
            retryable=False,
        )

    @contextmanager
    def _heard(self, host: str) -> Iterator[None]:
        """Says of a host that it answered, and of silence whose it was."""
        if host in self._rules.avoided:
            trouble = Trouble(
                f"{paths.shown(host)} does not answer; try again later", retryable=True, silent=True
            )
            trouble.host = host
            raise trouble
        try:
            yield
        except Trouble as trouble:
            if trouble.silent:
                trouble.host = host
            else:
                self._answered(host)
            raise

    def _counted(self, host: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        came = 0
        for chunk in chunks:
            came += len(chunk)
            if came - len(chunk) < _ANSWERED_BYTES <= came:
                self._answered(host)
            yield chunk
        self._answered(host)

    @contextmanager
    def _asked(self, method: str, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[Answer]:
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent: list[tuple[bytes | str, bytes | str]] = [
            ("Host", url.netloc),
            ("User-Agent", "spinney-ingest"),
            # What is archived are the bytes that lie there, not a form made for the way.
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
            _told(self._rules),
            self._pool(url.scheme).stream(
                method, target, headers=sent, extensions={"timeout": timeouts}
            ) as response,
        ):
            stream = response.extensions["network_stream"]
            if isinstance(stream, Stream):
                stream.body_begins()
            # A HEAD has no body: read to its end, the connection serves the next question.
            body = iter(list(response.iter_stream())) if method == "HEAD" else response.iter_stream()
            host = urls.host_name(url)
            if method == "HEAD" or response.status not in (200, 206):
                self._answered(host)
            yield Answer(
                status=response.status,
                headers=response_headers.headers_of(response.headers),
                chunks=self._counted(host, body),
            )

    def _pool(self, scheme: str) -> httpcore.ConnectionPool:
        # One a scheme: reading the system's authorities takes longer than many a file, and http needs none.
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


def refused(answer: Answer, rules: Rules) -> Trouble:
    """The trouble with an answer whose status is none of those hoped for."""
    if answer.status in response_headers.RETRYABLE:
        return Trouble(
            f"the server answers {answer.status}; try again later",
            retryable=True,
            after_s=response_headers.retry_after_s(answer.headers, rules.retry_after_max_s),
        )
    return Trouble(
        f"the server answers {answer.status}; see to it that the file can be had there", retryable=False
    )


def _admitted(url: str) -> httpx.URL:
    try:
        return urls.admitted(url)
    except NotAdmitted as error:
        raise Trouble(str(error), retryable=False) from None


def _next(at: httpx.URL, answer: Answer) -> httpx.URL:
    location = answer.headers.get("location", "")
    if not location:
        raise Trouble(f"the server answers {answer.status} without saying whereto", retryable=False)
    try:
        # Joined first: a Location may be relative (RFC 9110 section 10.2.2).
        to = urls.admitted(str(at.join(location)))
    except (NotAdmitted, httpx.InvalidURL, ValueError) as error:
        reason = str(error) if isinstance(error, NotAdmitted) else "that is no URL; ask its operators"
        raise Trouble(f"it is redirected, but {reason}", retryable=False) from None
    if to.scheme not in urls.PORTS:
        raise Trouble(
            f"it is redirected to {urls.shown(to)}; from http only http and https are followed",
            retryable=False,
        )
    if at.scheme == "https" and to.scheme == "http":
        raise Trouble(
            f"it is redirected from https to {urls.shown(to)}, where anybody could change it on the way; "
            f"give a URL that stays with https",
            retryable=False,
        )
    return to


@contextmanager
def _told(rules: Rules) -> Iterator[None]:
    """Turn what httpcore raises into Trouble. Its texts are not taken over whole: they may hold anything."""
    silent = True
    try:
        yield
    except httpcore.ConnectTimeout:
        reason = f"the server did not take the connection within {rules.connect_s:g} seconds; try again later"
    except httpcore.ConnectError as error:
        cause = error.args[0] if error.args else None
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise Trouble(
                f"the server's certificate is not trusted ({paths.shown(cause.verify_message)}); "
                f"have it renewed, or its authority added to those that this machine trusts",
                retryable=False,
            ) from None
        silent = not isinstance(cause, ssl.SSLError)
        told = cause.strerror if isinstance(cause, OSError) else None
        reason = f"no connection to the server ({paths.shown(told or 'refused')}); try again later"
    except httpcore.TimeoutException:
        reason = f"the server was silent for {rules.read_s:g} seconds; try again later"
    except httpcore.LocalProtocolError:
        raise Trouble("a question for it cannot be written as HTTP; mend the URL", retryable=False) from None
    except httpcore.ProtocolError:
        reason, silent = "the answer broke off, or is no HTTP; try again later", False
    except httpcore.NetworkError:
        reason, silent = "the connection broke; try again later", False
    else:
        return
    raise Trouble(reason, retryable=True, silent=silent)
