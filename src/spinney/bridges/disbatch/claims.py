"""Takes tasks of queues, within the limits that hold over all nodes.

A claim reads the ids of free tasks, in the order of their queue, and marks them by one write with the filter of the
protocol. MongoDB applies it to each document at once, as ``findOneAndUpdate`` would: so nodes of the releases and ours
share a database, and two never get the same task. What another node was faster to take is replaced once.

Limits over all nodes are checked again behind the claim, by counting what is claimed: two nodes that have seen the same
free place both see both claims, and the node with the later claim gives back what exceeds the limit before it starts
anything. Until then the field ``claim`` is negative. A claim that is still so at the next look was left by a kill
between the two, and is given back, too."""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bson import ObjectId

from spinney.bridges.disbatch import limits
from spinney.bridges.disbatch.database import Database, Document, Status, newest

TAKEN = [int(Status.CLAIMED), int(Status.RUNNING)]
"""The values of ``status`` of tasks that a node has."""
UNFINISHED: Document = {
    "status": {"$in": [*TAKEN, int(Status.ORPHANED)]},
    "$nor": [{"status": int(Status.ORPHANED), "complete": True}],
}
"""Tasks without a result. An orphaned one has none when another node thought that this one was dead."""
_NOBODY = (None, -1)
"""The values of ``node`` of tasks that may be claimed."""
FREE: Document = {"status": int(Status.QUEUED), "node": {"$in": [*_NOBODY]}}
"""Tasks that may be claimed."""
_ANY: Mapping[str, Any] = MappingProxyType({})
WINDOW = 4
"""In queues without an order, this many times the needed ids are read, and some of them are chosen at random."""
COUNTS = 100
"""How often a node counts again while one whose claim is later has not given back yet."""
COUNT_PAUSE_S = 0.02


