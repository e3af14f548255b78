"""Marks of what is ours, beside Merritt's own nodes: ``/spinney``, which none of its services and tools looks at.

    /spinney/identity             names this ZooKeeper tree for ever: in the keys of jobs
    /spinney/nodes/NODE           the mark of the store that works under this name
    /spinney/nodes/NODE/JID       a job that this node has taken, with its claim and its phase
    /spinney/live/NODE            there while this node is connected (ephemeral)
    /spinney/batches/BID          a batch whose jobs are being created

The lock of a job dies with its holder's session; its mark stays, so that a node that was killed knows its jobs. While a
job is with Merritt's services between two steps of ours, nobody of us locks it, and its mark reserves it."""

import json
import logging
import secrets
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from spinney.bridges.foreign import ForeignAway
from spinney.bridges.merritt import Job
from spinney.bridges.merritt.nodes import children, existing, get_all
from spinney.bridges.merritt.transactions import OperationFailed, Transaction

log = logging.getLogger("spinney.bridges.merritt")

ROOT = "/spinney"
BATCHES = f"{ROOT}/batches"
_NODES = f"{ROOT}/nodes"
_LIVE = f"{ROOT}/live"


class Phase(StrEnum):
    """Who works on a job that a node has taken."""

    HERE = "here"
    AWAY = "away"
    """Other services work on it, until it comes back."""
    BACK = "back"
    """This node works on it again, after other services."""
    CANCELLED = "cancelled"
    """Others still; its job here has ended without success, so that it fails when it comes back."""


class Mark(NamedTuple):
    """What the mark of a job says."""

    claim: str
    phase: Phase = Phase.HERE
    reason: str = ""
    """Why it was cancelled."""

    @classmethod
    def of(cls, data: bytes) -> "Mark":
        """Return the mark in a node's data. A mark without a phase is one of an earlier release: the job is
        worked on here. Raises ValueError, TypeError or KeyError for data that are no mark."""
        fields = json.loads(data)
        if not isinstance(fields["claim"], str):
            raise TypeError("the claim of a mark is text")
        return cls(fields["claim"], Phase(fields.get("phase", Phase.HERE)), fields.get("reason", ""))

    def data(self) -> bytes:
        """Return the mark as the data of a node."""
        return json.dumps(self._asdict()).encode()


def new_claim(job: Job) -> str:
    """Return a claim for a job that is taken now: its number of retries and a random part, as
    ``0.9f86d0818f5a``.

    The number tells a job that was requeued from what it was before (``ownership.is_ended``); the random part
    makes a claim unique, so that the key of the job here is never that of an earlier one.
    """
    return f"{job.retry_count}.{secrets.token_hex(6)}"


def identity(client: KazooClient) -> str:
    """Return the name of this ZooKeeper tree, twelve hexadecimal digits, which is written at the first look.

    It is in the keys of jobs, so that jobs with equal numbers in two trees, or in one that was created anew, are not
    taken for each other. If two processes look first at the same time, one writes it and both return it.
    """
    path = f"{ROOT}/identity"
    with suppress(NodeExistsError):
        client.retry(client.create, path, uuid.uuid4().hex[:12].encode(), makepath=True)
    return str(client.retry(client.get, path)[0].decode())


def release_own_lock(client: KazooClient, path: str, owner: str) -> None:
    """Delete the lock of an item that this node holds without knowing it: it was killed, or the connection was lost
    before an answer. No other process writes this owner: its name is locked on its host, and its mark names its store.
    """
    with suppress(NoNodeError, BadVersionError):  # nobody's, or another one's by now
        data, stat = client.retry(client.get, path)
        if owner_of(data) == owner:
            client.retry(client.delete, path, version=stat.version)


def owner_of(note: bytes) -> str | None:
    """Return the owner that a lock names; None for a lock of another library."""
    try:
        return str(json.loads(note)["owner"])
    except (ValueError, KeyError, TypeError):
        return None


