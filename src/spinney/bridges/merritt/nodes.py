"""Reading nodes, many in one round, and lists that are made when they are first needed."""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.interfaces import IAsyncResult

from spinney.bridges.merritt import layout
from spinney.bridges.merritt.errors import MerrittZKNodeInvalid
from spinney.bridges.merritt.transactions import Transaction

_AT_ONCE = 500
"""The most requests that are sent before their answers are read."""


def get(client: KazooClient, path: str) -> tuple[bytes, int]:
    """Return data and version of a node. Raises MerrittZKNodeInvalid where it is missing."""
    (node,) = get_all(client, [path])
    if node is None:
        raise MerrittZKNodeInvalid(f"{path} is missing; run a check.")
    return node


def get_all(client: KazooClient, paths: Iterable[str]) -> list[tuple[bytes, int] | None]:
    """Return data and version of several nodes, read in one round, with None for each that is missing."""
    answers = in_rounds(client, client.get_async, paths)
    return [None if answer is None else (answer[0] or b"", answer[1].version) for answer in answers]


def data_of(node: tuple[bytes, int] | None) -> bytes | None:
    """Return the data of a node that ``get_all`` has read. None: it does not exist."""
    return None if node is None else node[0]


def counts(client: KazooClient, paths: Iterable[str]) -> list[int | None]:
    """Return how many children several nodes have, read in one round, with None for each that is missing."""
    stats = in_rounds(client, client.exists_async, paths)
    return [None if stat is None else stat.numChildren for stat in stats]


def versions(client: KazooClient, paths: Iterable[str]) -> list[int | None]:
    """Return the versions of several nodes, read in one round, with None for each that is missing."""
    stats = in_rounds(client, client.exists_async, paths)
    return [None if stat is None else stat.version for stat in stats]


def existing(client: KazooClient, paths: Iterable[str]) -> set[str]:
    """Return which of these nodes exist."""
    paths = list(paths)
    return {path for path, count in zip(paths, counts(client, paths), strict=True) if count is not None}


def in_rounds(client: KazooClient, ask: Callable[[str], IAsyncResult], paths: Iterable[str]) -> list[Any]:
    """Send many requests before their answers are read, and return the answers in order, None for missing
    nodes. A round that a lost connection interrupts is sent again as a whole, since it only reads."""
    paths = list(paths)

    def read(some: list[str]) -> list[Any]:
        return [_answer(each) for each in [ask(path) for path in some]]

    rounds = (paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE))
    return [answer for some in rounds for answer in client.retry(read, some)]


def _answer(result: IAsyncResult) -> Any:
    try:
        return result.get()
    except NoNodeError:
        return None


def children(client: KazooClient, path: str) -> list[str]:
    """Return the names of a node's children in order; none where it is missing."""
    try:
        return sorted(client.retry(client.get_children, path))
    except NoNodeError:
        return []


def subtree(client: KazooClient, path: str) -> list[str]:
    """Return all paths from the leaves up to ``path`` itself, in an order in which they can be deleted."""
    below = [each for name in children(client, path) for each in subtree(client, f"{path}/{name}")]
    return [*below, path]


def replace(client: KazooClient, transaction: Transaction, old: Iterable[str], new: Iterable[str]) -> None:
    """Add nodes without data to a transaction in place of others, with the lists above them that are missing.

    Old ones that are missing and new ones that exist are left as they are. Raises MerrittZKNodeInvalid where the item
    is missing to which a new node would belong.
    """
    old, new = set(old), set(new)
    new_paths = new | {above for path in new for above in _lists_above(path)}
    there = existing(client, old | new_paths)
    for path in sorted((old - new) & there):
        transaction.delete(path)
    for path in sorted(new_paths - there):
        if transaction.has("create", path):
            continue
        if layout.parent(path) == layout.BATCHES:
            raise MerrittZKNodeInvalid(f"{path} is missing, to which {min(new)} would belong; run a check.")
        transaction.create(path)


def _lists_above(path: str) -> Iterable[str]:
    parts = path.split("/")
    above = ("/".join(parts[:end]) for end in range(len(parts) - 1, 1, -1))
    return takewhile(lambda each: each not in (layout.BATCHES, layout.JOBS), above)
