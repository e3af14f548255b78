"""Marks of what is ours, beside Merritt's own nodes: ``/spinney``, which none of its services and tools looks at.

    /spinney/identity             names this ZooKeeper tree for ever: in the keys of jobs
    /spinney/nodes/NODE           the mark of the store that works under this name
    /spinney/nodes/NODE/JID       a job that this node has taken, with its claim
    /spinney/batches/BID          a batch whose jobs are being created

The lock of a job dies with its holder's session; its mark stays, so that a node that was killed knows its jobs."""

import json
import secrets
import uuid
from contextlib import suppress

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from spinney.bridges.foreign import ForeignAway
from spinney.bridges.merritt import Job
from spinney.bridges.merritt.nodes import children

ROOT = "/spinney"
BATCHES = f"{ROOT}/batches"


def identity(client: KazooClient) -> str:
    """Return the name of this ZooKeeper tree, which is written at the first look."""
    path = f"{ROOT}/identity"
    with suppress(NodeExistsError):
        client.retry(client.create, path, uuid.uuid4().hex[:12].encode(), makepath=True)
    return str(client.retry(client.get, path)[0].decode())


def release_own_lock(client: KazooClient, path: str, owner: str) -> None:
    """Delete the lock of an item that this node holds without knowing it: it was killed, or the connection was lost
    before an answer. No other process writes this owner: its name is locked on its host, and its mark names its store.
    """
    try:
        data, stat = client.retry(client.get, path)
        if owner_of(data) == owner:
            client.retry(client.delete, path, version=stat.version)
    except (NoNodeError, BadVersionError):
        return  # nobody's, or another one's by now


def owner_of(note: bytes) -> str | None:
    """Return the owner that a lock names; None for a lock of another library."""
    try:
        return str(json.loads(note)["owner"])
    except (ValueError, KeyError, TypeError):
        return None


class Marks:
    """The marks of one node."""

    def __init__(self, client: KazooClient, node: str) -> None:
        self._client = client
        self.path = f"{ROOT}/nodes/{node}"

    def enter(self, store: str) -> None:
        """Write the mark of a store. Raises ForeignAway where another store works under this name."""
        self._client.ensure_path(f"{ROOT}/nodes")
        self._client.ensure_path(BATCHES)
        try:
            self._client.retry(self._client.create, self.path, store.encode())
        except NodeExistsError:
            other = self._client.retry(self._client.get, self.path)[0].decode()
            if other != store:
                raise ForeignAway(
                    f"another store of Spinney works as {self.path.rpartition('/')[2]!r}; give this one another "
                    f"--name, or delete the node {self.path} with all below it if that store is gone for good"
                ) from None

    def jobs(self) -> list[str]:
        """Return the ids of the jobs that this node has taken."""
        return children(self._client, self.path)

    def claim(self, job_id: str) -> str | None:
        """Return the claim under which a job was taken; None for one that is not ours."""
        try:
            return str(json.loads(self._client.retry(self._client.get, f"{self.path}/{job_id}")[0])["claim"])
        except NoNodeError:
            return None

    def add(self, job: Job) -> str:
        """Mark a job that was taken, and return its claim: one that tells a requeued job from what it was before."""
        claim = f"{job.retry_count}.{secrets.token_hex(6)}"
        data = json.dumps({"claim": claim}).encode()
        try:
            self._client.retry(self._client.create, f"{self.path}/{job.id}", data)
        except NodeExistsError:
            self._client.retry(self._client.set, f"{self.path}/{job.id}", data)
        return claim

    def remove(self, job_id: str) -> None:
        """Remove the mark of a job, if it has one."""
        try:
            self._client.retry(self._client.delete, f"{self.path}/{job_id}")
        except NoNodeError:
            return
