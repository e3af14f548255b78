"""All nodes of the queue, read at about one moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from spinney.bridges.merritt import layout

_ROOTS: Final = (layout.BATCHES, layout.BATCH_UUIDS, layout.JOBS, layout.ACCESS, layout.LOCKS)
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Node:
    """One node as it was when it was read."""

    data: bytes
    version: int
    created_s: float
    """When ZooKeeper created it, in seconds since 1970."""
    session: int
    """The session of an ephemeral node, else 0."""
    children: tuple[str, ...]


Snapshot = Mapping[str, Node]
"""Nodes by path."""


def read(client: KazooClient) -> dict[str, Node]:
    """Return all nodes of the queue, read level by level, many in one round. What vanishes meanwhile is left
    out. It is no snapshot of one moment: ZooKeeper has none over several nodes."""
    nodes: dict[str, Node] = {}
    level = list(_ROOTS)
    while level:
        deeper: list[str] = []
        for start in range(0, len(level), _AT_ONCE):
            for path, node in _read_some(client, level[start : start + _AT_ONCE]):
                nodes[path] = node
                deeper += [f"{path}/{name}" for name in node.children]
        level = deeper
    return nodes


def _read_some(client: KazooClient, paths: Iterable[str]) -> Iterable[tuple[str, Node]]:
    requests = [(path, client.get_async(path), client.get_children_async(path)) for path in paths]
    for path, data_answer, children_answer in requests:
        try:
            data, stat = data_answer.get()
            names = children_answer.get()
        except NoNodeError:
            continue
        yield (
            path,
            Node(data or b"", stat.version, stat.ctime / 1000, stat.ephemeralOwner, tuple(sorted(names))),
        )
