"""The whole of Merritt's queue on one connection to ZooKeeper."""

import time
from collections.abc import Callable

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from spinney.bridges.merritt import item_locks, layout
from spinney.bridges.merritt.access import AccessRequests
from spinney.bridges.merritt.batches import Batches
from spinney.bridges.merritt.consistency import check, repair
from spinney.bridges.merritt.errors import MerrittZKNodeInvalid
from spinney.bridges.merritt.jobs import Jobs
from spinney.bridges.merritt.legacy import move, records
from spinney.bridges.merritt.locks import Locks


class MerrittQueue:
    """Batches, jobs, access requests and locks of a Merritt, on a started KazooClient.

    The client may have a chroot, as in ``KazooClient("host:2181/merritt")``. ``owner`` is what locks say of their
    holder: host and process unless given. The session's timeout decides how soon the locks of a dead client are free.
    """

    def __init__(self, client: KazooClient, owner: str | None = None) -> None:
        self._client = client
        owner = owner or item_locks.default_owner()
        self.batches = Batches(client, owner)
        self.jobs = Jobs(client, owner)
        self.access = AccessRequests(client, owner)
        self.locks = Locks(client, owner)

    def initialize(self) -> None:
        """Create the nodes that stand as long as the queue does, where they are missing."""
        for path in layout.PERMANENT:
            try:
                self._client.retry(self._client.create, path, makepath=True)
            except NodeExistsError:
                continue

    def check(self, clock: Callable[[], float] = time.time) -> list[check.Finding]:
        """Return what is wrong: orphans, duplicates, missing nodes, unreadable ones, and old locks. Changes nothing."""
        return check.findings(self._client, clock)

    def repair(
        self, *, dry_run: bool, clock: Callable[[], float] = time.time, **also: bool
    ) -> list[repair.Repair]:
        """Mend what ``check`` finds and can be mended without a decision, and return what was done about each finding;
        ``repair.mend`` has the other options."""
        return repair.mend(self._client, self.check(clock), dry_run=dry_run, **also)

    def legacy(self) -> tuple[list[records.LegacyRecord], list[MerrittZKNodeInvalid]]:
        """Return the records of the queues before this layout, and an error for each that cannot be read."""
        return records.list_records(self._client)

    def move_legacy(self, *, dry_run: bool) -> list[move.Move]:
        """Move the records of the queues before this layout into it, and return what became of each, or with
        ``dry_run`` would; see ``move.move``."""
        return move.move(self._client, dry_run=dry_run)
