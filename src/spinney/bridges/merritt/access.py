"""Access requests: objects and versions to be assembled for download, in a queue of small and one of large ones."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from spinney.bridges.merritt import codec, layout
from spinney.bridges.merritt.codec import Fields
from spinney.bridges.merritt.errors import MerrittConflict, MerrittLocked, MerrittZKNodeInvalid
from spinney.bridges.merritt.items import Item, Items, read_item, status_fields
from spinney.bridges.merritt.nodes import children
from spinney.bridges.merritt.states import AccessState
from spinney.bridges.merritt.transactions import Transaction, create_numbered

AccessQueue = Literal["small", "large"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest(Item):
    """An access request as it was when it was read; it does not follow later changes."""

    queue: AccessQueue
    state: AccessState
    token: dict[str, Any]
    """The request: token, delivery-node, cloud-content-byte, status, url, anticipated-availability-time."""


class AccessRequests(Items[AccessRequest]):
    """The access queues: ``/access/small`` and ``/access/large``."""

    def create(self, queue: AccessQueue, token: Fields) -> AccessRequest:
        """Create a request in Pending, with all its nodes in one transaction, and return it. Raises
        MerrittNodeTooLarge for a token that belongs into a file, and ValueError for another queue."""

        def write(transaction: Transaction, request_id: str) -> None:
            add_request(transaction, queue, request_id, token, status_fields({}, AccessState.PENDING))

        return self.load(queue, create_numbered(self._client, _queue_path(queue), "qid", write))

    def load(self, queue: AccessQueue, request_id: str) -> AccessRequest:
        """Return a request. Raises MerrittZKNodeInvalid where a node is missing or cannot be read."""
        return self._read(f"{_queue_path(queue)}/{request_id}")

    def acquire(self, queue: AccessQueue, state: AccessState = AccessState.PENDING) -> AccessRequest | None:
        """Lock the first request in ``state`` that no client holds, and return it; None when there is none. Its state
        stays.

        A request in Processing without a lock was requeued after a failure, or its client has died.
        """
        return next(self._acquire(self._paths(queue), lambda _, __: None, (state,)), None)

    def set_status(
        self, request: AccessRequest, state: AccessState, *, message: str = "", unlock: bool = False
    ) -> AccessRequest:
        """Move a request to another state and return it as it is then. Raises MerrittStateError where the state may not
        follow, MerrittLocked where another client holds the lock or this one has lost it, and MerrittConflict where the
        request was changed since it was read."""
        return self._set_state(request, state, message, unlock)

    def set_token(self, request: AccessRequest, token: Fields) -> AccessRequest:
        """Write the request's fields again, such as the URL of what was assembled. Raises MerrittNodeTooLarge, and
        MerrittLocked and MerrittConflict as ``set_status``."""
        path = f"{request.path}/token"
        data = codec.object_bytes(path, token)
        return self._change(
            request, request.status, lambda write: write.set(path, data), fields={"token": dict(token)}
        )

    def delete(self, request: AccessRequest) -> None:
        """Delete a request that is Completed or Deleted. Raises MerrittStateError otherwise, and
        MerrittLocked and MerrittConflict as ``set_status``."""
        self._delete_tree(request, ())

    def delete_completed(self) -> Sequence[str]:
        """Delete all requests of both queues that are Completed or Deleted, and return their ids; those in use are
        left."""
        deleted = []
        for queue in layout.ACCESS_QUEUES:
            for request in self.list(queue):
                if request.state in (AccessState.COMPLETED, AccessState.DELETED):
                    with suppress(MerrittConflict, MerrittLocked, MerrittZKNodeInvalid):
                        self.delete(request)
                        deleted.append(f"{queue}/{request.id}")
        return deleted

    def list(self, queue: AccessQueue, state: AccessState | None = None) -> list[AccessRequest]:
        """Return the requests of a queue in order, or those in a state. One that cannot be read is left out
        with a warning."""
        return self._load_all(self._paths(queue), state)

    def counts(self, queue: AccessQueue) -> dict[AccessState, int]:
        """Return how many requests of a queue are in each state; every state is a key. All requests are
        read."""
        states = [request.state for request in self.list(queue)]
        return {state: states.count(state) for state in AccessState}

    def _paths(self, queue: AccessQueue) -> Sequence[str]:
        return [f"{_queue_path(queue)}/{name}" for name in children(self._client, _queue_path(queue))]

    def _read(self, path: str) -> AccessRequest:
        item, (token,) = read_item(self._client, path, AccessState, ("token",))
        return AccessRequest(
            **item,
            queue="small" if layout.name(layout.parent(path)) == "small" else "large",
            token=codec.read_object(f"{path}/token", token),
        )


def add_request(
    transaction: Transaction, queue: AccessQueue, request_id: str, token: Fields, status: Fields
) -> None:
    """Add the nodes of a new request to a transaction that creates the request's own node."""
    path = f"{_queue_path(queue)}/{request_id}"
    transaction.create(f"{path}/token", codec.object_bytes(f"{path}/token", token))
    transaction.create(f"{path}/status", codec.object_bytes(f"{path}/status", status))


def _queue_path(queue: AccessQueue) -> str:
    if queue not in layout.ACCESS_QUEUES:
        raise ValueError(f"The access queues are small and large, not {queue!r}.")
    return f"{layout.ACCESS}/{queue}"
