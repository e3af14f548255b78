"""Passwords and their hashes: argon2id as argon2-cffi sets it, which is RFC 9106's second choice.

A hash takes some 50 ms and 64 MiB on purpose, so it is computed outside of any transaction, and only a few at once of
those that anybody can cause; argon2 is imported when it is first needed."""

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from spinney.model.errors import TooManyAttempts, UsageError
from spinney.model.rights.accounts import PASSWORD_MAX, require_password

if TYPE_CHECKING:
    from argon2 import PasswordHasher

AT_ONCE = 2
"""Passwords that one process verifies at the same time: more would take its memory, and every thread that it has."""
_room = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def room() -> Iterator[None]:
    """Bound how many passwords are verified at once. Raises TooManyAttempts at once when the limit is reached: before
    anything is counted, so that nobody clears a count by crowding."""
    if not _room.acquire(blocking=False):
        raise TooManyAttempts(1.0, why="too many users log in at this moment")
    try:
        yield
    finally:
        _room.release()


def hashed(password: str) -> str:
    """Return the hash of a new password. Raises UsageError for one that is too short, too long, or no text, and where
    argon2 is not installed."""
    plain = _plain(require_password(password))
    if plain is None:
        raise UsageError("a password is text that can be written as UTF-8; choose another")
    return _hasher()[0].hash(plain)


def fits(hash_: str | None, password: str) -> bool:
    """Return whether the password fits the hash. It takes as long where there is no hash, so that the time does not
    tell who has one."""
    from argon2.exceptions import InvalidHashError, VerifyMismatchError

    hasher, of_nothing = _hasher()
    plain = _plain(password) if len(password) <= PASSWORD_MAX else None
    try:
        matches = hasher.verify(hash_ or of_nothing, plain or "")
    except (VerifyMismatchError, InvalidHashError):
        return False
    return matches and hash_ is not None and plain is not None


def outdated(hash_: str) -> bool:
    """Return whether the hash is to be computed anew, because argon2-cffi uses other parameters today. That
    is possible only while the password is known: at a sign-in that succeeds."""
    return _hasher()[0].check_needs_rehash(hash_)


@cache
def _hasher() -> tuple["PasswordHasher", str]:
    """Return the hasher, and a hash that fits no user's password."""
    try:
        from argon2 import PasswordHasher
    except ImportError as error:
        raise UsageError(
            f"passwords need argon2-cffi ({error}); install it with 'pip install spinney[server]', or make users with "
            f"--no-password"
        ) from error
    hasher = PasswordHasher()
    return hasher, hasher.hash("\0")


def _plain(password: str) -> str | None:
    """Return the password in one normal form, however it was typed (as NIST SP 800-63B requires); None: no text."""
    try:
        password.encode()
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFKC", password)
