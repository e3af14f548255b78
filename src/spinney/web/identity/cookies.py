"""Cookies: their names, their signatures, and the proofs that forms must contain because of them.

They are signed with a key that all servers of a store share, so that a forged one is refused without asking the store,
and a restart ends no session. ``SameSite=Lax``, not ``Strict``: with that, a link to a job that is followed out of a
mail would lead to the sign-in page. Lax alone keeps other sites from changing anything, and forms are proven besides
(``forms``). Over HTTPS their names begin with ``__Host-``, which no other host of the domain can set.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

from itsdangerous import BadSignature, Signer, URLSafeTimedSerializer
from starlette.responses import Response

from spinney.model.rights.accounts import Device, digest
from spinney.web.request_context import SESSION_COOKIE

GUEST_COOKIE, LINK_COOKIE, OIDC_COOKIE = "spinney_guest", "spinney_link", "spinney_away"
"""Cookies of browsers that have not signed in yet: what proves their forms; the secret of a one-time link;
what an identity provider has to give back."""
SHORT_S = 600
"""How many seconds the last two are good."""
DEVICE_S = 400 * 86_400
"""How many seconds a browser is remembered after a login; browsers keep no cookie longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookies:
    """Signs and reads the cookies of one server."""

    key: bytes
    """The secret of the store from which a key for each purpose is derived."""
    secure: bool
    """Whether the cookies are sent over HTTPS only."""

    def name(self, plain: str) -> str:
        """Return the name of a cookie, with the prefix ``__Host-`` over HTTPS."""
        return f"__Host-{plain}" if self.secure else plain

    # --- the session ----------------------------------------------------------------------

    def session(self, sent: dict[str, str]) -> str | None:
        """Return the secret of the session; None: there is no valid cookie."""
        return self._signed(sent, SESSION_COOKIE)

    def set_session(self, answer: Response, secret: str) -> None:
        """Set the session's cookie, which lasts until the browser is closed."""
        self._set(answer, SESSION_COOKIE, self._signer(SESSION_COOKIE).sign(secret).decode())

    # --- before there is one --------------------------------------------------------------

    def guest(self, sent: dict[str, str]) -> str | None:
        """Return the number by which a browser that has not signed in is recognized; None: it has none yet."""
        return self._signed(sent, GUEST_COOKIE)

    def set_guest(self, answer: Response, number: str) -> None:
        """Set the number by which a browser that has not signed in is recognized, until the browser is closed."""
        self._set(answer, GUEST_COOKIE, self._signer(GUEST_COOKIE).sign(number).decode())

    def short(self, sent: dict[str, str], plain: str) -> Any:
        """Return the value that ``set_short`` stored under this name less than ten minutes ago; None: there is none."""
        try:
            return self._timed(plain).loads(sent.get(self.name(plain), ""), max_age=SHORT_S)
        except BadSignature:
            return None

    def set_short(self, answer: Response, plain: str, value: Any) -> None:
        """Store a JSON value in a signed cookie for ten minutes. The user can read it."""
        self._set(answer, plain, str(self._timed(plain).dumps(value)), max_age=SHORT_S)

    def clear(self, answer: Response, plain: str) -> None:
        """Have the browser drop the cookie of this name."""
        self._set(answer, plain, "", max_age=0)

    # --- the device, known after a sign-in --------------------------------------------------

    def device(self, sent: dict[str, str], user: str) -> Device | None:
        """Return the device as which this browser is known, if the user has signed in there before; None otherwise."""
        plain = _device_cookie(user)
        try:
            name, password_us, number = self._timed(plain).loads(
                sent.get(self.name(plain), ""), max_age=DEVICE_S
            )
        except (BadSignature, TypeError, ValueError):
            return None
        return Device(user=name, password_us=password_us, number=number)

    def set_device(self, answer: Response, device: Device) -> None:
        """Remember that the user has signed in with this browser. The cookie opens nothing: it only spares the browser
        the delays that strangers cause who guess the password (``spinney.service.login_limits``)."""
        plain = _device_cookie(device.user)
        value = str(self._timed(plain).dumps([device.user, device.password_us, device.number]))
        self._set(answer, plain, value, max_age=DEVICE_S)

    # --- forms ----------------------------------------------------------------------------

    def proof(self, kind: str, owner: str) -> str:
        """Return the token that forms of one owner must contain. ``kind``: by what the owner is known (``session``,
        ``guest``, ``proxy``); ``owner``: the digest, number or name. The token of one session is valid for no other."""
        text = f"{kind}\0{owner}".encode("utf-8", "surrogatepass")
        return urlsafe_b64encode(hmac.digest(self._key("form"), text, hashlib.sha256)).decode().rstrip("=")

    # --- signing --------------------------------------------------------------------------

    def _signed(self, sent: dict[str, str], plain: str) -> str | None:
        """Return the value of a signed cookie; None: it is missing, or its signature is not ours."""
        try:
            return self._signer(plain).unsign(sent.get(self.name(plain), "")).decode()
        except (BadSignature, UnicodeError):
            return None

    def _set(self, answer: Response, plain: str, value: str, *, max_age: int | None = None) -> None:
        """Set a cookie that no script can read. ``max_age`` in seconds; None: until the browser is closed."""
        answer.set_cookie(
            self.name(plain),
            value,
            max_age=max_age,
            path="/",
            secure=self.secure,
            httponly=True,
            samesite="lax",
        )

    def _signer(self, plain: str) -> Signer:
        """Return the signer of the cookies with this name, whose key is good for no other name."""
        return Signer(self._key(plain), salt=plain, digest_method=hashlib.sha256)

    def _timed(self, plain: str) -> URLSafeTimedSerializer:
        """Return the signer of JSON values that are good for a limited time."""
        return URLSafeTimedSerializer(
            self._key(plain), salt=plain, signer_kwargs={"digest_method": hashlib.sha256}
        )

    def _key(self, purpose: str) -> bytes:
        """Return the key for a purpose: what is signed for one purpose is valid for no other."""
        return hmac.digest(self.key, purpose.encode(), hashlib.sha256)


def _device_cookie(user: str) -> str:
    """Return the name of the device cookie of a user. Each user has a separate cookie, so that several users may share
    a browser."""
    return f"spinney_device_{digest(user)[:12]}"