class Marks:
    """The marks by which a node knows the jobs that it has taken, also after it was killed."""

    def __init__(self, client: KazooClient, node: str) -> None:
        self._client = client
        self._node = node
        self.path = f"{_NODES}/{node}"
        self._unreadable: set[str] = set()
        """Jobs about whose marks a warning is in the log."""

    def enter(self, store: str) -> None:
        """Write the mark of a store. Raises ForeignAway where another store works under this name."""
        for path in (_NODES, _LIVE, BATCHES):
            self._client.ensure_path(path)
        try:
            self._client.retry(self._client.create, self.path, store.encode())
        except NodeExistsError:
            other = self._client.retry(self._client.get, self.path)[0].decode()
            if other != store:
                raise ForeignAway(
                    f"another store of Spinney works as {self.path.rpartition('/')[2]!r}; give this one another "
                    f"--name, or delete the node {self.path} with all below it if that store is gone for good"
                ) from None

    def announce(self) -> None:
        """Show that this node is connected, by an ephemeral node that ends with the client's session.

        Called in each round; it writes only when the node is missing or belongs to an earlier session.
        """
        path = f"{_LIVE}/{self._node}"
        stat = self._client.retry(self._client.exists, path)
        if stat is not None and stat.ephemeralOwner == self._client.client_id[0]:
            return
        transaction = Transaction(self._client)
        if stat is not None:  # of an earlier session
            transaction.delete(path)
        transaction.create(path, ephemeral=True)
        with suppress(OperationFailed):  # that session has just ended; the next look repeats this
            transaction.commit()

    def live_nodes(self) -> Collection[str]:
        """Return the nodes that are connected."""
        return children(self._client, _LIVE)

    def is_marked(self, job_id: str, nodes: Collection[str]) -> bool:
        """Return whether one of these nodes, or this one, has taken a job. All are read in one round."""
        return bool(existing(self._client, {f"{_NODES}/{node}/{job_id}" for node in (*nodes, self._node)}))

    def jobs(self) -> Mapping[str, Mark]:
        """Return the marks of the jobs that this node has taken, by their ids; those that can be read."""
        ids = children(self._client, self.path)
        read = get_all(self._client, [f"{self.path}/{job_id}" for job_id in ids])
        return {
            job_id: mark
            for job_id, node in zip(ids, read, strict=True)
            if node is not None and (mark := self._mark(job_id, node[0])) is not None
        }

    def read(self, job_id: str) -> Mark | None:
        """Return the mark of a job; None for one that is not ours, or whose mark cannot be read."""
        (node,) = get_all(self._client, [f"{self.path}/{job_id}"])
        return None if node is None else self._mark(job_id, node[0])

    def _mark(self, job_id: str, data: bytes) -> Mark | None:
        """Return the mark in a node's data; None for one that cannot be read, about which the log has one warning."""
        try:
            return Mark.of(data)
        except (ValueError, TypeError, KeyError):
            if job_id not in self._unreadable:
                self._unreadable.add(job_id)
                log.warning(
                    "the mark %s/%s cannot be read, and is passed over; delete this node", self.path, job_id
                )
            return None

    def write(self, job_id: str, mark: Mark) -> None:
        """Mark a job, or change its mark. Not atomic with the job's own nodes; ``write_with`` is."""
        try:
            self._client.retry(self._client.create, f"{self.path}/{job_id}", mark.data())
        except NodeExistsError:
            self._client.retry(self._client.set, f"{self.path}/{job_id}", mark.data())

    def write_with(self, transaction: Transaction, job_id: str, mark: Mark) -> None:
        """Have a transaction change the mark of a job; it fails where the job has none."""
        transaction.set(f"{self.path}/{job_id}", mark.data())

    def remove(self, job_id: str) -> None:
        """Remove the mark of a job, if it has one."""
        with suppress(NoNodeError):
            self._client.retry(self._client.delete, f"{self.path}/{job_id}")
