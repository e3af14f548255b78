"""A node's document in the collection ``nodes``, and the tasks of hosts whose document no longer changes.

The document of a node of ours has one field more, ``spinney``: the mark of the store that works under this name, and
when it last did. So two stores never work under one name, and a database that was replaced by another one, or by a
backup from before the node's start, is seen before the jobs of all tasks that are not there are cancelled.

A node enters once (``enter``), beats each second (``beat``), and reads its document before it claims (``document``), by
which it sees that another store has taken its name, or that the database is away."""

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pymongo
from pymongo.errors import DuplicateKeyError

from spinney.bridges.disbatch.claims import TAKEN, UNFINISHED, utc_now
from spinney.bridges.disbatch.database import REACH_S, Database, Document, Status
from spinney.bridges.foreign import ForeignAway

log = logging.getLogger("spinney.bridges.disbatch")

ORPHANS_EVERY_S = 5.0
"""Seconds between two looks at the documents of other hosts."""


@dataclass
class Registration:
    """Keeps the document of one node in the database, and marks tasks as orphaned whose node is gone."""

    db: Database
    node: str
    _beats: dict[str, tuple[Any, float]] = field(default_factory=dict, init=False)
    """The last beat of other hosts that have tasks, and since when it has not changed."""
    _looked_s: float = field(default=-1e9, init=False)
    _store: str = field(default="", init=False)
    """The mark that is in the node's document when it is ours; empty before ``enter``."""

    def enter(self, mark: str, *, linked: bool, orphaned_after: float) -> None:
        """Write the mark of this store into the node's document. ``linked``: whether this store has jobs of the node's
        tasks. ``orphaned_after``: seconds after which a store that has not beaten is gone; its unfinished tasks become
        orphaned here.

        Raises ForeignAway when another store works under this name, or when the database does not know this node
        although jobs belong to its tasks. If two stores enter at once, the first write wins, and the other one sees
        that in ``document``."""
        nodes, self._store = self.db["nodes"], mark
        document = nodes.find_one({"node": self.node}) or {}
        registered = document.get("spinney")
        store, seen_at = _stamp(registered)
        if seen_at is None:
            if linked:
                raise ForeignAway(
                    f"the database {self.db.name} does not know the node {self.node!r}, and there are jobs for tasks "
                    "of it: it is another database, or a backup from before the node's first start. Connect the right "
                    "one; if this is it, end the bridge, run 'spinney bridges --forget NAME' and start again"
                )
        elif store != self._store:
            if seen_at > self._server_time() - timedelta(seconds=orphaned_after):
                raise ForeignAway(
                    f"another store of Spinney works as the node {self.node!r}; give this one another --name"
                )
            # That store is gone, and this one has no jobs for its tasks.
            self._orphan({"node": self.node, **UNFINISHED}, {"$unset": {"claim": ""}})
        as_read = {"node": self.node, "spinney": registered}
        change = {"$set": {"spinney": {"store": self._store, "seen": self._server_time()}}}
        with suppress(DuplicateKeyError):  # another store was faster; ``document`` says so
            nodes.update_one(as_read, change, upsert=not document)
        self.beat()

    def beat(self) -> None:
        """Write that the node is at work. ``spinney.seen`` is the time of MongoDB's server, so that two hosts whose
        clocks differ agree on it."""
        change = {
            "$set": {"timestamp": utc_now()},
            "$currentDate": {"spinney.seen": True},
            "$setOnInsert": {"maxthreads": None},
        }
        with suppress(DuplicateKeyError):
            self.db["nodes"].update_one(
                {"node": self.node, "spinney.store": self._store}, change, upsert=True
            )

    def document(self) -> Document:
        """Return the node's document; an empty one where somebody has removed it, until the next beat. Raises
        ForeignAway when another store has its name."""
        with pymongo.timeout(REACH_S):
            document = self.db["nodes"].find_one({"node": self.node}) or {}
        if document and _stamp(document.get("spinney"))[0] != self._store:
            raise ForeignAway(
                f"another store of Spinney has taken the node {self.node!r}; give this one another --name"
            )
        return document

    def _server_time(self) -> datetime:
        """Return the time of MongoDB's server, which is the same for all nodes."""
        now: datetime = self.db.command("hello")["localTime"]
        return now if now.tzinfo else now.replace(tzinfo=UTC)

    def mark_orphans(self, *, orphaned_after: float) -> None:
        """Mark tasks as orphaned that are claimed or run by hosts whose document has not changed for ``orphaned_after``
        seconds, by this host's monotonic clock. (The releases only do that for tasks of the node itself that do not
        run.)

        When this was last called long ago, the database was away or this node was suspended. Then no host could beat,
        or none was seen to, so the times of all hosts begin again.
        """
        now_s = time.monotonic()
        pause_s = now_s - self._looked_s
        if pause_s < ORPHANS_EVERY_S:
            return
        taken = {"node": {"$type": "string", "$ne": self.node}, "status": {"$in": TAKEN}}
        hosts = self.db["tasks"].distinct("node", taken)
        documents = self.db["nodes"].find({"node": {"$in": hosts}})
        beats = dict.fromkeys(hosts) | {each["node"]: each.get("timestamp") for each in documents}
        previous = {} if pause_s >= min(3 * ORPHANS_EVERY_S, orphaned_after) else self._beats
        self._beats = {
            host: previous[host] if host in previous and previous[host][0] == beat else (beat, now_s)
            for host, beat in beats.items()
        }
        self._looked_s = now_s
        for host, (_, since_s) in self._beats.items():
            if now_s - since_s >= orphaned_after:
                self._orphan({"node": host, "status": {"$in": TAKEN}})

    def mark_unbegun(self, *, orphaned_after: float) -> None:
        """Mark tasks that another program claimed under this name, and has not begun for so many seconds."""
        cutoff = utc_now() - timedelta(seconds=orphaned_after)
        unbegun = {"status": int(Status.CLAIMED), "claim": {"$exists": False}, "mtime": {"$lt": cutoff}}
        self._orphan({"node": self.node, **unbegun})

    def _orphan(self, tasks: Document, change: Document | None = None) -> None:
        """Mark tasks as orphaned, so that no node takes them until somebody resets them. A node that does
        come back may still write its result."""
        orphaned = {"$set": {"status": int(Status.ORPHANED), "mtime": utc_now()}}
        marked = self.db["tasks"].update_many(tasks, orphaned | (change or {})).modified_count
        if marked:
            log.warning("%d tasks of %s, which no longer works on them, are orphaned", marked, tasks["node"])


def _stamp(value: Any) -> tuple[Any, datetime | None]:
    """Return the store and the time of the field ``spinney``, as far as they are there."""
    fields = value if isinstance(value, dict) else {}
    seen_at = fields.get("seen")
    return fields.get("store"), seen_at if isinstance(seen_at, datetime) else None
