"""This host, and how it can tell that processes of other nodes on it are gone."""

import socket
from dataclasses import dataclass
from pathlib import Path

from spinney.host import boot
from spinney.model.jobs import NodeInfo
from spinney.node import instance as instances
from spinney.node.instance import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """The host of the node that looks for dead ones: of nodes of the same host it can tell for certain whether they
    run."""

    host: str
    boot_id: str
    run_dir: Path
    """The run-time directory of its nodes, with their locks and pages."""
    folder_root: Path

    @classmethod
    def own(cls, run_dir: Path, folder_root: Path) -> "LocalHost":
        """Return the host of this process."""
        return cls(
            host=socket.gethostname(), boot_id=boot.boot_id(), run_dir=run_dir, folder_root=folder_root
        )

    def local(self, node: NodeInfo) -> bool:
        """Return whether the node runs, or ran, under the same boot of the same machine as this process."""
        return node.host == self.host and node.boot_id == self.boot_id

    def proven_gone(self, node: NodeInfo) -> bool:
        """Return whether all processes of the node are proven to be gone, because it ran here and its lock is free."""
        return self.local(node) and instances.is_gone(self.run_dir, instance_of(node))

    def within_reach(self, node: NodeInfo) -> bool:
        """Return whether this process sees the node's guard under the pid that the store has: on another host, or in
        another container, that pid is of another process."""
        return self.local(node) and instances.guarded(self.run_dir, instance_of(node))


def instance_of(node: NodeInfo) -> Instance:
    """Return the instance that joined as this node."""
    return Instance(name=node.name, pid=node.pid, started_us=node.started_us)
