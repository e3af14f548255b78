"""Takes tasks of queues, within the limits that hold over all nodes.

A claim has the filter of the protocol, narrowed to ids that were read before, and MongoDB applies it to each document
at once, as ``findOneAndUpdate`` would: so nodes of the releases and ours share a database, and two never get the same
task. One write claims tasks of several queues. Ids are read ahead, in the order of their queue, for a second at most.

Limits over all nodes are checked again behind the claim, by counting what is claimed: of two nodes that have seen the
same free place, each sees both claims, and what exceeds the limit is given back before it starts. Until then the field
``claim`` is negative. A claim that is still so at the next look was left by a kill between the two, and is given back,
too."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId

from spinney.bridges.disbatch import limits
from spinney.bridges.disbatch.database import Database, Document, Status, newest

TAKEN = [int(Status.CLAIMED), int(Status.RUNNING)]
UNFINISHED: Document = {
    "status": {"$in": [*TAKEN, int(Status.ORPHANED)]},
    "$nor": [{"status": int(Status.ORPHANED), "complete": True}],
}
"""Tasks without a result. An orphaned one has none when another node thought that this one was dead."""
FREE = [None, -1]
"""What the field ``node`` of a queued task may be."""
AHEAD = 256
"""How many ids of a queue are read at once."""
AHEAD_S = 1.0
"""How old they may be: a task that was created or given back meanwhile is not among them."""


@dataclass
class Claims:
    """Takes tasks under one node's name."""

    db: Database
    node: str
    _turn: int = field(default=0, init=False)
    _ahead: dict[Any, tuple[float, deque[Any]]] = field(default_factory=dict, init=False)
    """When the free tasks of a queue were read, and the ids that were not tried yet."""

    def take(self, queues: Sequence[Document], slots: int, node_limit: int | None) -> Sequence[Document]:
        """Return tasks of these queues that are ours now, at most ``slots``. Each time another queue is first."""
        if slots <= 0 or not queues:
            return ()
        self._turn += 1
        start = self._turn % len(queues)
        queues = [
            each for each in (*queues[start:], *queues[:start]) if limits.threads(each) and self._free(each)
        ]
        if not queues:
            return ()
        on_node = 0 if node_limit is None else self._count({"node": self.node})
        in_queue = self._in_queues(queues)
        chosen: dict[Any, Any] = {}
        for queue in queues:
            most = limits.room(
                slots=slots - len(chosen),
                node_limit=node_limit,
                on_node=on_node + len(chosen),
                queue_limit=limits.threads(queue),
                in_queue=in_queue[queue["_id"]],
            )
            free = self._free(queue)
            chosen |= {free.popleft(): queue["_id"] for _ in range(min(most, len(free)))}
        return self._within(queues, self._mark(chosen)) if chosen else ()

    def give_back_left(self) -> None:
        """Give back what was claimed when this node was killed, before the limits had been checked again."""
        left = self.db["tasks"].find(
            {"node": self.node, "status": int(Status.CLAIMED), "claim": {"$lt": 0}}, {"claim": True}
        )
        for task in list(left):
            self._give_back([task["_id"]], task["claim"])

    def _free(self, queue: Document) -> deque[Any]:
        """Return the ids of free tasks in the queue's order, read again when none is left or they are too old."""
        read_s, ids = self._ahead.get(queue["_id"], (-1e9, deque()))
        if not ids or time.monotonic() - read_s >= AHEAD_S:
            free = {"queue": queue["_id"], "status": int(Status.QUEUED), "node": {"$in": FREE}}
            cursor, order = self.db["tasks"].find(free, {"_id": True}).limit(AHEAD), limits.sort(queue)
            cursor = cursor.sort(list(order)) if order else cursor
            ids = deque(task["_id"] for task in cursor if isinstance(task["_id"], ObjectId))
            self._ahead[queue["_id"]] = (time.monotonic(), ids)
        return ids

    def _count(self, tasks: Document) -> int:
        """Count claimed and running tasks."""
        return newest(self.db["tasks"]).count_documents(tasks | {"status": {"$in": TAKEN}})

    def _in_queues(self, queues: Sequence[Document]) -> dict[Any, int]:
        """Count the claimed and running tasks of each queue, on all nodes. Each count is a look into an index; a group
        over several queues is a scan on some servers."""
        return {queue["_id"]: self._count({"queue": queue["_id"]}) for queue in queues}

    def _mark(self, chosen: Mapping[Any, Any]) -> list[Document]:
        """Claim these tasks of these queues; their limits are not yet checked. Return those that are ours."""
        tasks, now = self.db["tasks"], utc_now()
        claim = -int(now.timestamp() * 1000)
        free = {
            "queue": {"$in": [*set(chosen.values())]},
            "status": int(Status.QUEUED),
            "node": {"$in": FREE},
        }
        ours = {"node": self.node, "status": int(Status.CLAIMED), "claim": claim}
        if not tasks.update_many(
            {"_id": {"$in": [*chosen]}} | free, {"$set": ours | {"mtime": now}}
        ).matched_count:
            return []
        marked = {task["_id"]: task for task in tasks.find({"_id": {"$in": [*chosen]}} | ours)}
        return [marked[task_id] for task_id in chosen if task_id in marked]

    def _within(self, queues: Sequence[Document], marked: list[Document]) -> Sequence[Document]:
        """Give back what exceeds the limits of queues; return the rest."""
        if not marked:
            return ()
        in_queue, claim = self._in_queues(queues), marked[0]["claim"]
        excess: list[Any] = []
        over = {queue["_id"]: in_queue[queue["_id"]] - limits.threads(queue) for queue in queues}
        for task in reversed(marked):
            if over.get(task["queue"], 0) > 0:
                over[task["queue"]] -= 1
                excess.append(task["_id"])
                self._ahead[task["queue"]][1].appendleft(task["_id"])
        self._give_back(excess, claim)
        kept = [task["_id"] for task in marked if task["_id"] not in excess]
        if not kept:
            return ()
        ours = {"_id": {"$in": kept}, "node": self.node, "status": int(Status.CLAIMED)}
        self.db["tasks"].update_many(ours | {"claim": claim}, {"$set": {"claim": -claim}})
        confirmed = {task["_id"]: task for task in self.db["tasks"].find(ours | {"claim": -claim})}
        return [confirmed[task_id] for task_id in kept if task_id in confirmed]

    def _give_back(self, ids: Sequence[Any], claim: int) -> None:
        """Queue claimed tasks again; those whose cancellation was wished meanwhile are cancelled."""
        if not ids:
            return
        ours = {"_id": {"$in": ids}, "node": self.node, "status": int(Status.CLAIMED), "claim": claim}
        for wish, fields in (
            ({"wish": {"$ne": "cancel"}}, {"status": int(Status.QUEUED), "node": None}),
            ({}, {"status": int(Status.CANCELLED), "complete": True}),
        ):
            change = {"$set": {**fields, "mtime": utc_now()}, "$unset": {"claim": "", "wish": ""}}
            if self.db["tasks"].update_many(ours | wish, change).matched_count == len(ids):
                return


def utc_now() -> datetime:
    """Return the time in the precision of the database."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
