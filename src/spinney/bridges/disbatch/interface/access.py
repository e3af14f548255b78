"""Who may use a command interface: users with passwords, programs with a token, and never another site's page.

Without users and token everybody is let in; then the server listens on loopback only, and refuses requests that name
another host. With them each request is signed in by HTTP Basic (RFC 7617) or a bearer token (RFC 6750): there are no
sessions and no cookies, as in the releases."""

import base64
import hashlib
import hmac
import secrets
from binascii import Error as NotBase64
from pathlib import Path
from threading import BoundedSemaphore
from urllib.parse import SplitResult, urlsplit

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from starlette.requests import Request

from spinney.bridges.disbatch.interface.settings import InterfaceSettings
from spinney.bridges.disbatch.interface.wire import BadRequest
from spinney.errors import UsageError
from spinney.safe_http import is_loopback

REALM = "disbatch"
"""The realm of HTTP Basic authentication; the command line of the releases signs in to it by this name."""
ANYBODY = "anybody"
"""The user of requests to a server without users and token."""
_SAFE = ("GET", "HEAD")
_KEPT = 200  # passwords that are remembered as right; further ones are checked each time
_WAITING = 8  # passwords that are checked or wait for that; further ones are refused
_HASHER = PasswordHasher()


class Access:
    """Authenticates requests. Passwords that were right are remembered as keyed digests until the server
    ends, since Argon2 takes long on purpose; at most two are checked at once, since each check takes 64
    MB. Only a few more wait, so that somebody who guesses passwords does not hold up all other requests."""

    def __init__(self, settings: InterfaceSettings) -> None:
        self._settings = settings
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._waiting, self._checks = BoundedSemaphore(_WAITING), BoundedSemaphore(2)
        self._nobody = _HASHER.hash(secrets.token_hex()) if settings.users else ""

    def user(self, request: Request) -> str:
        """Return who sends a request. Raises BadRequest with status 401, 403 for a page of another site, or 429 while
        too many passwords are checked."""
        self._refuse_other_sites(request)
        if not self._settings.protected:
            return ANYBODY
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        token = self._settings.token
        if scheme.lower() == "bearer" and token and hmac.compare_digest(credentials.encode(), token.encode()):
            return "token"
        if scheme.lower() == "basic":
            try:
                name, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
            except (NotBase64, ValueError):
                name = password = ""
            if self._is_right(name, password):
                return name
        raise BadRequest("sign in with a user and a password of this server, or with its token", 401)

    def form_token(self, user: str) -> str:
        """Return the token that forms of this user must contain, which forms of other sites cannot know. It changes
        with each start of the server."""
        return hmac.new(self._key, b"form:" + user.encode(), hashlib.sha256).hexdigest()

    def check_form(self, user: str, token: object) -> None:
        """Raise BadRequest unless a form was made for this user since the server has started."""
        expected = self.form_token(user).encode()
        if not (isinstance(token, str) and hmac.compare_digest(token.encode(), expected)):
            raise BadRequest("this form is too old; go back, reload the page and try again", 403)

    def _is_right(self, name: str, password: str) -> bool:
        """Return whether the password is that of the user. For a user that does not exist a hash of nothing
        is checked, so that the time does not tell who exists."""
        digest = hmac.new(self._key, f"{len(name)}:{name}{password}".encode(), hashlib.sha256).digest()
        if digest in self._right:
            return True
        stored_hash = self._settings.users.get(name)
        if not self._waiting.acquire(blocking=False):
            raise BadRequest("too many users sign in at this moment; try again in a few seconds", 429)
        try:
            with self._checks:
                _HASHER.verify(stored_hash or self._nobody, password)
        except (VerificationError, InvalidHashError):
            return False
        finally:
            self._waiting.release()
        if stored_hash is not None and len(self._right) < _KEPT:
            self._right[digest] = None
        return stored_hash is not None

    def _refuse_other_sites(self, request: Request) -> None:
        """Raise BadRequest for what a page of another site makes a browser send. Browsers send credentials
        along with such requests, and name the site. Where nobody signs in, a site could also give its own
        name the address 127.0.0.1; the host's name shows that."""
        host = request.headers.get("host", "")
        if not self._settings.protected and not is_loopback(_split(f"//{host}").hostname or ""):
            raise BadRequest("without users this server answers to localhost only", 403)
        if request.method in _SAFE:
            return
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") or (
            origin is not None and _split(origin).netloc != host
        ):
            raise BadRequest("this request was made by a page of another site", 403)


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # it is no address
        return urlsplit("")


def hashed(password: str) -> str:
    """Return the Argon2 hash of a password, with its salt and parameters, as a file of users has it."""
    return _HASHER.hash(password)


def read_users(path: Path) -> dict[str, str]:
    """Return the users of a file with a line ``NAME:HASH`` each; empty lines and those with ``#`` are passed
    over. Raises UsageError, which shows no hash, for a file without users, and for one that others may read
    or write."""
    users = {}
    for number, line in enumerate(_lines(path), 1):
        name, separator, password_hash = line.strip().partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not (name and separator and password_hash.startswith("$argon2")):
            raise UsageError(
                f"{path}: line {number} is no NAME:HASH; write it by 'spinney disbatch password'"
            )
        users[name] = password_hash
    if not users:
        raise UsageError(f"{path} has no user; add one by 'spinney disbatch password {path} NAME'")
    return users


def read_token(path: Path) -> str:
    """Return the token of a file, which is all that it has. Raises UsageError for a short one, and for a file
    that others may read or write."""
    token = "".join(_lines(path)).strip()
    if len(token) < 20 or any(character.isspace() for character in token):
        raise UsageError(
            f"{path} must have one token of 20 characters or more; 'openssl rand -hex 32' makes one"
        )
    return token


def _lines(path: Path) -> list[str]:
    """Return the lines of a file with secrets."""
    try:
        if path.stat().st_mode & 0o007:
            raise UsageError(f"others may read {path}; take that away by 'chmod o= {path}'")
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read {path}: {error}; correct its name, or make it readable for this user"
        ) from None
