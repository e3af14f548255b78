"""What batches, jobs and access requests have in common: a status, a lock, and changes that only one client makes."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from kazoo.client import KazooClient

from spinney.bridges.merritt import codec, item_locks, layout, nodes
from spinney.bridges.merritt.errors import (
    MerrittConflict,
    MerrittError,
    MerrittLocked,
    MerrittStateError,
    MerrittZKNodeInvalid,
)
from spinney.bridges.merritt.item_locks import Lock
from spinney.bridges.merritt.states import State, is_deletable, require_transition
from spinney.bridges.merritt.transactions import OperationFailed, Transaction, Witness, with_retries

log = logging.getLogger(__name__)
_MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A batch, a job or an access request, as it was when it was read."""

    id: str
    """Its name, as ``bid0000000001``."""
    path: str
    state: State
    status: dict[str, Any]
    """The fields of its status node."""
    status_bytes: bytes = field(repr=False)
    version: int
    """The version of the status node. Each change of this library raises it, so that a late writer is refused."""
    lock: Lock | None = None
    """The lock of the item, where this client holds it."""

    @property
    def message(self) -> str:
        """The message of its status; empty where it has none."""
        return str(self.status.get("message") or "")

    @property
    def status_path(self) -> str:
        """The path of its status node."""
        return f"{self.path}/status"

    @property
    def lock_path(self) -> str:
        """The path of the node that locks it while it exists."""
        return f"{self.path}/lock"


_Item = TypeVar("_Item", bound=Item)


