"""Signatures of webhooks, by which a receiver verifies that a request is authentic, unchanged and recent.

    Spinney-Signature: t=1735689600,v1=5257a869e7…

``v1`` is the hexadecimal HMAC-SHA256 (RFC 2104) of ``t``, a full stop and the body's bytes, under a secret that both
sides know; ``t`` is when it was sent, in seconds since 1970. There may be several ``v1`` (while a secret is being
changed); one that matches is enough. Other parts are ignored, so that a later scheme can be added.
"""

import hmac
from collections.abc import Mapping

from spinney.model.errors import SpinneyError

SIGNATURE = "Spinney-Signature"
"""The header with the time and the signatures of a request."""
TIMESTAMP = "Spinney-Timestamp"
"""The header with the time at which the request was sent. ``verify`` goes by the time in ``SIGNATURE``, which
is signed."""
DELIVERY = "Spinney-Delivery"
"""The header with the id of the delivery, the same in each repetition of a request."""
TOLERANCE_S = 300.0
"""How many seconds the time of a signature may differ from the receiver's clock."""
_HEADER_MAX = 4096
"""How many characters of the header ``SIGNATURE`` are accepted."""


class BadSignature(SpinneyError):
    """The request has no valid signature: answer 400, and do nothing that it asks for."""


def sign(secret: str, body: bytes, sent_at: int) -> str:
    """Return the header's value for a request with this body, sent ``sent_at`` seconds since 1970."""
    return f"t={sent_at},v1={_mac(secret, body, str(sent_at))}"


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, now: float, tolerance_s: float = TOLERANCE_S
) -> None:
    """Raise BadSignature unless the request was signed with ``secret`` within ``tolerance_s`` seconds of ``now``.

    ``body``: the bytes as received, before anything parsed them. ``now``: seconds since 1970. A request that is
    received twice passes twice: the receiver has to remember the ``Spinney-Delivery`` of those that it has handled.
    """
    if not secret:
        raise BadSignature("there is no secret to verify with; give the one that was agreed on")
    header = next((value for name, value in headers.items() if name.lower() == SIGNATURE.lower()), "")
    if not header or len(header) > _HEADER_MAX:
        raise BadSignature(f"the request has no {SIGNATURE}, or an overlong one; answer 400")
    parts = [part.strip().partition("=") for part in header.split(",")]
    sent_at = next((value for name, _, value in parts if name == "t"), "")
    if not (sent_at.isascii() and sent_at.isdigit()) or len(sent_at) > 12:
        raise BadSignature(f"the {SIGNATURE} of the request has no time; answer 400")
    expected = _mac(secret, body, sent_at).encode()
    # All are compared: the time that it takes must not tell which one came near.
    fitting = [hmac.compare_digest(expected, value.encode()) for name, _, value in parts if name == "v1"]
    if not any(fitting):
        raise BadSignature(
            "the request was not signed with this secret, or was changed on its way; answer 400"
        )
    if abs(now - int(sent_at)) > tolerance_s:
        raise BadSignature(
            f"the request was signed at {sent_at}, not within {tolerance_s:g} s of now; compare the clocks"
        )


def _mac(secret: str, body: bytes, sent_at: str) -> str:
    return hmac.digest(secret.encode(), sent_at.encode() + b"." + body, "sha256").hex()