@dataclass
class Claims:
    """Takes tasks under one node's name. Its methods raise the errors of the driver; after one, claims may be
    left whose limits were not checked, which ``give_back_left`` finds."""

    db: Database
    node: str
    _turn: int = field(default=0, init=False)
    """Counts calls of ``take``: it says which queue is first."""

    def take(self, queues: Sequence[Document], slots: int, node_limit: int | None) -> Sequence[Document]:
        """Return tasks of these queues that are ours now, at most ``slots``. Each time another queue is
        first, so that none waits behind a long one.

        ``node_limit``: the limit of this node over all queues; None: it has none. The field ``claim`` of the
        tasks is the time of the claim in milliseconds since 1970, which names it from here on."""
        if slots <= 0 or not queues:
            return ()
        self._turn += 1
        start = self._turn % len(queues)
        queues = [each for each in (*queues[start:], *queues[:start]) if limits.threads(each)]
        claim = -int(utc_now().timestamp() * 1000)
        marked: list[Document] = []
        for _ in range(2):
            chosen = self._chosen(queues, slots - len(marked), node_limit)
            ours = self._mark(chosen, claim)
            marked += ours
            if len(ours) == len(chosen):
                break
        return self._within(queues, marked, claim)

    def give_back_left(self) -> None:
        """Give back what was claimed when this node was killed, before the limits had been checked again. It
        must not run beside ``take`` of the same node."""
        claimed = self.db["tasks"].find({"node": self.node, "status": int(Status.CLAIMED)}, {"claim": True})
        for task in list(claimed):
            claim = task.get("claim")
            if isinstance(claim, int) and claim < 0:
                self._give_back([task["_id"]], claim)

    def _chosen(self, queues: Sequence[Document], slots: int, node_limit: int | None) -> dict[Any, Any]:
        """Return the ids of free tasks with their queues, at most ``slots`` and at most as many as each queue
        has places; no more queues are read than needed. Another node may take any of them meanwhile."""
        if node_limit is not None:
            slots = min(slots, node_limit - self._count({"node": self.node}))
        chosen: dict[Any, Any] = {}
        for queue in queues:
            most = min(slots - len(chosen), limits.threads(queue))
            if most <= 0:
                break
            if free := self._free(queue, most):
                places = max(0, limits.threads(queue) - self._count({"queue": queue["_id"]}))
                chosen |= dict.fromkeys(free[:places], queue["_id"])
        return chosen

    def _free(self, queue: Document, most: int) -> list[Any]:
        """Return ids of free tasks, in the queue's order. Without one they are chosen at random among the first, so
        that several nodes rarely try the same."""
        order = limits.sort(queue)
        room = most if order else most * WINDOW
        ids = self._first_free(queue["_id"], order, room)
        if not all(isinstance(task_id, ObjectId) for task_id in ids):
            ids = self._first_free(queue["_id"], order, room, {"_id": {"$type": "objectId"}})
        if not order:
            return random.sample(ids, min(most, len(ids)))
        return sorted(ids, reverse=order[0][1] < 0)[:most]

    def _first_free(
        self, queue: Any, order: Sequence[tuple[str, int]], room: int, also: Mapping[str, Any] = _ANY
    ) -> list[Any]:
        """Return ids of the first free tasks, up to ``room`` of each value of ``_NOBODY``. These are reads of an index;
        with both values in one filter, or with a type in it, some servers scan all tasks."""
        ids: list[Any] = []
        for nobody in _NOBODY:
            free = {"queue": queue, "status": int(Status.QUEUED), "node": nobody, **also}
            cursor = self.db["tasks"].find(free, {"_id": True}).limit(room)
            ids += [task["_id"] for task in (cursor.sort(list(order)) if order else cursor)]
        return ids

    def _count(self, tasks: Document) -> int:
        """Count claimed and running tasks. It is a look into an index; a group over several queues would be a scan on
        some servers."""
        return newest(self.db["tasks"]).count_documents(tasks | {"status": {"$in": TAKEN}})

    def _mark(self, chosen: dict[Any, Any], claim: int) -> list[Document]:
        """Claim these tasks of these queues; their limits are not yet checked. Return those that are ours:
        another node may have been faster."""
        if not chosen:
            return []
        ours = {"node": self.node, "status": int(Status.CLAIMED), "claim": claim}
        free = {"_id": {"$in": [*chosen]}, "queue": {"$in": [*set(chosen.values())]}} | FREE
        if not self.db["tasks"].update_many(free, {"$set": ours | {"mtime": utc_now()}}).matched_count:
            return []
        return self._in_order([*chosen], ours)

    def _within(
        self, queues: Sequence[Document], marked: Sequence[Document], claim: int
    ) -> Sequence[Document]:
        """Give back what exceeds the limits of queues; make the claims of the rest positive, which is what
        other nodes and a restart take for settled, and return those tasks. A task that was reset or deleted
        meanwhile is not among them."""
        excess: list[Any] = []
        for queue in queues:
            ids = [task["_id"] for task in marked if task["queue"] == queue["_id"]]
            if ids and (over := self._over(queue, claim)) > 0:
                excess += ids[-over:]
        self._give_back(excess, claim)
        kept = [task["_id"] for task in marked if task["_id"] not in excess]
        if not kept:
            return ()
        ours = {"node": self.node, "status": int(Status.CLAIMED)}
        before = {"_id": {"$in": kept}, "claim": claim} | ours
        self.db["tasks"].update_many(before, {"$set": {"claim": -claim}})
        return self._in_order(kept, ours | {"claim": -claim})

    def _in_order(self, ids: Sequence[Any], fields: Document) -> list[Document]:
        """Return the tasks with these ids that also have these fields, in the order of the ids."""
        tasks = {task["_id"]: task for task in self.db["tasks"].find({"_id": {"$in": [*ids]}} | fields)}
        return [tasks[task_id] for task_id in ids if task_id in tasks]

    def _over(self, queue: Document, claim: int) -> int:
        """Return by how many tasks the queue exceeds its limit. A node whose claim is later has to give back first:
        until it has, this one counts again, since otherwise both would give back all, and perhaps again and again."""
        taken = {"queue": queue["_id"]}
        later = {"$or": [{"claim": {"$lt": claim}}, {"claim": claim, "node": {"$gt": self.node}}]}
        is_later = True
        for _ in range(COUNTS):
            over = self._count(taken) - limits.threads(queue)
            if over <= 0 or not is_later:
                break
            is_later = self._count(taken | later) > 0
            time.sleep(COUNT_PAUSE_S if is_later else 0)
        return over

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
