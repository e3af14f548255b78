"""Locks of single items: an ephemeral node below the item, gone with its owner's session.

A lock of this library tells people who holds it and since when; Merritt's own are empty. Its node is written twice in
its first transaction, so that its version is 1 and differs from that of a lock that another library took since.
"""

import json
import os
import secrets
import socket
from dataclasses import dataclass
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from spinney.bridges.merritt import codec
from spinney.bridges.merritt.errors import MerrittLocked
from spinney.bridges.merritt.transactions import OperationFailed, Transaction

LOCK_VERSION: Final = 1
"""The version of a node that a lock of this library has; see above."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that this client holds."""

    path: str
    note: bytes
    """What the node has: owner, time and a token, by which the holder knows it as its own."""


def default_owner() -> str:
    """Return host and process id, by which people find the holder of a lock."""
    return f"{socket.gethostname()}:{os.getpid()}"


def new_lock(path: str, owner: str) -> Lock:
    """Return a lock of this owner that is not taken yet; ``add_lock`` takes it."""
    note = {"owner": owner, "time": codec.now_text(), "token": secrets.token_hex(8)}
    return Lock(path, codec.object_bytes("a lock", note))


def holder(client: KazooClient, path: str) -> str | None:
    """Return who holds the lock and since when, in words; None when nobody does."""
    try:
        data, stat = client.retry(client.get, path)
    except NoNodeError:
        return None
    session = (
        f"session 0x{stat.ephemeralOwner:x}"
        if stat.ephemeralOwner
        else "no session: it must be deleted by hand"
    )
    try:
        note = json.loads(data)
        return f"{note['owner']} since {note['time']} ({session})"
    except (ValueError, KeyError, TypeError):
        return f"another library ({session})"


def add_lock(transaction: Transaction, lock: Lock, *, ephemeral: bool = True) -> None:
    """Have a transaction take the lock; it fails where another client holds it. Without ``ephemeral`` the lock stays
    when the session ends."""
    transaction.create(lock.path, ephemeral=ephemeral)
    transaction.set(lock.path, lock.note)


def require_lock(transaction: Transaction, lock: Lock) -> None:
    """Let the transaction fail where the lock is gone or another library has it."""
    transaction.check(lock.path, LOCK_VERSION)


def refusal(client: KazooClient, path: str, failure: OperationFailed) -> MerrittLocked:
    """Return the error for an operation on a lock's node that failed."""
    if failure.action == "check":
        return MerrittLocked(
            f"{path} is no longer held: the session that took it has ended, or somebody broke the lock. Stop this "
            "work; who holds the lock now goes on with it."
        )
    return MerrittLocked(
        f"{path} is held by {holder(client, path) or 'a client that just let it go'}; try again later."
    )


def release(client: KazooClient, lock: Lock) -> bool:
    """Delete the lock's node if it is still this lock's, and return whether it was."""
    try:
        data, stat = client.retry(client.get, lock.path)
        if data != lock.note:
            return False
        client.retry(client.delete, lock.path, version=stat.version)
    except NoNodeError:
        return False
    return True
