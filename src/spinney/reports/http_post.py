"""One POST of a webhook, and the part of the answer that is kept.

Redirects are not followed, since a receiver could lead the request to an address that nobody has checked. No proxy is
used, whatever the environment says. The status alone decides; only the beginning of the body is read.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spinney.reports.printable import printable

if TYPE_CHECKING:
    import httpx

ANSWER_MAX = 500
"""How many characters of an answer are kept."""
_READ_MAX_BYTES = 4 * ANSWER_MAX
"""How many bytes of an answer are read, enough for that many characters of UTF-8."""

Transport = Callable[[], "httpx.BaseTransport"]
"""Makes the transport of one request, which may refuse hosts and addresses by raising ValueError."""


class Unreachable(Exception):
    """There was no answer; the message says why. The receiver may have got the request all the same, so it is repeated
    under the same delivery id."""


class SendAborted(Exception):
    """The request was aborted: whether the receiver got it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The receiver's answer, with the beginning of its body. Any status counts as an answer."""

    status: int
    """The HTTP status."""
    text: str
    """The beginning of its body on one line, with characters that are not printable escaped."""
    retry_after: str = ""
    """The value of the header Retry-After; empty without one."""


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float, transport: Transport | None
) -> Response:
    """Send one POST request with a JSON body, and return the answer.

    ``timeout_s``: the limit for connecting, for each part of the exchange, and for the body of the answer in
    all. ``transport``: makes what carries the request; None: a plain one that reaches any address. Raises
    Unreachable when there was no answer, ValueError for an invalid URL or one that ``transport`` refuses.
    """
    # Imported here: a worker loads the application, and must stay light.
    import httpcore
    import httpx

    if transport is None:
        # These certificates are those that ``SafeTransport`` trusts, SSL_CERT_FILE among them; httpx, which is to
        # ignore proxies of the environment, would ignore that file, too.
        carrier: httpx.BaseTransport = httpx.HTTPTransport(
            verify=httpcore.default_ssl_context(), trust_env=False
        )
    else:
        carrier = transport()
    # Encodings are declined, so that what is read is what is shown, and no bomb is unpacked.
    plain = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "Spinney"}
    try:
        with (
            httpx.Client(
                transport=carrier, timeout=timeout_s, trust_env=False, follow_redirects=False
            ) as client,
            client.stream("POST", url, content=body, headers=plain | dict(headers)) as response,
        ):
            text = _beginning(response, time.monotonic() + timeout_s)
            retry_after = response.headers.get("retry-after", "")[:100]
            return Response(status=response.status_code, text=text, retry_after=retry_after)
    except httpx.InvalidURL as error:
        raise ValueError(f"{error}; correct the URL and submit again") from None
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise Unreachable(printable(str(error) or type(error).__name__, ANSWER_MAX)) from None


def _beginning(response: "httpx.Response", until: float) -> str:
    """Read the beginning of the body, until it is long enough or the time ``until`` (monotonic, in seconds)
    has come. The status counts even when the body breaks off, or comes a byte at a time."""
    import httpx

    content = bytearray()
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
        for chunk in response.iter_raw():
            content += chunk
            if len(content) >= _READ_MAX_BYTES or time.monotonic() > until:
                break
    return printable(bytes(content[:_READ_MAX_BYTES]).decode("utf-8", "replace"), ANSWER_MAX)
