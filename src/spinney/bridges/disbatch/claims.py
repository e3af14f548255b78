"""Takes tasks of queues, within the limits that hold over all nodes.

A claim is one update of one document with the filter of the protocol, narrowed to the task as it was read: as atomic as
``findOneAndUpdate``, which would read it once more. (On the server of the tests that scans the whole collection: 15
times as long for 3,000 tasks.) So nodes of the releases and ours share a database, and two never get the same task.

Limits over all nodes are checked again behind the claim, by counting what is claimed: of two nodes that have seen the
same free place, each sees both claims, and what exceeds the limit is given back before it starts. Until then the field
``claim`` is negative. A claim that is still so at the next look was left by a kill between the two, and is given back,
too."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spinney.bridges.disbatch import limits
from spinney.bridges.disbatch.database import Database, Document, Status, newest

TAKEN = [int(Status.CLAIMED), int(Status.RUNNING)]
UNFINISHED: Document = {
    "$or": [
        {"status": {"$in": TAKEN}},
        {
            "status": int(Status.ORPHANED),
            "complete": {"$ne": True},
        },  # another node thought that this one was dead
    ]
}
FREE = [None, -1]
"""What the field ``node`` of a queued task may be."""


@dataclass
class Claims:
    """Takes tasks under one node's name."""

    db: Database
    node: str
    _turn: int = field(default=0, init=False)

    def take(self, queues: Sequence[Document], slots: int, node_limit: int | None) -> Sequence[Document]:
        """Return tasks of these queues that are ours now, at most ``slots``. Each time another queue is first."""
        if slots <= 0 or not queues:
            return ()
        on_node = self._count({"node": self.node})
        self._turn += 1
        start = self._turn % len(queues)
        taken: list[Document] = []
        for queue in (*queues[start:], *queues[:start]):
            limit = limits.threads(queue)
            free_slots = slots - len(taken)
            if free_slots <= 0 or limit == 0:
                continue
            most = limits.room(
                slots=free_slots,
                node_limit=node_limit,
                on_node=on_node + len(taken),
                queue_limit=limit,
                in_queue=self._count({"queue": queue["_id"]}),
            )
            if most > 0:
                taken += self._within(limit, queue["_id"], self._mark(queue, most))
        return taken

    def give_back_left(self) -> None:
        """Give back what was claimed when this node was killed, before the limits had been checked again."""
        left = self.db["tasks"].find(
            {"node": self.node, "status": int(Status.CLAIMED), "claim": {"$lt": 0}}, {"claim": True}
        )
        for task in list(left):
            self._give_back(task)

    def _count(self, tasks: Document) -> int:
        """Count claimed and running tasks. One count for each queue: each is a look into an index, and a group over
        several queues is a scan on some servers."""
        return newest(self.db["tasks"]).count_documents(tasks | {"status": {"$in": TAKEN}})

    def _mark(self, queue: Document, most: int) -> list[Document]:
        """Claim so many tasks of a queue, in its order, as those whose limits are not yet checked."""
        tasks, order, now = self.db["tasks"], limits.sort(queue), utc_now()
        free = {"queue": queue["_id"], "status": int(Status.QUEUED), "node": {"$in": FREE}}
        cursor = tasks.find(free | {"_id": {"$type": "objectId"}}).limit(most)
        claim = {"node": self.node, "status": int(Status.CLAIMED), "mtime": now, "claim": -_milliseconds(now)}
        marked = []
        for task in cursor.sort(list(order)) if order else cursor:
            as_read = {name: {"$eq": task.get(name)} for name in ("queue", "status", "node", "mtime")}
            if tasks.update_one({"_id": task["_id"]} | as_read, {"$set": claim}).matched_count:
                marked.append(task | claim)
        return marked

    def _within(self, limit: int, queue: Any, marked: list[Document]) -> Sequence[Document]:
        """Give back what exceeds the limit; return the rest as it is now: its parameters may have been changed since
        it was read."""
        if not marked:
            return ()
        tasks = self.db["tasks"]
        kept = max(0, len(marked) - max(0, self._count({"queue": queue}) - limit))
        for task in reversed(marked[kept:]):
            self._give_back(task)
        if not kept:
            return ()
        ids, claim = [task["_id"] for task in marked[:kept]], -marked[0]["claim"]
        ours = {"_id": {"$in": ids}, "node": self.node, "status": int(Status.CLAIMED)}
        tasks.update_many(ours | {"claim": -claim}, {"$set": {"claim": claim}})
        now = {task["_id"]: task for task in tasks.find(ours | {"claim": claim})}
        return [now[task_id] for task_id in ids if task_id in now]

    def _give_back(self, task: Document) -> None:
        """Queue a claimed task again; one whose cancellation was wished meanwhile is cancelled."""
        ours = {
            "_id": task["_id"],
            "node": self.node,
            "status": int(Status.CLAIMED),
            "claim": task["claim"],
        }
        for wish, fields in (
            ({"wish": {"$ne": "cancel"}}, {"status": int(Status.QUEUED), "node": None}),
            ({}, {"status": int(Status.CANCELLED), "complete": True}),
        ):
            change = {"$set": {**fields, "mtime": utc_now()}, "$unset": {"claim": "", "wish": ""}}
            if self.db["tasks"].update_one(ours | wish, change).matched_count:
                return


def utc_now() -> datetime:
    """Return the time in the precision of the database."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
