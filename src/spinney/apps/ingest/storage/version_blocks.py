"""Writes a put's key, message and user into a version's block, and reads them again."""

import re
from email.utils import parseaddr
from urllib.parse import quote

from spinney.files.paths import NotAdmitted, shown

TRAILER = "Spinney-Key: "
_KEY_MAX = 200
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def checked_key(key: str) -> str:
    """Return a key if it is valid; otherwise raise NotAdmitted."""
    if not 0 < len(key) <= _KEY_MAX or not key.isprintable() or key != key.strip():
        raise NotAdmitted(
            f"'{shown(key[:_KEY_MAX])}' cannot be a put's key; give up to {_KEY_MAX} printable characters on one line"
        )
    return key


def with_key(message: str, key: str) -> str:
    """Return the message of a version with the key as its last line, so that no line of the message is read as one."""
    plain = message.encode("utf-8", "backslashreplace").decode().strip()
    return f"{plain}\n\n{TRAILER}{key}" if plain else f"{TRAILER}{key}"


def key_of(message: object) -> str | None:
    """Return the key in a version's message, or None when there is none."""
    if not isinstance(message, str):
        return None
    last = message.rpartition("\n")[2]
    return last.removeprefix(TRAILER) if last.startswith(TRAILER) else None


def message_of(message: object) -> str:
    """Return a version's message without the key."""
    if not isinstance(message, str):
        return ""
    return message.rpartition("\n")[0].rstrip() if key_of(message) is not None else message


def user_block(user: str) -> dict[str, str]:
    """Return the user of a version: a name, and a ``mailto:`` URI when an address is given (RFC 6068)."""
    plain = user.encode("utf-8", "backslashreplace").decode().strip() or "unknown"
    name, address = parseaddr(plain)
    if not _ADDRESS.fullmatch(address):
        return {"name": plain}
    return {"name": name or address, "address": f"mailto:{quote(address, safe='@+')}"}


def name_of(user: object) -> str:
    """Return the name in a version's user; empty when there is none."""
    return str(user.get("name", "")) if isinstance(user, dict) else ""
