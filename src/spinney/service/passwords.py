"""Passwords and their hashes: argon2id as argon2-cffi sets it, which is RFC 9106's second choice.

A hash takes some 50 ms and 64 MiB on purpose, so it is computed outside of any transaction, and those that anybody can
ask for only so many at once; argon2 is loaded where one is asked for.
"""

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
    """Around what anybody can ask for. Raises TooManyAttempts, without waiting, where others have taken it all:
    before anything is counted, so that nobody clears a count by crowding."""
    if not _room.acquire(blocking=False):
        raise TooManyAttempts(1.0, why="many log in at this moment")
    try:
        yield
    finally:
        _room.release()


def hashed(password: str) -> str:
    """The hash of a new password. Raises UsageError for one that is too short, too long, or no text; and where
    argon2 is not installed."""
    plain = _plain(require_password(password))
    if plain is None:
        raise UsageError("a password is text that can be written as UTF-8; choose another")
    return _hasher()[0].hash(plain)


def fits(hash_: str | None, password: str) -> bool:
    """Whether it is that password. Takes as long where there is no hash: time tells nobody who has one."""
    from argon2.exceptions import InvalidHashError, VerifyMismatchError

    hasher, of_nothing = _hasher()
    plain = _plain(password) if len(password) <= PASSWORD_MAX else None
    try:
        found = hasher.verify(hash_ or of_nothing, plain or "")
    except (VerifyMismatchError, InvalidHashError):
        return False
    return found and hash_ is not None and plain is not None


def outdated(hash_: str) -> bool:
    """Whether it is to be computed anew, because argon2-cffi would set it otherwise today."""
    return _hasher()[0].check_needs_rehash(hash_)


@cache
def _hasher() -> tuple["PasswordHasher", str]:
    """With the hash of what is nobody's password."""
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
    """The same text however it was typed (NIST SP 800-63B asks for it); None: no text."""
    try:
        password.encode()
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFKC", password)
