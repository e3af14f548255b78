"""Reading nodes, and lists that are made when they are first needed."""

from collections.abc import Iterable

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.interfaces import IAsyncResult

from spinney.bridges.merritt import layout
from spinney.bridges.merritt.errors import MerrittZKNodeInvalid
from spinney.bridges.merritt.transactions import Transaction


def get(client: KazooClient, path: str) -> tuple[bytes, int]:
    """Return data and version of a node. Raises MerrittZKNodeInvalid where it is missing."""
    try:
        data, stat = client.retry(client.get, path)
    except NoNodeError:
        raise MerrittZKNodeInvalid(f"{path} is missing; run a check.") from None
    return data or b"", stat.version


def get_all(client: KazooClient, paths: Iterable[str]) -> list[bytes | None]:
    """Return the data of several nodes in one round, with None for each that is missing."""
    paths = list(paths)

    def read() -> list[bytes | None]:
        answers = [client.get_async(path) for path in paths]
        return [_data(answer) for answer in answers]

    data: list[bytes | None] = client.retry(read)
    return data


def _data(answer: IAsyncResult) -> bytes | None:
    try:
        return answer.get()[0] or b""
    except NoNodeError:
        return None


def children(client: KazooClient, path: str) -> list[str]:
    """Return the names of a node's children in order; none where it is missing."""
    try:
        return sorted(client.retry(client.get_children, path))
    except NoNodeError:
        return []


def subtree(client: KazooClient, path: str) -> list[str]:
    """Return all paths from the leaves up to ``path`` itself."""
    below = [each for name in children(client, path) for each in subtree(client, f"{path}/{name}")]
    return [*below, path]


def add_with_parents(client: KazooClient, transaction: Transaction, path: str) -> None:
    """Add a node without data to a transaction, and the lists above it that are missing.

    Raises MerrittZKNodeInvalid where the item is missing to which it would belong.
    """
    missing: list[str] = []
    above = layout.parent(path)
    while not transaction.has("create", above) and not client.retry(client.exists, above):
        if layout.parent(above) == layout.BATCHES:
            raise MerrittZKNodeInvalid(f"{above} is missing, to which {path} would belong; run a check.")
        missing.insert(0, above)
        above = layout.parent(above)
    for each in (*missing, path):
        transaction.create(each)
