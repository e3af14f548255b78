"""All nodes of the queue, read at about one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kazoo.client import KazooClient

from spinney.bridges.merritt import layout
from spinney.bridges.merritt.nodes import in_rounds

_ROOTS: Final = (layout.BATCHES, layout.BATCH_UUIDS, layout.JOBS, layout.ACCESS, layout.LOCKS)


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
        contents = in_rounds(client, client.get_async, level)
        children = in_rounds(client, client.get_children_async, level)
        deeper: list[str] = []
        for path, content, names in zip(level, contents, children, strict=True):
            if content is not None and names is not None:
                data, stat = content
                below = tuple(sorted(names))
                nodes[path] = Node(data or b"", stat.version, stat.ctime / 1000, stat.ephemeralOwner, below)
                deeper += [f"{path}/{name}" for name in below]
        level = deeper
    return nodes
