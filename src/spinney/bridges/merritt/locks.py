"""Merritt's locks outside items: of queues and collections, set by staff, and of objects, held while work goes on.

Those of queues and collections stay until they are removed, and have no data. Those of objects in storage and inventory
and of local ids are ephemeral, and say who holds them.
"""

from typing import Literal

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from spinney.bridges.merritt import item_locks, layout
from spinney.bridges.merritt.item_locks import Lock
from spinney.bridges.merritt.nodes import children, existing
from spinney.bridges.merritt.transactions import OperationFailed, Transaction, Witness

QueueName = Literal["ingest", "accessSmall", "accessLarge"]


class Locks:
    """The locks below ``/locks``: of queues and collections, which stay until removed, and of objects and
    local ids, which die with their owner. Nothing here waits for a lock."""

    def __init__(self, client: KazooClient, owner: str) -> None:
        self._client = client
        self._owner = owner

    def lock_queue(self, queue: QueueName) -> bool:
        """Stop consumers of a queue from taking more; False where it is stopped already."""
        return self._set(_queue_lock(queue))

    def unlock_queue(self, queue: QueueName) -> bool:
        """Let consumers of a queue go on; False where it was not stopped."""
        return self._remove(_queue_lock(queue))

    def queue_is_locked(self, queue: QueueName) -> bool:
        """Tell whether consumers of a queue must not take more."""
        path = _queue_lock(queue)
        return path in existing(self._client, [path])

    def lock_collection(self, mnemonic: str) -> bool:
        """Let new work for a collection be held; False where it is already."""
        return self._set(_named("collections", mnemonic))

    def unlock_collection(self, mnemonic: str) -> bool:
        """Let new work for a collection pass; False where it passed. What is held is released job by job."""
        return self._remove(_named("collections", mnemonic))

    def locked_collections(self) -> list[str]:
        """Return the mnemonics of collections whose new work is held."""
        return children(self._client, f"{layout.LOCKS}/collections")

    def lock_storage(self, ark: str) -> Lock | None:
        """Take the lock of an object in storage; None where somebody holds it."""
        return self._take(_named("storage", layout.object_lock_name(ark)))

    def lock_inventory(self, ark: str) -> Lock | None:
        """Take the lock of an object in the inventory; None where somebody holds it."""
        return self._take(_named("inventory", layout.object_lock_name(ark)))

    def lock_local_id(self, local_id: str, owner: str) -> Lock | None:
        """Take the lock of a local id of an owner, under which an ARK is minted; None where somebody holds it."""
        return self._take(_named("localid", layout.object_lock_name(local_id + owner)))

    def unlock(self, lock: Lock) -> bool:
        """Release a lock; False: it was lost before, and whoever holds it now keeps it."""
        return item_locks.release(self._client, lock)

    def holder(self, lock_path: str) -> str | None:
        """Return who holds a lock and since when, in words; None when nobody does."""
        return item_locks.holder(self._client, lock_path)

    def _take(self, path: str) -> Lock | None:
        """Take a lock that ends with the session; return None where somebody holds it."""
        lock = item_locks.new_lock(path, self._owner)
        self._client.ensure_path(layout.parent(path))
        transaction = Transaction(self._client)
        item_locks.add_lock(transaction, lock)
        try:
            transaction.commit(Witness(path, lock.note, item_locks.LOCK_VERSION))
        except OperationFailed as failure:
            if isinstance(failure.cause, NodeExistsError):
                return None
            raise
        return lock

    def _set(self, path: str) -> bool:
        """Make a lock that stays; return False where it is there."""
        try:
            self._client.retry(self._client.create, path, makepath=True)
        except NodeExistsError:
            return False
        return True

    def _remove(self, path: str) -> bool:
        """Remove a lock that stays; return False where there is none."""
        try:
            self._client.retry(self._client.delete, path)
        except NoNodeError:
            return False
        return True


def _queue_lock(queue: QueueName) -> str:
    if queue not in layout.QUEUE_LOCKS:
        raise ValueError(f"Locks of queues are {', '.join(layout.QUEUE_LOCKS)}, not {queue!r}.")
    return f"{layout.LOCKS}/queue/{queue}"


def _named(kind: str, name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"A lock needs a name that is not a path, not {name!r}.")
    return f"{layout.LOCKS}/{kind}/{name}"