class Items(Generic[_Item]):
    """The verbs that batches, jobs and access requests share; each kind says how it is read. ``owner`` is
    what its locks say of their holder."""

    def __init__(self, client: KazooClient, owner: str) -> None:
        self._client = client
        self._owner = owner

    def _read(self, path: str) -> _Item:
        """Return the item at a path. Raises MerrittZKNodeInvalid where a node is missing or cannot be
        read."""
        raise NotImplementedError

    def lock(self, item: _Item) -> _Item:
        """Take the lock of an item and return the item as it is under the lock. Raises MerrittLocked where
        another client holds it, MerrittConflict where the item was changed since it was read, and
        MerrittZKNodeInvalid where it is gone."""
        return self._lock_with(item, lambda _, __: None)

    def _lock_with(self, item: _Item, claim: Callable[[Transaction, _Item], bytes | None]) -> _Item:
        """Lock an item in one transaction with what ``claim`` adds, which returns the new bytes of the status, or None
        to leave them. Return the item as it is under its lock, which is released where it cannot be read."""
        lock = item_locks.new_lock(item.lock_path, self._owner)
        transaction = Transaction(self._client)
        item_locks.add_lock(transaction, lock)
        data = claim(transaction, item) or item.status_bytes
        transaction.set(item.status_path, data, item.version)
        self._commit(transaction, item, Witness(lock.path, lock.note, item_locks.LOCK_VERSION))
        try:
            return replace(self._read(item.path), lock=lock)
        except MerrittZKNodeInvalid:
            item_locks.release(self._client, lock)
            raise

    def unlock(self, item: _Item) -> _Item:
        """Release the lock of an item and return the item without it. A lock that was lost stays with its holder."""
        if item.lock is not None:
            item_locks.release(self._client, item.lock)
        return replace(item, lock=None)

    def _change(
        self,
        item: _Item,
        status: dict[str, Any],
        write: Callable[[Transaction], None],
        *,
        unlock: bool = False,
        break_lock: bool = False,
        fields: Mapping[str, Any] | None = None,
    ) -> _Item:
        """Write the status and what ``write`` adds as one transaction, and return the item as it is after it, with
        ``fields`` changed.

        An item that this client has not locked is locked and unlocked by the same transaction, so that it fails where
        another client holds the lock; with ``break_lock`` it first deletes the lock, whoever holds it.
        """
        item = replace(item, lock=None) if break_lock else item
        # Fields of others stay, however large they are: what they have made too large can still be failed.
        most = codec.LARGEST + len(item.status_bytes)
        data = codec.object_bytes(item.status_path, status, most)

        def attempt() -> None:
            transaction = Transaction(self._client)
            if break_lock and self._exists(item.lock_path):
                transaction.delete(item.lock_path)
            self._guard(transaction, item)
            transaction.set(item.status_path, data, item.version)
            write(transaction)
            if item.lock is None or unlock:
                transaction.delete(item.lock_path)
            self._commit(transaction, item, Witness(item.status_path, data, item.version + 1))

        with_retries(attempt)
        lock = None if unlock else item.lock
        state = type(item.state)(status["status"])
        version = item.version + 1
        changed = replace(item, state=state, status=status, status_bytes=data, version=version, lock=lock)
        return replace(changed, **fields) if fields else changed

    def _set_state(self, item: _Item, state: State, message: str, unlock: bool) -> _Item:
        """Move an item to another state; to set the state that it has changes nothing."""
        if state is item.state and not unlock:
            return item
        status = dict(item.status)
        if state is not item.state:
            require_transition(item.path, item.state, state)
            status = status_fields(item.status, state, message)
        return self._change(item, status, lambda _: None, unlock=unlock)

    def _exists(self, path: str) -> bool:
        return path in nodes.existing(self._client, [path])

    def _guard(self, transaction: Transaction, item: _Item) -> None:
        """Let a transaction fail unless this client holds the item's lock, or, where it has not locked the
        item, nobody does."""
        if item.lock is None:
            item_locks.add_lock(transaction, item_locks.new_lock(item.lock_path, self._owner))
        else:
            item_locks.require_lock(transaction, item.lock)

    def _commit(self, transaction: Transaction, item: _Item, witness: Witness | None = None) -> None:
        """Commit, and raise what the caller can act upon; OperationFailed where others changed nodes beside."""
        try:
            transaction.commit(witness)
        except OperationFailed as failure:
            if failure.path == item.status_path:
                raise MerrittConflict(f"{item.path} has changed since; load it again.") from failure
            if failure.path != item.lock_path:
                raise
            if failure.action == "create" and not self._exists(item.path):
                raise MerrittZKNodeInvalid(f"{item.path} was deleted since it was read.") from failure
            raise item_locks.refusal(self._client, item.lock_path, failure) from failure

    def _acquire(
        self,
        paths: Sequence[str],
        claim: Callable[[Transaction, _Item], bytes | None],
        states: Collection[State],
    ) -> Iterator[_Item]:
        """Lock the items in ``states`` that nobody holds, one each time when the next is fetched.

        ``claim`` adds its changes as for ``_lock_with``. An item that cannot be read is passed over with a warning, so
        that it does not stop the queue.
        """
        for path in self._free(paths, states):
            try:
                item = self._read(path)
                if item.state not in states:
                    continue
                item = self._lock_with(item, claim)
            except (MerrittLocked, MerrittConflict, OperationFailed):
                continue  # another client was first
            except MerrittZKNodeInvalid as error:
                log.warning("%s is passed over: %s", path, error)
                continue
            yield item

    def _free(self, paths: Sequence[str], states: Collection[State]) -> Iterator[str]:
        """Yield the paths of items that nobody holds, but for those whose status says that they are in other states.

        They are read in rounds: first of one item, as a consumer alone needs no other, then of more.
        """
        start, size = 0, 1
        while some := paths[start : start + size]:
            locks = nodes.existing(self._client, [f"{path}/lock" for path in some])
            free = [path for path in some if f"{path}/lock" not in locks]
            yield from free if size == 1 else self._in_states(free, states)
            start, size = start + size, min(size * 4, _MOST_AT_ONCE)

    def _in_states(self, paths: Sequence[str], states: Collection[State]) -> Sequence[str]:
        """Return the paths of items whose status names one of these states, or is missing."""
        read = nodes.get_all(self._client, [f"{path}/status" for path in paths])
        names = [f'"{state}"'.encode() for state in states]
        return [
            path
            for path, status in zip(paths, read, strict=True)
            if status is None or any(name in status[0] for name in names)
        ]

    def _delete_tree(self, item: _Item, pointers: Iterable[str]) -> None:
        """Delete an item, all below it, and the nodes that point to it, as one transaction."""
        require_deletable(item)

        def attempt() -> None:
            transaction = Transaction(self._client)
            self.add_deletion(transaction, item, pointers)
            self._commit(transaction, item)

        with_retries(attempt)

    def add_deletion(self, transaction: Transaction, item: _Item, pointers: Iterable[str]) -> None:
        """Let a transaction delete the item with its pointers; it fails where another client holds the lock."""
        self._guard(transaction, item)
        transaction.check(item.status_path, item.version)
        existing = nodes.existing(self._client, pointers)
        below = [
            path for path in nodes.subtree(self._client, item.path) if path not in (item.lock_path, item.path)
        ]
        for path in (*existing, *below, item.lock_path, item.path):
            if not transaction.has("delete", path):
                transaction.delete(path)

    def _load_all(self, paths: Sequence[str], state: State | None = None) -> list[_Item]:
        """Return the items that can be read, or those in a state; ``check`` reports what cannot be read."""
        items = []
        for path in paths if state is None else self._in_states(paths, (state,)):
            try:
                item = self._read(path)
                if state in (None, item.state):
                    items.append(item)
            except MerrittError as error:
                log.warning("%s is not listed: %s", path, error)
        return items


def status_fields(before: codec.Fields, state: State, message: str = "") -> dict[str, Any]:
    """Return the status of an item that enters ``state``; fields that others added stay."""
    message = codec.short_message(message)
    return {**before, "status": state, "last_modified": codec.now_text(), "message": message}


def require_deletable(item: Item) -> None:
    """Raise MerrittStateError unless the item is in a state that no other state follows."""
    if not is_deletable(item.state):
        raise MerrittStateError(f"{item.path} is {item.state}; only what is Completed or Deleted is deleted.")


def read_item(
    client: KazooClient, path: str, kind: Callable[[str], State], parts: Sequence[str] = ()
) -> tuple[dict[str, Any], list[bytes | None]]:
    """Return the fields that every item has, and the data of further parts, all read in one round.

    Raises MerrittZKNodeInvalid.
    """
    first, *others = nodes.get_all(client, [f"{path}/{name}" for name in ("status", *parts)])
    if first is None:
        raise MerrittZKNodeInvalid(f"{path}/status is missing; run a check.")
    data, version = first
    status = codec.read_object(f"{path}/status", data)
    try:
        state = kind(status.get("status", ""))
    except ValueError:
        message = f"{path}/status has the unknown status {status.get('status')!r}; run a check."
        raise MerrittZKNodeInvalid(message) from None
    fields = {"id": layout.name(path), "path": path, "state": state, "status": status}
    return fields | {"status_bytes": data, "version": version}, [nodes.data_of(each) for each in others]
