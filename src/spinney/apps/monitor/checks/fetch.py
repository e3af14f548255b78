"""Fetching for checks: bounded, gentle, and into no private network that the settings do not name.

Whoever writes the list of services decides what the monitor fetches, so each request, also one that follows a redirect,
goes through ``SafeTransport``, which refuses private addresses. Redirects are followed here and not by httpx, so that
they are counted, paused for and refused one by one. The size of a body, the time of a whole fetch, and the rate of
requests to one host are limited."""

import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from spinney.apps.monitor.tasks.findings import Finding, error
from spinney.apps.monitor.tasks.modules import Context
from spinney.safe_http import SafeTransport

BODY_MAX = 20 << 20
"""The most bytes that are read of a response."""
REDIRECTS_MAX = 5
"""After so many redirects the next one is returned as the response, with its status of 3xx."""
_HEADERS = {"User-Agent": "spinney-monitor", "Accept-Encoding": "identity"}
_ADVICE = "name the host as 'private' in [network] if checks may reach it"


class Unreachable(Exception):
    """A service did not answer as HTTP does; ``finding`` says how. Checks return the finding as their own."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.info)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The response of a service that is checked, with the redirects before it."""

    uri: str
    """Where it came from at last."""
    status: int
    redirects: Sequence[int]
    """The status codes of the redirects before it, in their order; empty: there were none."""
    media_type: str
    """The media type in lower case and without parameters; empty where the service names none."""
    body: bytes
    """What was read of it, at most ``body_max`` bytes; empty where it is compressed, which was not
    requested."""
    is_whole: bool
    """Whether the body was read to its end."""
    is_compressed: bool
    """Whether the body is compressed."""
    elapsed_s: float
    """The time from the first request to the end of the body, with redirects and without the pauses before requests,
    which say nothing of the service."""
    certificate_ends: datetime | None
    """When the certificate of the last response ends; None without TLS."""


def fetch(uri: str, context: Context, *, body_max: int = BODY_MAX, xml: bytes | None = None) -> Fetched:
    """Fetch a URI by GET, or by POST of an ``xml`` document that asks for something, following redirects one
    by one, also from one host to another and from HTTPS to HTTP. At most ``body_max`` bytes of the body are
    read.

    All requests together take no longer than the task's time limit less half a second, so that a slow service
    is reported as such and not as a task that did not end.

    Raises Unreachable when there is no response, with one of the codes ``timeout``, ``unknown_host``,
    ``tls``, ``unreachable``, ``bad_redirect`` (not to HTTP), and ``not_fetched`` (an address that is invalid,
    or that checks may not reach). A status of 4xx or 5xx is a response, which the caller judges."""
    method, headers = ("GET", _HEADERS) if xml is None else ("POST", {**_HEADERS, "Content-Type": "text/xml"})
    began_s = time.monotonic()
    paused_s = 0.0
    redirects: list[int] = []
    while True:
        paused_s += _pause(uri, context.network.pause_s)
        left_s = max(0.1, context.timeout_s - (time.monotonic() - began_s) - 0.5)
        try:
            transport = SafeTransport(
                hosts=frozenset(context.network.private), advice=_ADVICE, total_timeout_s=left_s
            )
            with (
                httpx.Client(transport=transport, timeout=left_s, trust_env=False) as client,
                client.stream(method, uri, headers=headers, content=xml) as response,
            ):
                if len(redirects) < REDIRECTS_MAX and (target := _redirect_target(uri, response)) is not None:
                    redirects.append(response.status_code)
                    uri = target
                    continue
                is_compressed = _is_compressed(response)
                body, is_whole = (b"", False) if is_compressed else _body(response, body_max)
                return Fetched(
                    uri=uri,
                    status=response.status_code,
                    redirects=redirects,
                    media_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
                    body=body,
                    is_whole=is_whole,
                    is_compressed=is_compressed,
                    elapsed_s=time.monotonic() - began_s - paused_s,
                    certificate_ends=_certificate_end(response),
                )
        except (ValueError, httpx.InvalidURL, httpx.UnsupportedProtocol) as problem:
            raise Unreachable(error("not_fetched", f"{_host(uri)} is not fetched: {problem}")) from None
        except httpx.TimeoutException:
            raise Unreachable(error("timeout", f"{_host(uri)} did not answer in time")) from None
        except httpx.HTTPError as problem:
            raise Unreachable(_connection_fault(_host(uri), problem)) from None


def _redirect_target(uri: str, response: httpx.Response) -> str | None:
    """Return where the response redirects to from ``uri``; None: it does not. Raises Unreachable when that is not
    an HTTP address."""
    location = response.headers.get("location")
    if response.status_code not in (301, 302, 303, 307, 308) or not location:
        return None
    target = urljoin(uri, str(location))
    if urlsplit(target).scheme not in ("http", "https"):
        raise Unreachable(
            error("bad_redirect", f"It redirects to {target[:100]}, which is not an HTTP address")
        )
    return target


def refuse_compressed(fetched: Fetched) -> None:
    """Raise Unreachable, with the finding, for a response whose body is compressed."""
    if fetched.is_compressed:
        raise Unreachable(error("compressed", "The answer is compressed, although the request declines that"))


def _is_compressed(response: httpx.Response) -> bool:
    """Return whether a body is compressed. Such a one is not read, since it may be any number of times larger."""
    return response.headers.get("content-encoding", "identity").lower() not in ("identity", "")


def _body(response: httpx.Response, most: int) -> tuple[bytes, bool]:
    """Return the first ``most`` bytes of a body, and whether it was read to its end."""
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > most:
            return bytes(body[:most]), False
    return bytes(body), True


def _certificate_end(response: httpx.Response) -> datetime | None:
    """Return when the server's certificate ends, read from the open connection; None without TLS."""
    stream: Any = response.extensions.get("network_stream")
    tls = None if stream is None else stream.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert()
    if not certificate or "notAfter" not in certificate:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)


def _connection_fault(host: str, problem: httpx.HTTPError) -> Finding:
    """Return the finding for a connection that failed. The text of the error has to tell the kinds apart,
    since httpx raises ConnectError for most of them."""
    text = str(problem) or type(problem).__name__
    if "certificate" in text.lower() or "ssl" in text.lower():
        return error("tls", f"The TLS handshake with {host} failed: {text}")
    if "resolve" in text.lower() or "name or service" in text.lower():
        return error("unknown_host", f"The name of the host {host} cannot be resolved")
    return error("unreachable", f"{host} cannot be reached: {text}")


def _host(uri: str) -> str:
    """Return host and port of a URI without its user and password, which must not reach a finding."""
    return urlsplit(uri).netloc.rpartition("@")[2][:100] or "the service"


_next_s: dict[str, float] = {}
"""When the next request to each host may begin, by the monotonic clock; one entry for each host of this
process."""
_next_lock = threading.Lock()


def _pause(uri: str, pause_s: float) -> float:
    """Wait until the host may be sent another request, and return for how many seconds. Each thread reserves its time
    under the lock and sleeps outside, so that threads with other hosts do not wait."""
    if not pause_s:
        return 0.0
    host = _host(uri)
    with _next_lock:
        now_s = time.monotonic()
        at_s = max(now_s, _next_s.get(host, 0.0))
        _next_s[host] = at_s + pause_s
    time.sleep(at_s - now_s)
    return at_s - now_s
