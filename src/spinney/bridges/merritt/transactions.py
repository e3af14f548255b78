"""Several nodes written as one ZooKeeper transaction, and what its failure means."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kazoo import exceptions as zk
from kazoo.client import KazooClient

from spinney.bridges.merritt.errors import (
    MerrittCommitUncertain,
    MerrittConflict,
    MerrittError,
    MerrittZKNodeInvalid,
)
from spinney.bridges.merritt.layout import sequence_name

_Result = TypeVar("_Result")
# Errors after which ZooKeeper may or may not have done a transaction.
_CONNECTION = (zk.ConnectionLoss, zk.ConnectionClosedError, zk.SessionExpiredError, zk.OperationTimeoutError)
# What ZooKeeper answers for the other operations of a transaction of which one failed.
_CONSEQUENCES = (zk.RolledBackError, zk.RuntimeInconsistency)
_MOST_TRIES = 100
_WITNESS_S = 10.0
"""How long a witness may take to answer, most of it for the new connection. Without a limit, the answer would be waited
for as long as the server is away."""
ANY_VERSION = -1


class Witness(NamedTuple):
    """A node that shows whether a transaction was committed, where the connection was lost before the answer."""

    path: str
    data: bytes
    version: int


class OperationFailed(Exception):
    """One operation failed, so that ZooKeeper did none of its transaction. ``action`` and ``path`` say which,
    and ``cause`` is the error of kazoo."""

    def __init__(self, action: str, path: str, cause: Exception) -> None:
        super().__init__(f"{action} {path}: {type(cause).__name__}")
        self.action = action
        self.path = path
        self.cause = cause


class Transaction:
    """Operations that ZooKeeper does all or none. They are collected here, and sent by ``commit``, once."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._request = client.transaction()
        self._operations: list[tuple[str, str]] = []
        self._actions: set[tuple[str, str]] = set()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        """Create a node; the transaction fails where it exists."""
        self._request.create(path, data, ephemeral=ephemeral)
        self._note("create", path)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> None:
        """Set a node's data; the transaction fails where the node has another version."""
        self._request.set_data(path, data, version)
        self._note("set", path)

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node; the transaction fails where it is missing or has children."""
        self._request.delete(path, version)
        self._note("delete", path)

    def check(self, path: str, version: int = ANY_VERSION) -> None:
        """Let the transaction fail where the node is missing or has another version."""
        self._request.check(path, version)
        self._note("check", path)

    def require_absent(self, path: str) -> None:
        """Let the transaction fail where the node exists. ZooKeeper has no such check, so it is created and deleted."""
        self.create(path)
        self.delete(path)

    def has(self, action: str, path: str) -> bool:
        """Tell whether the transaction does this to the node: create, set, delete or check."""
        return (action, path) in self._actions

    def __len__(self) -> int:
        return len(self._operations)

    def commit(self, witness: Witness | None = None) -> None:
        """Commit all operations of the transaction, or none.

        Raises OperationFailed with the first that failed, and MerrittCommitUncertain where the connection was lost and
        the witness does not show that the transaction was committed.
        """
        try:
            results = self._request.commit()
        except _CONNECTION as error:
            if witness is None or not self._shows(witness):
                raise MerrittCommitUncertain(
                    f"The connection to ZooKeeper was lost ({type(error).__name__}) before it said whether "
                    f"{self._operations[0][1]} was written. Read it again before you repeat the change."
                ) from error
            return
        for (action, path), result in zip(self._operations, results, strict=True):
            if isinstance(result, zk.NoAuthError):
                raise MerrittError(f"This client has no right to {action} {path}; nothing was written.")
            if isinstance(result, Exception) and not isinstance(result, _CONSEQUENCES):
                raise OperationFailed(action, path, result)

    def _note(self, action: str, path: str) -> None:
        self._operations.append((action, path))
        self._actions.add((action, path))

    def _shows(self, witness: Witness) -> bool:
        try:
            data, stat = self._client.get_async(witness.path).get(timeout=_WITNESS_S)
        except (zk.KazooException, self._client.handler.timeout_exception):
            return False
        return bool(data == witness.data and stat.version == witness.version)


def create_numbered(
    client: KazooClient, parent: str, prefix: str, write: Callable[[Transaction, str], Witness | None]
) -> str:
    """Create a node with the next number of ``parent`` and everything below it, and return its name.

    ``write`` adds what is below it, and returns the witness of the transaction, if there is one. It is called
    again when another client was first.

    A sequential node gets its name when it is created, too late for its children to be in the same
    transaction. Its number is that of the children that the parent has had, which the parent's record shows.
    So the name is foretold, and where another client was first, the transaction fails as a whole and is made
    anew."""

    def attempt() -> str:
        name = next_name(client, parent, prefix)
        transaction = Transaction(client)
        transaction.create(f"{parent}/{name}")
        transaction.commit(write(transaction, name))
        return name

    return with_retries(attempt)


def next_name(client: KazooClient, parent: str, prefix: str) -> str:
    """Return the name that the next sequential node below ``parent`` would get. Raises MerrittZKNodeInvalid when there
    is no such node."""
    stat = client.retry(client.exists, parent)
    if stat is None:
        raise MerrittZKNodeInvalid(f"{parent} is missing; call initialize() once to make the queue's nodes.")
    # ``cversion`` counts children that were created and those that were deleted.
    return sequence_name(prefix, (stat.cversion + stat.numChildren) // 2)


def with_retries(attempt: Callable[[], _Result]) -> _Result:
    """Return what ``attempt`` returns, and call it again while other clients create or delete the nodes beside it.
    Raises MerrittConflict when something else has changed, or others were first too often."""
    for _ in range(_MOST_TRIES):
        try:
            return attempt()
        except OperationFailed as failure:
            if not isinstance(failure.cause, zk.NodeExistsError | zk.NoNodeError | zk.NotEmptyError):
                raise MerrittConflict(f"{failure}; read it again and decide again.") from failure
            last: Any = failure
    raise MerrittConflict(f"Other clients were first {_MOST_TRIES} times; try again later.") from last
