"""The requests that both clients send, and what they make of answers. Nothing here sends, so nothing waits."""

import os
import ssl
from collections.abc import Sequence
from typing import Any, TypeVar

import httpx
import orjson
from pydantic import ValidationError

from spinney.client.calls import NDJSON, Call, path
from spinney.client.errors import ServerUnavailable, error_from_response, unexpected_response
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.tracing import current, traceparents

T = TypeVar("T")

PREFIX = "/api/v1"
"""The address of the API on each server."""
TIMEOUT_S = 60.0
"""How many seconds a client waits for each step of an answer."""
STREAM_S = 45.0
"""A stream on which nothing comes for so long is dead: the server sends something every 15 s."""
EVENT_STREAM = "text/event-stream"
"""The media type of a stream of events."""
UNIX = "unix:"
"""How the address of a socket begins."""
ONE_BYTE = {"Range": "bytes=0-0"}
"""The header for so little content that an answer shows only whether it may be read."""
_SILENT_S = httpx.Timeout(TIMEOUT_S, read=None)
"""Where nothing may come for long though the server lives: followed output."""

_CA_FILE = "SSL_CERT_FILE"
"""The environment variable by which httpx, like OpenSSL, finds the certificates to trust."""
_BREAKS_OFF = (httpx.ReadError, httpx.RemoteProtocolError)
"""How a server that speaks TLS refuses plain HTTP, and how one that dies ends an answer."""


class ServerAddress:
    """The address of a server, and what requests to it need. Raises UsageError for one that is neither HTTP
    nor a socket."""

    def __init__(self, url: str, token: str | None) -> None:
        self.socket = url.removeprefix(UNIX) if url.startswith(UNIX) else None
        if self.socket is None and not _is_http(url):
            raise UsageError(
                f"{url!r} is no server; write https://spinney.example.org, or unix:/path/of/server.sock"
            )
        self.base = "http://localhost" if self.socket is not None else url.rstrip("/")
        self.headers = {"Authorization": f"Bearer {_require_token(token)}"} if token else {}
        self.shown = url
        # Reading all trusted certificates takes longer than a request; without https nothing needs them.
        https = self.base.startswith("https://")
        self.verify = _trusted() if https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def arguments(self, timeout_s: Duration) -> dict[str, Any]:
        """Return the arguments that httpx's clients of both kinds take, but the transport."""
        return {
            "base_url": self.base,
            "headers": self.headers,
            "timeout": durations.seconds(timeout_s, "timeout_s"),
            "verify": self.verify,
            "trust_env": self.socket is None,
        }

    def away(self, error: Exception) -> ServerUnavailable:
        """Return the error for a server that cannot be reached, or does not answer."""
        host = self.base.partition("://")[2]
        if "WRONG_VERSION_NUMBER" in str(error):  # OpenSSL's name for an answer that is no TLS
            return ServerUnavailable(f"the server at {self.shown} does not speak TLS; write http://{host}")
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return ServerUnavailable(
                f"the certificate of the server at {self.shown} is not accepted ({error}); see that the address has "
                f"the name in the certificate, and if the certificate is self-signed or of an authority of your own, "
                f"set {_CA_FILE} to a PEM file with the certificates to trust"
            )
        advice = "see that it runs, and its address"
        if self.socket is None and self.base.startswith("http://") and isinstance(error, _BREAKS_OFF):
            advice = f"see that it runs; if it speaks TLS, write https://{host}"
        return ServerUnavailable(f"the server at {self.shown} does not answer ({error}); {advice}")


def _trusted() -> ssl.SSLContext:
    """Return the certificates to trust: those of SSL_CERT_FILE, else of SSL_CERT_DIR, else of the package certifi.
    Raises UsageError for a file that cannot be read."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # httpx reads SSL_CERT_DIR without an error
        raise UsageError(
            f"cannot read the certificates of {_CA_FILE}={os.environ.get(_CA_FILE)} ({error.strerror or error}); name "
            f"a readable PEM file, or unset it"
        ) from error


def _is_http(url: str) -> bool:
    """Return whether this is a URL of HTTP with a host."""
    try:
        return url.startswith(("http://", "https://")) and bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def _require_token(token: str) -> str:
    """Return the token without the line feed of the file that it may come from. Raises UsageError, which does not quote
    it, for one that cannot be sent: httpx would quote it whole, and messages come into logs."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError(
            "the token has characters that no token has; give it as 'spinney token make' printed it"
        )
    return token


def request_of(call: Call[Any]) -> dict[str, Any]:
    """Return a call as the arguments of httpx, with the header of the current trace."""
    headers = dict(call.headers)
    content = call.content
    if call.json is not None:
        content, headers["Content-Type"] = orjson.dumps(call.json), "application/json"
    if (trace := current.traceparent()) is not None:
        headers[traceparents.HEADER] = trace
    return {
        "method": call.method,
        "url": f"{PREFIX}{call.path}",
        "params": call.query or None,
        "content": content,
        "files": call.files or None,
        "headers": headers,
    }


def lines_request(call: Call[Any]) -> dict[str, Any]:
    """Return a call whose answer is to come in lines, of which the server sends one every 15 s, as the arguments of
    httpx."""
    request = request_of(call)
    return request | {"headers": request["headers"] | {"Accept": NDJSON}, "timeout": TIMEOUT_S}


def output_arguments(job: int, fence: int, stream: str, start: int, *, follow: bool) -> dict[str, Any]:
    """Return the arguments of ``_content`` for what an attempt wrote. Followed output begins by a parameter
    in place of a range, since its end is not known."""
    arguments: dict[str, Any] = {"path": path("/jobs/{}/attempts/{}/{}", job, fence, stream)}
    if follow:
        return arguments | {"query": {"follow": "true", "start": str(start)}, "limits": _SILENT_S}
    return arguments | {"headers": range_from(start)}


def events_request(topics: Sequence[str], last: str | None) -> dict[str, Any]:
    """Return the request of an event stream that continues behind the event with the id ``last``, as the arguments of
    httpx."""
    return {
        "method": "GET",
        "url": f"{PREFIX}/events",
        "params": [("topic", topic) for topic in topics],
        "headers": {"Last-Event-ID": last} if last else {},
        "timeout": STREAM_S,
    }


def is_incomplete(error: httpx.TransportError) -> bool:
    """Return whether the server closed the connection within an answer, as it does when the rest is forbidden."""
    return isinstance(error, httpx.RemoteProtocolError)


def require_allowed(answer: httpx.Response) -> None:
    """Raise the refusal in this answer to a repeated request for content that broke off; any other answer is no
    error."""
    if answer.is_client_error and answer.status_code != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise error_from_response(answer.status_code, answer.content)


def range_from(start: int) -> dict[str, str]:
    """Return the header for the content from a byte on; none for all of it."""
    return {"Range": f"bytes={start}-"} if start else {}


def decoded(call: Call[T], status: int, content: bytes) -> T:
    """Return the decoded answer to a call. Raises what the server refused it with, and UnexpectedResponse for an
    answer of another form, as of a proxy that shows its own page."""
    if not 200 <= status < 300:
        raise error_from_response(status, content)
    try:
        return call.decode(content)
    except ValidationError:
        raise unexpected_response(status, content) from None


def is_event_stream(answer: httpx.Response) -> bool:
    """Return whether an answer is a stream of events."""
    return answer.is_success and answer.headers.get("Content-Type", "").startswith(EVENT_STREAM)


def watch_error(status: int, content: bytes) -> SpinneyError:
    """Return the error for an answer that is no stream of events."""
    success = 200 <= status < 300
    return unexpected_response(status, content) if success else error_from_response(status, content)
